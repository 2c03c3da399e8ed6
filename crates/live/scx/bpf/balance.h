/* SPDX-License-Identifier: GPL-2.0-only */
/* Periodic load balancing between run queues. After crates/policy/src/sched/balance.rs. */
#ifndef AMPSCHED_BALANCE_H
#define AMPSCHED_BALANCE_H

#include "by_load.h"
#include "lock.h"

static __always_inline bool is_in(sched_t *s, group_t *group, u32 core)
{
    return has(&s->online, core) && (group->kind == PREFER_ANY || core_of(s, core)->kind == group->kind);
}

static __always_inline u64 core_load(sched_t *s, u32 core)
{
    return scaled_load(queue_of(s, core));
}

static __always_inline u64 tolerated(group_t *group, u64 load)
{
    return load * (100 + group->tolerance_percent) / 100;
}

/* What a queue lacks of a load, as the sum over its cores of load x rating. */
static __always_inline u64 headroom(u64 source_load, queue_t *target)
{
    return sat_sub(source_load, scaled_load(target)) * target->capacity;
}

static __always_inline u64 rated(u32 weight)
{
    return (u64)weight * SPEED_ONE;
}

/* Whether a queue with one more thread is still less loaded than a source with that load. */
static __always_inline bool helps(u32 weight, u64 source_load, queue_t *target)
{
    return rated(weight) < headroom(source_load, target);
}

/* Whether a thread waits and loads differ by more than the tolerance. */
global_subprog bool is_uneven(__arg_arena sched_t *s, __arg_arena group_t *group)
{
    u64 least = opaque(s, NEVER), most = s->zero;
    u32 waiting = s->zero;
    for (u32 core = s->zero; core < s->core_count && can_loop; core += s->one) {
        if (!is_in(s, group, core))
            continue;
        least = min(least, core_load(s, core));
        most = max(most, core_load(s, core));
        waiting |= has_waiting(s, core_of(s, core)->queue);
    }
    group->least = least;
    group->most = most;
    return waiting && least < most && tolerated(group, least) < most;
}

static __always_inline bool is_earlier_target(sched_t *s, u32 a, u32 b)
{
    u64 one = core_load(s, a), other = core_load(s, b);
    if (one != other)
        return one < other;
    bool shares = shares_core(s, a);
    if (shares != shares_core(s, b))
        return !shares;
    u64 rotated = queue_of(s, a)->rotated, rival = queue_of(s, b)->rotated;
    return rotated < rival || (rotated == rival && a < b);
}

/* Sorts the cores of a group into `targets`: least loaded first, of equal ones those with a physical core for
 * themselves, then that to which no rotation has come for longest. */
global_subprog u32 sort_targets(__arg_arena sched_t *s, __arg_arena group_t *group)
{
    u32 count = s->zero;
    for (u32 core = s->zero; core < s->core_count && can_loop; core += s->one) {
        if (!is_in(s, group, core))
            continue;
        u32 place = count;
        count += s->one;
        for (; place > 0 && can_loop && is_earlier_target(s, core, at(s->targets, place - 1)); place -= s->one)
            at(s->targets, place) = at(s->targets, place - 1);
        at(s->targets, place) = core;
    }
    return count;
}

/* Sorts the cores whose queues can spare a thread and hold more than a load into `sources`, most loaded first. */
global_subprog u32 sort_sources(__arg_arena sched_t *s, __arg_arena group_t *group, u64 above)
{
    u32 count = s->zero;
    for (u32 core = s->zero; core < s->core_count && can_loop; core += s->one) {
        if (!is_in(s, group, core) || core_load(s, core) <= above || !can_spare(queue_of(s, core)))
            continue;
        u32 place = count;
        count += s->one;
        for (; place > 0 && can_loop && core_load(s, core) > core_load(s, at(s->sources, place - 1)); place -= s->one)
            at(s->sources, place) = at(s->sources, place - 1);
        at(s->sources, place) = core;
    }
    return count;
}

/* Whether a waiting thread may use the target and has not just come to its own cluster from another. */
static __always_inline bool may_move(sched_t *s, u32 thread, u32 target, group_t *group)
{
    thread_t *own = thread_of(s, thread);
    bool settled = own->migrations == 0 || own->migrated_at_ns <= group->settled_ns;
    return own->bound_to == NONE && allows(s, thread, target) &&
           (settled || core_of(s, own->core)->cluster == core_of(s, target)->cluster);
}

/* Whose turn it is to move, least first: by preference if that matters. */
static __always_inline u32 reluctance(sched_t *s, u32 thread, u32 target, group_t *group)
{
    thread_t *own = thread_of(s, thread);
    u32 to = core_of(s, target)->kind;
    if (!group->by_preference || core_of(s, own->core)->kind == to || own->prefer == to)
        return 0;
    return own->prefer == PREFER_ANY ? 1 : 2;
}

/* The waiting thread of a queue whose turn it is to move: one whose move helps, or only swaps the imbalance. */
global_subprog u32 candidate(__arg_arena sched_t *s, __arg_arena queue_t *source, u32 target,
                             __arg_arena group_t *group, bool swap)
{
    u32 best = opaque(s, NONE), best_reluctance = s->zero;
    u64 headroom_left = headroom(scaled_load(source), queue_of(s, target));
    for (u32 thread = source->first; thread != NONE && can_loop; thread = thread_of(s, thread)->next) {
        thread_t *own = thread_of(s, thread);
        bool fitting = swap ? rated(own->weight) <= headroom_left && source->newcomer != thread
                            : rated(own->weight) < headroom_left;
        if (!fitting || !may_move(s, thread, target, group))
            continue;
        u32 turn = reluctance(s, thread, target, group);
        if (best == NONE || turn < best_reluctance ||
            (turn == best_reluctance && own->serial < thread_of(s, best)->serial)) {
            best = thread;
            best_reluctance = turn;
        }
    }
    return best;
}

