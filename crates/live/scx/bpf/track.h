/* SPDX-License-Identifier: GPL-2.0-only */
/* Load tracking of all threads and cores, as they change state. After crates/policy/src/pelt/tracker.rs. */
#ifndef AMPSCHED_TRACK_H
#define AMPSCHED_TRACK_H

#include "queue.h"

#define ESTIMATE_MARGIN (CAPACITY_ONE / 100) /* a smaller difference is no news */
#define ESTIMATE_WEIGHT 4 /* a new value counts 1 / 4 */
#define FITS_MARGIN 1280ull /* fair.c: fits_capacity */

static __always_inline bool tracks_load(sched_t *s)
{
    return tracking(s) != TRACKING_OFF;
}

/* What the clock of a core shows. */
static __always_inline u64 core_time_ns(tracked_core_t *core)
{
    return sat_sub_branchless(core->scaled_ns, core->lost_ns);
}

/* A core's clock, brought up to a time that is another one than that up to which it is kept. */
struct clock {
    u64 real_ns;
    u64 scaled_ns;
    u64 lost_ns;
};

/* While the core is busy its clock advances with the work done. If it has been idle since the last change the clock
 * catches up with real time; but if it had been busy for so long that it would not have been idle at full speed either,
 * the difference is lost. */
static __always_inline void advance_clock(struct clock *clock, tracked_core_t *core, u64 now_ns)
{
    u64 passed_ns = sat_sub_branchless(now_ns, core->real_ns), is_busy = -(u64)core->running;
    clock->real_ns = core->real_ns + passed_ns;
    clock->scaled_ns = core->scaled_ns + passed_ns * core->present / CAPACITY_ONE;
    clock->scaled_ns = select_by(is_busy, clock->scaled_ns, clock->real_ns);
    clock->lost_ns = core->lost_ns + ((core->real_ns - core->scaled_ns) & ~is_busy & mask_saturated(&core->pelt));
}

/* What a core's clock will show then if nothing changes. */
static __always_inline u64 core_time_at(tracked_core_t *core, u64 now_ns)
{
    struct clock clock;
    advance_clock(&clock, core, now_ns);
    u64 is_now = mask_below(now_ns ^ core->seen_ns, 1);
    return select_by(is_now, core_time_ns(core), sat_sub_branchless(clock.scaled_ns, clock.lost_ns));
}

/* Brings the averages of a core up to now. */
global_subprog done_t advance_core(__arg_arena sched_t *s, __arg_arena tracked_core_t *core, u64 now_ns)
{
    struct clock clock;
    if (now_ns == core->seen_ns)
        return DONE;
    advance_clock(&clock, core, now_ns);
    core->real_ns = clock.real_ns;
    core->scaled_ns = clock.scaled_ns;
    core->lost_ns = clock.lost_ns;
    core->seen_ns = now_ns;
    pelt_update(&core->pelt, core_time_ns(core), s->unit_ns, core->load, core->runnable, core->running);
    return DONE;
}

/* Brings the averages of a thread and of its core up to now. */
static __always_inline void settle(sched_t *s, tracked_thread_t *own, u64 now_ns)
{
    tracked_core_t *core = &core_of(s, own->core)->tracked;
    advance_core(s, core, now_ns);
    pelt_update(&own->pelt, core_time_ns(core), s->unit_ns, own->runnable, own->runnable, own->running);
}

/* A thread does no longer what it did on its core. */
static __always_inline void stop_activity(sched_t *s, tracked_thread_t *own)
{
    tracked_core_t *core = &core_of(s, own->core)->tracked;
    core->load -= own->weight * (u64)own->runnable;
    core->runnable -= own->runnable;
    core->running &= ~(u32)own->running;
    core->estimates -= own->estimate * own->runnable;
}

static __always_inline void begin_activity(sched_t *s, tracked_thread_t *own, u32 activity)
{
    tracked_core_t *core = &core_of(s, own->core)->tracked;
    own->runnable = activity != ACTIVITY_ASLEEP;
    own->running = activity == ACTIVITY_RUNNING;
    core->load += own->weight * (u64)own->runnable;
    core->runnable += own->runnable;
    core->running |= own->running;
    core->estimates += own->estimate * own->runnable;
}

