/* SPDX-License-Identifier: GPL-2.0-only */
/* Placing and stealing by tracked load: global task scheduling and energy-aware scheduling. After
 * crates/policy/src/sched/by_load.rs. */
#ifndef AMPSCHED_BY_LOAD_H
#define AMPSCHED_BY_LOAD_H

#include "by_energy.h"

/* When an idle core looks again for a thread that its load may let go: one tick at 250 Hz. */
#define SEARCH_AGAIN_NS 4000000

static __always_inline bool has_settled(thread_t *own, u64 min_resident_ns, u64 now_ns)
{
    return own->migrations == 0 || now_ns >= own->migrated_at_ns + min_resident_ns;
}

/* An idle big core that a thread may use, a whole one, or NONE. */
global_subprog u32 idle_big(__arg_arena sched_t *s, u32 thread)
{
    for (u32 core = s->zero; core < s->core_count && can_loop; core += s->one)
        if (core_of(s, core)->kind == PREFER_BIG && is_usable(s, thread, core, true))
            return core;
    return NONE;
}

/* The first of the least loaded cores of a kind that a thread may use, or NONE. */
static __noinline u32 least_loaded_of(sched_t *s, u32 kind, u32 thread)
{
    u32 best = opaque(s, NONE);
    u64 best_load = opaque(s, NEVER);
    for (u32 core = s->zero; core < s->core_count && can_loop; core += s->one) {
        if (core_of(s, core)->kind != kind || !allows(s, thread, core) || load_on(s, core) >= best_load)
            continue;
        best = opaque(s, core);
        best_load = load_on(s, core);
    }
    return best;
}

/* Where a thread goes that has become heavy on a little core, or light on a big one; else NONE. */
static __always_inline u32 other_kind(sched_t *s, u32 thread, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    bool may_go_up = own->weight >= rule(s, band.min_weight);
    bool settled = has_settled(own, rule(s, band.min_resident_ns), now_ns);
    u64 load = load_of(s, thread, now_ns);
    if (core_of(s, own->core)->kind == PREFER_BIG) {
        bool is_light = !may_go_up || (settled && load < rule(s, band.down));
        return is_light ? least_loaded_of(s, PREFER_LITTLE, thread) : NONE;
    }
    return may_go_up && settled && load >= rule(s, band.up) ? idle_big(s, thread) : NONE;
}

/* ALLOCATOR_BY_LOAD */
static __noinline u32 place_by_load(sched_t *s, u32 thread, u32 waker, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    u32 core;
    if (own->state == STATE_NEW) {
        core = least_loaded_of(s, own->weight >= rule(s, band.min_weight) ? PREFER_BIG : PREFER_LITTLE, thread);
        /* A core whose sibling is busy is neither big nor idle: then the least loaded one of all. */
        return core != NONE && !shares_core(s, core) ? core : least_loaded(s, thread, 0, false, NONE);
    }
    core = other_kind(s, thread, now_ns);
    if (core != NONE)
        return core;
    bool same_kind = waker != NONE && core_of(s, waker)->kind == core_of(s, own->core)->kind;
    return place_wake_affine(s, thread, same_kind ? waker : NONE);
}

/* The order in which a step takes threads, least first: a number above the thread's own; NEVER if it does not take it.
 */
global_subprog u64 key_by_load(__arg_arena sched_t *s, u32 thread, __arg_arena steal_t *step, u64 now_ns)
{
    const u64 most = 0xffff;
    thread_t *own = thread_of(s, thread);
    u64 turn;
    switch (step->load) {
    case STEAL_LOAD_HEAVY:
        turn = load_of(s, thread, now_ns);
        if (own->weight < step->band.min_weight || !has_settled(own, step->band.min_resident_ns, now_ns) ||
            turn < step->band.up)
            return NEVER;
        turn = sat_sub(most, turn);
        break;
    case STEAL_LOAD_STARVED:
        if (idle_big(s, thread) != NONE || served_of(s, thread, now_ns) > step->max_served)
            return NEVER;
        turn = load_of(s, thread, now_ns);
        break;
    default:
        turn = util_of(s, thread, now_ns);
        if (fits_capacity(turn, core_of(s, own->core)->tracked.capacity))
            return NEVER;
        turn = sat_sub(most, turn);
    }
    return turn << 32 | thread;
}

