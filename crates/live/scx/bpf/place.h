/* SPDX-License-Identifier: GPL-2.0-only */
/* Where a thread is put when it starts or wakes. After crates/policy/src/sched/place.rs. */
#ifndef AMPSCHED_PLACE_H
#define AMPSCHED_PLACE_H

#include "moves.h"

inlined bool allows(sched_t *s, u32 thread, u32 core)
{
    return has(&thread_of(s, thread)->affinity, core);
}

inlined bool is_preferred(sched_t *s, u32 thread, u32 core)
{
    u32 prefer = thread_of(s, thread)->prefer;
    return prefer == PREFER_ANY || prefer == core_of(s, core)->kind;
}

/* Whether there is a core of the kind that a thread prefers which it may use. */
once bool may_use_preferred(shared sched_t *s, u32 thread)
{
    for (u32 core = s->zero; core < s->core_count && can_go_on; core += s->one)
        if (is_preferred(s, thread, core) && allows(s, thread, core))
            return true;
    return false;
}

inlined bool is_idle(sched_t *s, u32 core)
{
    return idles(s, core) && queue_of(s, core)->len == 0;
}

/* Weight per rated core of the core's queue, a core without a thread first: (load, running) as one number. */
inlined u64 load_with(sched_t *s, u32 core, u32 weight)
{
    queue_t *queue = queue_of(s, core);
    return unknown(s, scaled(queue, queue->load + weight) << 1 | (core_of(s, core)->running != NONE));
}

inlined u64 load_on(sched_t *s, u32 core)
{
    return load_with(s, core, 0);
}

/* The first of the least loaded cores that the thread may use, of those that it prefers if `preferred`; of equal
 * ones `favourite`. */
apart u32 least_loaded(sched_t *s, u32 thread, u32 weight, bool preferred, u32 favourite)
{
    u32 best = unknown(s, NONE);
    u64 best_load = unknown(s, NEVER);
    for (u32 core = s->zero; core < s->core_count && can_go_on; core += s->one) {
        if (!allows(s, thread, core) || (preferred && !is_preferred(s, thread, core)))
            continue;
        u64 load = load_with(s, core, weight);
        if (load < best_load || (load == best_load && core == favourite)) {
            best = unknown(s, core);
            best_load = load;
        }
    }
    return best;
}

/* An idle core that the thread may use and that shares a cluster with `near`, itself first. */
apart u32 idle_near(sched_t *s, u32 thread, u32 near)
{
    if (is_idle(s, near) && allows(s, thread, near))
        return near;
    u32 cluster = core_of(s, near)->cluster, last = core_of(s, near)->cluster_last;
    for (u32 core = core_of(s, near)->cluster_first; core <= last && can_go_on; core += s->one) {
        if (!some_of_eight(s->idle, core))
            core += 7 * s->one;
        else if (idles(s, core) && core_of(s, core)->cluster == cluster && is_idle(s, core) &&
                 allows(s, thread, core))
            return core;
    }
    return NONE;
}

inlined u32 place_wake_affine(sched_t *s, u32 thread, u32 waker)
{
    thread_t *own = thread_of(s, thread);
    if (own->state == STATE_NEW)
        return least_loaded(s, thread, 0, false, NONE);
    u32 previous = own->core;
    u32 idle = idle_near(s, thread, previous);
    if (idle == NONE && waker != NONE && core_of(s, waker)->cluster != core_of(s, previous)->cluster)
        idle = idle_near(s, thread, waker);
    if (idle != NONE)
        return idle;
    bool by_waker = waker != NONE && allows(s, thread, waker);
    if (!allows(s, thread, previous))
        return by_waker ? waker : least_loaded(s, thread, 0, false, NONE);
    return by_waker && load_on(s, waker) < load_on(s, previous) ? waker : previous;
}

/* The next core after the last choice: any of the preferred kind, or the least loaded of all. */
apart u32 place_in_turn(sched_t *s, u32 thread)
{
    u32 prefer = thread_of(s, thread)->prefer;
    bool preferred = may_use_preferred(s, thread);
    u32 core = at(s->cursors, prefer), best = unknown(s, NONE);
    u64 best_load = unknown(s, NEVER);
    for (u32 i = s->zero; i < s->core_count && can_go_on; i += s->one) {
        if (core >= s->core_count)
            core = s->zero;
        u64 load = prefer == PREFER_ANY ? load_on(s, core) : 0;
        if (allows(s, thread, core) && (!preferred || is_preferred(s, thread, core)) && load < best_load) {
            best = unknown(s, core);
            best_load = load;
            if (load == 0)
                break; /* None is less. It is not for the others alone that this ends soon: until then, all that wake
                          begin at the same core. */
        }
        core += s->one;
    }
    at(s->cursors, prefer) = best + 1 < s->core_count ? best + 1 : 0;
    return best;
}

/* by_load.h, by_energy.h */
apart u32 place_by_load(sched_t *s, u32 thread, u32 waker, u64 now_ns);
inlined u32 place_by_energy(sched_t *s, u32 thread, u32 waker, u64 now_ns);

/* The core for a thread that starts or wakes, woken by a thread on core `waker` (or NONE); one that it may use. */
once u32 place(shared sched_t *s, u32 thread, u32 waker, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    switch (rule(s, allocator)) {
    case ALLOCATOR_WAKE_AFFINE:
        return place_wake_affine(s, thread, waker);
    case ALLOCATOR_ROUND_ROBIN_IN_CLASS:
        return place_in_turn(s, thread);
    case ALLOCATOR_LEAST_LOADED_IN_CLASS:
        return least_loaded(s, thread, 0, may_use_preferred(s, thread), own->ran_on);
    case ALLOCATOR_BY_LOAD:
        return place_by_load(s, thread, waker, now_ns);
    case ALLOCATOR_BY_ENERGY:
        return place_by_energy(s, thread, waker, now_ns);
    default:
        return least_loaded(s, thread, own->weight, false, own->ran_on);
    }
}

#endif