/* A thread, settled, becomes part of a core, and of none else. */
static __always_inline void attach(sched_t *s, u32 thread, u32 core, u64 now_ns)
{
    tracked_thread_t *own = &thread_of(s, thread)->tracked;
    tracked_core_t *to = &core_of(s, core)->tracked;
    /* Of a new one all sums are 0. */
    detach_averages(&core_of(s, own->core)->tracked.pelt, &own->pelt, own->weight);
    own->weight = thread_of(s, thread)->weight;
    own->core = core;
    advance_core(s, to, now_ns);
    if (!own->attached) {
        u64 util = tracking(s) == TRACKING_BY_WORK ? forked_util(&to->pelt, own->weight, to->capacity) : CAPACITY_ONE;
        begin_averages(&own->pelt, core_time_ns(to), util);
        own->attached = true;
    }
    attach_averages(&to->pelt, &own->pelt, own->weight);
}

/* A thread goes to sleep: its estimate follows a rise at once and a fall by a quarter. One that slept already leaves it
 * as it is. */
static __always_inline void update_util_est(tracked_thread_t *own, u64 falls_asleep, u64 capacity, u64 unit_ns)
{
    u64 period = sat_sub_branchless(own->pelt.updated_ns, own->pelt.part * unit_ns) + 1;
    u64 util = util_avg(&own->pelt), known = own->estimate;
    u64 rises = ~mask_below(util, known), falls = ~mask_below(known, util + ESTIMATE_MARGIN);
    /* Beyond the core's capacity the average says that the core was never idle, not what the thread needs. */
    u64 is_news = ~(falls & mask_below(capacity, util)) & mask_below(0, own->estimated ^ period) & -falls_asleep;
    /* A thread that had to wait might have used more. */
    u64 had_enough = ~mask_below(util + ESTIMATE_MARGIN, runnable_avg(&own->pelt));
    u64 lower = (ESTIMATE_WEIGHT * known - sat_sub_branchless(known, util)) / ESTIMATE_WEIGHT;
    own->estimated = select_by(is_news, period, own->estimated);
    own->estimate = select_by(is_news, select_by(rises, util, select_by(falls & had_enough, lower, known)), known);
}

/* A thread, on a core, does something else from now on. The first time it is new there. A changed weight counts from
 * here on. */
global_subprog done_t set_activity(__arg_arena sched_t *s, u32 thread, u32 core, u32 activity, u64 now_ns)
{
    tracked_thread_t *own = &thread_of(s, thread)->tracked;
    u64 was_runnable = own->runnable;
    if (own->attached) {
        settle(s, own, now_ns);
        stop_activity(s, own);
    } else {
        own->core = core;
    }
    if (!own->attached || own->core != core || own->weight != thread_of(s, thread)->weight)
        attach(s, thread, core, now_ns);
    if (activity == ACTIVITY_ASLEEP)
        update_util_est(own, was_runnable, core_of(s, core)->tracked.capacity, s->unit_ns);
    begin_activity(s, own, activity);
    return DONE;
}

/* The same, if load is tracked. */
static __always_inline void track(sched_t *s, u32 thread, u32 core, u32 activity, u64 now_ns)
{
    if (tracks_load(s))
        set_activity(s, thread, core, activity, now_ns);
}

/* A thread has ended. */
static __noinline void end_tracking(sched_t *s, u32 thread, u64 now_ns)
{
    tracked_thread_t *own = &thread_of(s, thread)->tracked;
    if (!own->attached)
        return;
    settle(s, own, now_ns);
    stop_activity(s, own);
    detach_averages(&core_of(s, own->core)->tracked.pelt, &own->pelt, own->weight);
    own->attached = own->runnable = own->running = false;
}

/* A thread is on no core and in no queue. What the kernel has taken out for a moment still waits. */
static __always_inline void track_rest(sched_t *s, u32 thread, u32 state, u64 now_ns)
{
    if (!tracks_load(s))
        return;
    if (state == STATE_EXITED)
        end_tracking(s, thread, now_ns);
    else
        set_activity(s, thread, thread_of(s, thread)->core, state == STATE_READY ? ACTIVITY_WAITING : ACTIVITY_ASLEEP,
                     now_ns);
}

