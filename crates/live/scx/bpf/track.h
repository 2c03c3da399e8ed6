/* SPDX-License-Identifier: GPL-2.0-only */
/* Load tracking of all threads and cores, as they change state. After crates/policy/src/pelt/tracker.rs. */
#ifndef AMPSCHED_TRACK_H
#define AMPSCHED_TRACK_H

#include "queue.h"

#define ESTIMATE_MARGIN (CAPACITY_ONE / 100) /* a smaller difference is no news */
#define ESTIMATE_WEIGHT 4 /* a new value counts 1 / 4 */
#define FITS_MARGIN 1280ull /* fair.c: fits_capacity */

inlined bool tracks_load(sched_t *s)
{
    return tracking(s) != TRACKING_OFF;
}

/* What the clock of a core shows. */
inlined u64 core_time_ns(tracked_core_t *core)
{
    return less(core->scaled_ns, core->lost_ns);
}

/* What it will show then if nothing changes: if the core is idle it catches up with real time, unless it has been busy
 * for so long that it would not have been idle at full speed either. */
inlined u64 core_time_at(tracked_core_t *core, u64 now_ns)
{
    u64 lost_ns = core->lost_ns, real_ns = core->real_ns, scaled_ns = core->scaled_ns;
    if (now_ns == core->seen_ns)
        return less(scaled_ns, lost_ns);
    if (core->running)
        return less(scaled_ns + less(now_ns, real_ns) * core->present / CAPACITY_ONE, lost_ns);
    if (is_saturated(&core->pelt))
        lost_ns += real_ns - scaled_ns;
    return less(greatest_of(real_ns, now_ns), lost_ns);
}

/* Brings the averages of a core up to now. */
apart void advance_core(sched_t *s, tracked_core_t *core, u64 now_ns)
{
    if (now_ns == core->seen_ns)
        return;
    if (core->running) {
        u64 passed_ns = less(now_ns, core->real_ns);
        core->real_ns += passed_ns;
        core->scaled_ns += passed_ns * core->present / CAPACITY_ONE;
    } else {
        if (is_saturated(&core->pelt))
            core->lost_ns += core->real_ns - core->scaled_ns;
        core->real_ns = greatest_of(core->real_ns, now_ns);
        core->scaled_ns = core->real_ns;
    }
    core->seen_ns = now_ns;
    pelt_update(&core->pelt, core_time_ns(core), s->unit_ns, core->load, core->runnable, core->running);
}

/* Brings the averages of a thread and of its core up to now. */
apart void settle(sched_t *s, tracked_thread_t *own, u64 now_ns)
{
    tracked_core_t *core = &core_of(s, own->core)->tracked;
    advance_core(s, core, now_ns);
    pelt_update(&own->pelt, core_time_ns(core), s->unit_ns, own->runnable, own->runnable, own->running);
}

/* A thread does no longer what it did on its core. */
inlined void stop_activity(sched_t *s, tracked_thread_t *own)
{
    tracked_core_t *core = &core_of(s, own->core)->tracked;
    if (!own->runnable)
        return;
    core->load -= own->weight;
    core->runnable--;
    core->running = core->running && !own->running;
    core->estimates -= own->estimate;
}

inlined void begin_activity(sched_t *s, tracked_thread_t *own, u32 activity)
{
    tracked_core_t *core = &core_of(s, own->core)->tracked;
    own->runnable = activity != ACTIVITY_ASLEEP;
    own->running = activity == ACTIVITY_RUNNING;
    if (!own->runnable)
        return;
    core->load += own->weight;
    core->runnable++;
    core->running = core->running || own->running;
    core->estimates += own->estimate;
}

/* A thread, settled, becomes part of a core, and of none else. */
apart void attach(sched_t *s, u32 thread, u32 core, u64 now_ns)
{
    tracked_thread_t *own = &thread_of(s, thread)->tracked;
    tracked_core_t *to = &core_of(s, core)->tracked;
    bool is_new = !own->attached;
    if (!is_new)
        detach_averages(&core_of(s, own->core)->tracked.pelt, &own->pelt, own->weight);
    own->attached = true;
    own->core = core;
    own->weight = thread_of(s, thread)->weight;
    advance_core(s, to, now_ns);
    if (is_new) {
        u64 util = tracking(s) == TRACKING_BY_WORK ? forked_util(&to->pelt, own->weight, to->capacity) : CAPACITY_ONE;
        begin_averages(&own->pelt, core_time_ns(to), util);
    }
    attach_averages(&to->pelt, &own->pelt, own->weight);
}

/* A thread goes to sleep: its estimate follows a rise at once and a fall by a quarter. */
inlined void estimate(tracked_thread_t *own, u64 capacity, u64 unit_ns)
{
    u64 period = less(own->pelt.updated_ns, own->pelt.part * unit_ns) + 1;
    u64 util = util_avg(&own->pelt), known = own->estimate;
    if (own->estimated == period)
        return;
    bool falls = known > util && known - util >= ESTIMATE_MARGIN;
    /* Beyond the core's capacity the average says that the core was never idle, not what the thread needs. */
    if (falls && util > capacity)
        return;
    own->estimated = period;
    if (util >= known)
        own->estimate = util;
    else if (falls && util + ESTIMATE_MARGIN >= runnable_avg(&own->pelt))
        own->estimate = (ESTIMATE_WEIGHT * known - (known - util)) / ESTIMATE_WEIGHT;
}

/* A thread, on a core, does something else from now on. The first time it is new there. A changed weight counts from
 * here on. */