/* The least weight of a waiting thread. */
global_subprog u32 lightest_waiting(__arg_arena sched_t *s)
{
    u32 least = opaque(s, NONE);
    for (u32 i = s->zero; i < s->queue_count && can_loop; i += s->one)
        for (u32 thread = at(s->queues, i).first; thread != NONE && can_loop; thread = thread_of(s, thread)->next)
            least = min(least, thread_of(s, thread)->weight);
    return least;
}

/* Moves the thread that has been found to a target, if it still waits when both are locked. Returns whether it did. */
global_subprog bool move_to(__arg_arena sched_t *s, __arg_arena group_t *group, u32 target, u64 now_ns)
{
    u32 thread = group->thread;
    locks_t held = lock_thread_and_core(s, thread, target);
    thread_t *own = thread_of(s, thread);
    bool waits = own->state == STATE_READY && !own->dequeued && own->bound_to == NONE && allows(s, thread, target) &&
                 core_of(s, own->core)->queue == core_of(s, group->source)->queue;
    record_at(s, target, what_of(RECORD_MOVE, waits, thread, target), now_ns, group->source);
    if (waits) {
        dequeue(s, thread);
        enqueue(s, thread, target, ENQUEUE_REQUEUE, now_ns);
    }
    unlock_both(s, held);
    return waits;
}

/* Finds a move that helps: the thread, noted with its source in the group. Returns the target, or NONE. */
global_subprog u32 find_move(__arg_arena sched_t *s, __arg_arena group_t *group)
{
    if (!is_uneven(s, group))
        return NONE;
    u32 lightest = lightest_waiting(s);
    u32 sources = sort_sources(s, group, tolerated(group, group->least));
    u32 targets = sort_targets(s, group);
    for (u32 i = s->zero; i < targets && can_loop; i += s->one) {
        u32 target = at(s->targets, i);
        u64 limit = tolerated(group, core_load(s, target));
        /* Loads ascend, so the first target that nothing can help ends the search. */
        if (limit >= group->most || !helps(lightest, group->most, queue_of(s, target)))
            return NONE;
        for (u32 j = s->zero; j < sources && can_loop && core_load(s, at(s->sources, j)) > limit; j += s->one) {
            u32 thread = candidate(s, queue_of(s, at(s->sources, j)), target, group, false);
            if (thread == NONE)
                continue;
            group->thread = thread;
            group->source = at(s->sources, j);
            return target;
        }
    }
    return NONE;
}

/* Finds a thread that swaps an imbalance with a target: noted with its source in the group, which then gives no other.
 * Returns whether there is one. */
static __noinline bool find_swap(sched_t *s, group_t *group, u32 target, u32 sources)
{
    u64 limit = tolerated(group, core_load(s, target));
    for (u32 i = s->zero; i < sources && can_loop; i += s->one) {
        u32 from = at(s->sources, i);
        if (from == NONE || core_load(s, from) <= limit)
            continue;
        u32 thread = candidate(s, queue_of(s, from), target, group, true);
        if (thread == NONE)
            continue;
        group->thread = thread;
        group->source = from;
        at(s->sources, i) = NONE;
        return true;
    }
    return false;
}

/* Swaps imbalances that cannot be removed: each queue gives and receives at most one thread. */
static __noinline void rotate(sched_t *s, group_t *group, u64 now_ns)
{
    u32 sources = sort_sources(s, group, 0);
    u32 targets = sort_targets(s, group);
    for (u32 i = s->zero; i < targets && can_loop; i += s->one) {
        u32 target = at(s->targets, i);
        if (!find_swap(s, group, target, sources) || !move_to(s, group, target, now_ns))
            continue;
        queue_of(s, target)->newcomer = group->thread;
        queue_of(s, target)->rotated = ++s->rotations;
        s->rotation_due_ns = now_ns + s->rules.balance.rotate_period_ns;
        include(&group->receivers, target);
    }
}

global_subprog done_t balance_group(__arg_arena sched_t *s, u32 kind, bool due, u64 now_ns)
{
    struct balance __arena *periodic = &s->rules.balance;
    group_t *group = &s->group;
    group->settled_ns = sat_sub(now_ns, periodic->min_resident_ns);
    group->kind = kind;
    group->tolerance_percent = periodic->tolerance_percent;
    group->by_preference = rule(s, balance.by_preference);
    if (!is_uneven(s, group))
        return DONE;
    u32 moves = s->zero;
    for (u32 core = s->zero; core < s->core_count && can_loop; core += s->one)
        moves += is_in(s, group, core);
    for (; moves > 0 && can_loop; moves -= s->one) {
        u32 target = find_move(s, group);
        if (target == NONE || !move_to(s, group, target, now_ns))
            break;
        include(&group->receivers, target);
    }
    if (due)
        rotate(s, group, now_ns);
    return DONE;
}

/* Moves waiting threads from the most to the least loaded queues; the group then lists the receiving cores. */
static __noinline void balance(sched_t *s, u64 now_ns)
{
    bool due = now_ns >= s->rotation_due_ns;
    empty(s, &s->group.receivers);
    if (!may_balance(s, now_ns))
        return;
    if (!rule(s, balance.within_kind)) {
        balance_group(s, PREFER_ANY, due, now_ns);
        return;
    }
    balance_group(s, PREFER_BIG, due, now_ns);
    balance_group(s, PREFER_LITTLE, due, now_ns);
}

#endif