/* A core runs at `part / whole` of its highest frequency from now on. */
static __always_inline void set_pace(sched_t *s, u32 core, u64 part, u64 whole, u64 now_ns)
{
    if (!tracks_load(s))
        return;
    tracked_core_t *own = &core_of(s, core)->tracked;
    advance_core(s, own, now_ns);
    if (tracking(s) == TRACKING_BY_WORK && whole > 0)
        own->present = own->requested = max(own->capacity * part / whole, 1);
}

/* Capacity of a core at `pace / 1024` of its highest frequency, as the kernel says. Where it cannot know (no frequency
 * invariance) it always says 1024, and what the policy has set counts. */
static __always_inline u64 present_at(tracked_core_t *core, u64 pace)
{
    return min(max(core->capacity * pace / CAPACITY_ONE, 1), core->requested);
}

static __always_inline bool is_new_pace(sched_t *s, u32 core, u64 pace)
{
    tracked_core_t *own = &core_of(s, core)->tracked;
    return present_at(own, pace) != own->present;
}

static __always_inline void follow_pace(sched_t *s, u32 core, u64 pace, u64 now_ns)
{
    tracked_core_t *own = &core_of(s, core)->tracked;
    advance_core(s, own, now_ns);
    own->present = present_at(own, pace);
}

/* The share of time in which a thread has been runnable lately, 0 to 1024; 0 before its start and after its end. */
global_subprog u64 load_of(__arg_arena sched_t *s, u32 thread, u64 now_ns)
{
    tracked_thread_t *own = &thread_of(s, thread)->tracked;
    struct elapsed past;
    if (!own->attached)
        return 0;
    elapse(&past, &own->pelt, core_time_at(&core_of(s, own->core)->tracked, now_ns), s->unit_ns);
    u64 sum = decayed(own->pelt.load_sum, &past) + own->runnable * past.active;
    return CAPACITY_ONE * sum / divider_at(past.part);
}

/* The share of time in which it has run, without the estimate. */
global_subprog u64 running_of(__arg_arena sched_t *s, u32 thread, u64 now_ns)
{
    tracked_thread_t *own = &thread_of(s, thread)->tracked;
    struct elapsed past;
    if (!own->attached)
        return 0;
    elapse(&past, &own->pelt, core_time_at(&core_of(s, own->core)->tracked, now_ns), s->unit_ns);
    u64 sum = decayed(own->pelt.util_sum, &past) + own->running * CAPACITY_ONE * past.active;
    return sum / divider_at(past.part);
}

/* What it uses of the fastest core, or the estimate of what it will when it wakes up. */
static __always_inline u64 util_of(sched_t *s, u32 thread, u64 now_ns)
{
    tracked_thread_t *own = &thread_of(s, thread)->tracked;
    return own->attached ? max(running_of(s, thread, now_ns), own->estimate) : 0;
}

/* The share of the time in which a thread was runnable that it ran, in 1/1024. */
static __always_inline u64 served_of(sched_t *s, u32 thread, u64 now_ns)
{
    return running_of(s, thread, now_ns) * CAPACITY_ONE / max(load_of(s, thread, now_ns), 1);
}

/* The utilisation of a core, 0 to its capacity. */
static __noinline u64 core_util(sched_t *s, u32 core, u64 now_ns)
{
    tracked_core_t *own = &core_of(s, core)->tracked;
    struct elapsed past;
    elapse(&past, &own->pelt, core_time_at(own, now_ns), s->unit_ns);
    u64 sum = decayed(own->pelt.util_sum, &past) + own->running * CAPACITY_ONE * past.active;
    u64 used = max(sum / divider_at(past.part), own->estimates);
    return min(used, own->capacity);
}

/* Whether a utilisation leaves a core of some capacity a fifth to spare. */
static __always_inline bool fits_capacity(u64 util, u64 capacity)
{
    return util * FITS_MARGIN < capacity * CAPACITY_ONE;
}

/* Whether some core has less than a fifth of its capacity to spare. */
static __noinline bool is_overutilised(sched_t *s, u64 now_ns)
{
    for (u32 core = s->zero; core < s->core_count && can_loop; core += s->one)
        if (!fits_capacity(core_util(s, core, now_ns), core_of(s, core)->tracked.capacity))
            return true;
    return false;
}

/* Whether stealing and balancing happen now. */
static __always_inline bool may_balance(sched_t *s, u64 now_ns)
{
    return rule(s, balance_when) == BALANCE_WHEN_ALWAYS || is_overutilised(s, now_ns);
}

#endif