/* Whether a look passes over the queue of a core, as its lock is held just now: many cores that begin to idle at about
 * the same time would all choose the same thread, and wait for the lock of its queue one behind the other. */
static __always_inline bool passes_over(sched_t *s, pick_t *pick, u32 core)
{
    if (!pick->passes || !is_locked(lock_of(s, core)))
        return false;
    pick->passed = true;
    return true;
}

/* Looks at a thread that a step may take, if its load lets it. */
static __always_inline void consider(sched_t *s, pick_t *pick, u32 thread, steal_t *step)
{
    thread_t *own = thread_of(s, thread);
    if (!allows(s, thread, pick->core) || own->prefer == step->except)
        return;
    pick->some = true;
    pick->key = min(pick->key, key_by_load(s, thread, step, pick->now_ns));
}

global_subprog done_t consider_waiting(__arg_arena sched_t *s, __arg_arena pick_t *pick, __arg_arena steal_t *step)
{
    u32 core = pick->core;
    for (u32 other = s->zero; other < s->core_count && can_loop; other += s->one) {
        queue_t *queue = queue_of(s, other);
        bool same_cluster = core_of(s, other)->cluster == core_of(s, core)->cluster;
        if (!has_waiting(s, core_of(s, other)->queue) || core_of(s, other)->queue == core_of(s, core)->queue ||
            same_cluster != (step->from == STEAL_FROM_OWN_CLUSTER) || passes_over(s, pick, other) || !can_spare(queue))
            continue;
        for (u32 thread = queue->first; thread != NONE && can_loop; thread = thread_of(s, thread)->next)
            if (thread_of(s, thread)->bound_to == NONE || thread_of(s, thread)->bound_to == core)
                consider(s, pick, thread, step);
    }
    return DONE;
}

global_subprog done_t consider_running(__arg_arena sched_t *s, __arg_arena pick_t *pick, __arg_arena steal_t *step)
{
    u32 core = pick->core;
    for (u32 other = s->zero; other < s->core_count && can_loop; other += s->one) {
        u32 thread = core_of(s, other)->running;
        if (thread != NONE && core_of(s, other)->class < core_of(s, core)->class && !passes_over(s, pick, other) &&
            thread_of(s, thread)->pull_to == NONE)
            consider(s, pick, thread, step);
    }
    return DONE;
}

/* What a step that filters by load yields now, or when to look again. */
static __always_inline void steal_by_load(sched_t *s, pick_t *pick, steal_t *step)
{
    pick->key = NEVER;
    pick->some = false;
    pick->except = step->except;
    if (step->from == STEAL_FROM_RUNNING_ON_SLOWER)
        consider_running(s, pick, step);
    else
        consider_waiting(s, pick, step);
    if (pick->key == NEVER) {
        pick->thread = NONE;
        /* Loads rise and fall with time alone. */
        if (pick->some)
            pick->recheck_ns = min(pick->recheck_ns, pick->now_ns + SEARCH_AGAIN_NS);
        return;
    }
    pick->thread = pick->key;
    pick->kind = thread_of(s, pick->thread)->state == STATE_RUNNING ? PICK_PULL : PICK_RUN;
}

/* When an idle core looks again that may not steal now: while others run, one may become over-utilised by a thread that
 * the idle one could take. */
static __always_inline u64 search_again_ns(sched_t *s, u64 now_ns)
{
    if (!s->pulls_running)
        return NEVER;
    for (u32 core = s->zero; core < s->core_count && can_loop; core += s->one)
        if (core_of(s, core)->running != NONE)
            return now_ns + SEARCH_AGAIN_NS;
    return NEVER;
}

#endif
