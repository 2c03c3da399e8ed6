/* SPDX-License-Identifier: GPL-2.0-only */
/* Where a thread is put when it starts or wakes. After crates/policy/src/sched/place.rs. */
#ifndef AMPSCHED_PLACE_H
#define AMPSCHED_PLACE_H

#include "moves.h"

static __always_inline bool allows(sched_t *s, u32 thread, u32 core)
{
    return has(&thread_of(s, thread)->affinity, core);
}

static __always_inline bool is_preferred(sched_t *s, u32 thread, u32 core)
{
    u32 prefer = thread_of(s, thread)->prefer;
    return prefer == PREFER_ANY || prefer == core_of(s, core)->kind;
}

/* Whether there is a core of the kind that a thread prefers which it may use. */
global_subprog bool may_use_preferred(__arg_arena sched_t *s, u32 thread)
{
    for (u32 core = s->zero; core < s->core_count && can_loop; core += s->one)
        if (is_preferred(s, thread, core) && allows(s, thread, core))
            return true;
    return false;
}

static __always_inline bool is_core_free(sched_t *s, u32 core)
{
    return is_core_idle(s, core) && queue_of(s, core)->len == 0;
}

/* Weight per rated core of the core's queue, a core without a thread first: (load, running) as one number. */
static __always_inline u64 load_with(sched_t *s, u32 core, u32 weight)
{
    queue_t *queue = queue_of(s, core);
    return opaque(s, scaled(queue, queue->load + weight) << 1 | (core_of(s, core)->running != NONE));
}

static __always_inline u64 load_on(sched_t *s, u32 core)
{
    return load_with(s, core, 0);
}

/* The first of the least loaded cores that the thread may use, of those that it prefers if `preferred`; of equal
 * ones `favourite`. */
static __noinline u32 least_loaded(sched_t *s, u32 thread, u32 weight, bool preferred, u32 favourite)
{
    u32 best = opaque(s, NONE);
    u64 best_load = opaque(s, NEVER);
    for (u32 core = s->zero; core < s->core_count && can_loop; core += s->one) {
        if (!allows(s, thread, core) || (preferred && !is_preferred(s, thread, core)))
            continue;
        u64 load = load_with(s, core, weight);
        if (load < best_load || (load == best_load && core == favourite)) {
            best = opaque(s, core);
            best_load = load;
        }
    }
    return best;
}

/* An idle core that the thread may use and that shares a cluster with `near`, itself first. */
static __noinline u32 idle_near(sched_t *s, u32 thread, u32 near)
{
    if (is_core_free(s, near) && allows(s, thread, near))
        return near;
    u32 cluster = core_of(s, near)->cluster, last = core_of(s, near)->cluster_last;
    for (u32 core = core_of(s, near)->cluster_first; core <= last && can_loop; core += s->one) {
        if (!any_of_eight(s->idle, core))
            core += 7 * s->one;
        else if (is_core_idle(s, core) && core_of(s, core)->cluster == cluster && is_core_free(s, core) &&
                 allows(s, thread, core))
            return core;
    }
    return NONE;
}

static __always_inline u32 place_wake_affine(sched_t *s, u32 thread, u32 waker)
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
static __noinline u32 place_in_turn(sched_t *s, u32 thread)
{
    u32 prefer = thread_of(s, thread)->prefer;
    bool preferred = may_use_preferred(s, thread);
    u32 core = at(s->cursors, prefer), best = opaque(s, NONE);
    u64 best_load = opaque(s, NEVER);
    for (u32 i = s->zero; i < s->core_count && can_loop; i += s->one) {
        if (core >= s->core_count)
            core = s->zero;
        u64 load = prefer == PREFER_ANY ? load_on(s, core) : 0;
        if (allows(s, thread, core) && (!preferred || is_preferred(s, thread, core)) && load < best_load) {
            best = opaque(s, core);
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
static __noinline u32 place_by_load(sched_t *s, u32 thread, u32 waker, u64 now_ns);
static __always_inline u32 place_by_energy(sched_t *s, u32 thread, u32 waker, u64 now_ns);

/* The core for a thread that starts or wakes, woken by a thread on core `waker` (or NONE); one that it may use. */
global_subprog u32 place(__arg_arena sched_t *s, u32 thread, u32 waker, u64 now_ns)
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