apart void becomes(sched_t *s, u32 thread, u32 core, u32 activity, u64 now_ns)
{
    tracked_thread_t *own = &thread_of(s, thread)->tracked;
    bool falls_asleep = own->runnable && activity == ACTIVITY_ASLEEP;
    if (own->attached) {
        settle(s, own, now_ns);
        stop_activity(s, own);
    }
    if (!own->attached || own->core != core || own->weight != thread_of(s, thread)->weight)
        attach(s, thread, core, now_ns);
    if (falls_asleep)
        estimate(own, core_of(s, core)->tracked.capacity, s->unit_ns);
    begin_activity(s, own, activity);
}

/* The same, if load is tracked. */
inlined void track(sched_t *s, u32 thread, u32 core, u32 activity, u64 now_ns)
{
    if (tracks_load(s))
        becomes(s, thread, core, activity, now_ns);
}

/* A thread has ended. */
inlined void track_exit(sched_t *s, u32 thread, u64 now_ns)
{
    tracked_thread_t *own = &thread_of(s, thread)->tracked;
    if (!tracks_load(s) || !own->attached)
        return;
    settle(s, own, now_ns);
    stop_activity(s, own);
    detach_averages(&core_of(s, own->core)->tracked.pelt, &own->pelt, own->weight);
    own->attached = own->runnable = own->running = false;
}

/* A thread is on no core and in no queue. What the kernel has taken out for a moment still waits. */
inlined void track_rest(sched_t *s, u32 thread, u32 state, u64 now_ns)
{
    if (state == STATE_EXITED)
        return track_exit(s, thread, now_ns);
    track(s, thread, thread_of(s, thread)->core, state == STATE_READY ? ACTIVITY_WAITING : ACTIVITY_ASLEEP, now_ns);
}

/* A core runs at `part / whole` of its highest frequency from now on. */
inlined void set_pace(sched_t *s, u32 core, u64 part, u64 whole, u64 now_ns)
{
    if (!tracks_load(s))
        return;
    tracked_core_t *own = &core_of(s, core)->tracked;
    advance_core(s, own, now_ns);
    if (tracking(s) == TRACKING_BY_WORK && whole > 0)
        own->present = greatest_of(own->capacity * part / whole, 1);
}

/* The share of time in which a thread has been runnable lately, 0 to 1024; 0 before its start and after its end. */
apart u64 load_of(sched_t *s, u32 thread, u64 now_ns)
{
    tracked_thread_t *own = &thread_of(s, thread)->tracked;
    struct elapsed past;
    if (!own->attached)
        return 0;
    elapse(&past, &own->pelt, core_time_at(&core_of(s, own->core)->tracked, now_ns), s->unit_ns);
    u64 sum = decayed(own->pelt.load_sum, &past) + (own->runnable ? past.active : 0);
    return CAPACITY_ONE * sum / divider_at(past.part);
}

/* The share of time in which it has run, without the estimate. */
apart u64 running_of(sched_t *s, u32 thread, u64 now_ns)
{
    tracked_thread_t *own = &thread_of(s, thread)->tracked;
    struct elapsed past;
    if (!own->attached)
        return 0;
    elapse(&past, &own->pelt, core_time_at(&core_of(s, own->core)->tracked, now_ns), s->unit_ns);
    u64 sum = decayed(own->pelt.util_sum, &past) + (own->running ? CAPACITY_ONE * past.active : 0);
    return sum / divider_at(past.part);
}

/* What it uses of the fastest core, or the estimate of what it will when it wakes up. */
inlined u64 util_of(sched_t *s, u32 thread, u64 now_ns)
{
    tracked_thread_t *own = &thread_of(s, thread)->tracked;
    return own->attached ? greatest_of(running_of(s, thread, now_ns), own->estimate) : 0;
}

/* The share of the time in which a thread was runnable that it ran, in 1/1024. */
inlined u64 served_of(sched_t *s, u32 thread, u64 now_ns)
{
    return running_of(s, thread, now_ns) * CAPACITY_ONE / greatest_of(load_of(s, thread, now_ns), 1);
}

/* The utilisation of a core, 0 to its capacity. */
apart u64 core_util(sched_t *s, u32 core, u64 now_ns)
{
    tracked_core_t *own = &core_of(s, core)->tracked;
    u64 used = util_avg(&own->pelt);
    if (now_ns != own->seen_ns) {
        struct elapsed past;
        elapse(&past, &own->pelt, core_time_at(own, now_ns), s->unit_ns);
        u64 sum = decayed(own->pelt.util_sum, &past) + (own->running ? CAPACITY_ONE * past.active : 0);
        used = sum / divider_at(past.part);
    }
    return least_of(greatest_of(used, own->estimates), own->capacity);
}

/* Whether a utilisation leaves a core of some capacity a fifth to spare. */
inlined bool fits_capacity(u64 util, u64 capacity)
{
    return util * FITS_MARGIN < capacity * CAPACITY_ONE;
}

/* Whether some core has less than a fifth of its capacity to spare. */
apart bool is_overutilised(sched_t *s, u64 now_ns)
{
    for (u32 core = s->zero; core < s->core_count && can_go_on; core += s->one)
        if (!fits_capacity(core_util(s, core, now_ns), core_of(s, core)->tracked.capacity))
            return true;
    return false;
}

/* Whether stealing and balancing happen now. */
inlined bool may_balance(sched_t *s, u64 now_ns)
{
    return rule(s, balance_when) == BALANCE_WHEN_ALWAYS || is_overutilised(s, now_ns);
}

#endif
