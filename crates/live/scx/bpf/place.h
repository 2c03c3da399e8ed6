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

/* Whether the other thread of its physical core is busy, or about to be: both are slower then (SMT). */
static __always_inline bool shares_core(sched_t *s, u32 core)
{
    u32 other = has_smt(s) ? core_of(s, core)->sibling : NONE;
    if (other == NONE)
        return false;
    /* What waits in a queue that serves both says nothing of the other one. */
    bool waits = core_of(s, other)->queue != core_of(s, core)->queue && queue_of(s, other)->len > 0;
    return waits || core_of(s, other)->running != NONE;
}

/* Weight per rated core of the core's queue, with a thread of a weight, or 0 for none; of equal ones a core without a
 * thread first, and of those one with a physical core for itself: (load, running, shares) as one number. With a thread,
 * two busy threads of a physical core have half of it each. */
static __always_inline u64 load_with(sched_t *s, u32 core, u32 weight)
{
    queue_t *queue = queue_of(s, core);
    bool shares = shares_core(s, core);
    u64 load = scaled(queue, queue->load + weight) << (weight && shares);
    return opaque(s, load << 2 | (u64)(core_of(s, core)->running != NONE) << 1 | shares);
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

/* Whether a thread may use an idle core, with SMT one with a physical core for itself if `whole`. */
static __always_inline bool is_usable(sched_t *s, u32 thread, u32 core, bool whole)
{
    return is_core_free(s, core) && allows(s, thread, core) && !(whole && shares_core(s, core));
}

/* A usable core that shares a cluster with `near`, itself first. */
static __noinline u32 idle_near(sched_t *s, u32 thread, u32 near, bool whole)
{
    if (is_usable(s, thread, near, whole))
        return near;
    u32 cluster = core_of(s, near)->cluster, last = core_of(s, near)->cluster_last;
    for (u32 core = core_of(s, near)->cluster_first; core <= last && can_loop; core += s->one) {
        if (!any_of_eight(s->idle, core))
            core += 7 * s->one;
        else if (is_core_idle(s, core) && core_of(s, core)->cluster == cluster && is_usable(s, thread, core, whole))
            return core;
    }
    return NONE;
}

/* A usable core near the previous core, else near the waker's. */
static __always_inline u32 idle_near_both(sched_t *s, u32 thread, u32 waker, bool whole)
{
    u32 previous = thread_of(s, thread)->core;
    u32 idle = idle_near(s, thread, previous, whole);
    if (idle == NONE && waker != NONE && core_of(s, waker)->cluster != core_of(s, previous)->cluster)
        idle = idle_near(s, thread, waker, whole);
    return idle;
}

static __always_inline u32 place_wake_affine(sched_t *s, u32 thread, u32 waker)
{
    thread_t *own = thread_of(s, thread);
    if (own->state == STATE_NEW)
        return least_loaded(s, thread, 0, false, NONE);
    u32 previous = own->core;
    u32 idle = has_smt(s) ? idle_near_both(s, thread, waker, true) : NONE;
    if (idle == NONE)
        idle = idle_near_both(s, thread, waker, false);
    if (idle != NONE)
        return idle;
    bool by_waker = waker != NONE && allows(s, thread, waker);
    if (!allows(s, thread, previous))
        return by_waker ? waker : least_loaded(s, thread, 0, false, NONE);
    return by_waker && load_on(s, waker) < load_on(s, previous) ? waker : previous;
}

/* Whether a core is the second thread of a physical core. */
static __always_inline bool is_second(sched_t *s, u32 core)
{
    return has_smt(s) && core_of(s, core)->sibling < core;
}

/* The next core after the last choice: any of the preferred kind, or the least loaded of all. */
static __noinline u32 place_in_turn(sched_t *s, u32 thread)
{
    u32 prefer = thread_of(s, thread)->prefer;
    bool preferred = may_use_preferred(s, thread);
    u32 turn = at(s->cursors, prefer), best = opaque(s, NONE);
    u64 best_load = opaque(s, NEVER);
    /* The only or first threads of physical cores, then the second ones. */
    u32 turns = has_smt(s) ? 2 * s->core_count : s->core_count;
    for (u32 i = s->zero; i < turns && can_loop; i += s->one, turn += s->one) {
        if (turn >= turns)
            turn = s->zero;
        bool second = has_smt(s) && turn >= s->core_count;
        u32 core = second ? turn - s->core_count : turn;
        if (is_second(s, core) != second)
            continue;
        u64 load = prefer == PREFER_ANY ? load_on(s, core) : 0;
        if (allows(s, thread, core) && (!preferred || is_preferred(s, thread, core)) && load < best_load) {
            best = opaque(s, core);
            best_load = load;
            if (load == 0)
                break; /* None is less. It is not for the others alone that this ends soon: until then, all that wake
                          begin at the same core. */
        }
    }
    turn = best + 1 + (is_second(s, best) ? s->core_count : 0);
    at(s->cursors, prefer) = turn < turns ? turn : 0;
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
