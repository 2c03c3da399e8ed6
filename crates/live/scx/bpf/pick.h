/* SPDX-License-Identifier: GPL-2.0-only */
/* What a core does next: its own queue, then the steal steps. After crates/policy/src/sched/pick.rs. */
#ifndef AMPSCHED_PICK_H
#define AMPSCHED_PICK_H

#include "by_load.h"

/* How long two threads have shared a physical core before one of them is taken to an idle one. */
#define SHARED_NS 4000000

/* Whether a waiting thread may be run by a core. */
static __always_inline bool fits(sched_t *s, u32 thread, u32 core, u32 except)
{
    thread_t *own = thread_of(s, thread);
    return allows(s, thread, core) && own->prefer != except && (own->bound_to == NONE || own->bound_to == core);
}

/* EEVDF: the earliest deadline among the eligible, else among all. */
global_subprog u32 earliest_eligible(__arg_arena sched_t *s, __arg_arena queue_t *queue, u32 core, u32 except)
{
    u32 best = NONE, any = NONE;
    for (u32 thread = queue->first; thread != NONE && can_loop; thread = thread_of(s, thread)->next) {
        if (!fits(s, thread, core, except))
            continue;
        thread_t *own = thread_of(s, thread);
        thread_t *rival = thread_of(s, any);
        if (any == NONE || own->deadline < rival->deadline ||
            (own->deadline == rival->deadline && own->serial < rival->serial))
            any = thread;
        if (!is_eligible(own, queue))
            continue;
        rival = thread_of(s, best);
        if (best == NONE || own->deadline < rival->deadline ||
            (own->deadline == rival->deadline && own->serial < rival->serial))
            best = thread;
    }
    return best != NONE ? best : any;
}

/* The highest rank among the threads within the fair window; beyond it only if no thread within may run there. */
global_subprog u32 highest_rank(__arg_arena sched_t *s, __arg_arena queue_t *queue, u32 core, u32 except)
{
    u64 limit = sat_add(queue_least(s, queue), rule(s, fair_window_ns));
    u32 best = NONE;
    for (u32 thread = queue->first; thread != NONE && can_loop; thread = thread_of(s, thread)->next) {
        thread_t *own = thread_of(s, thread);
        if (own->key > limit && best != NONE)
            break;
        if (!fits(s, thread, core, except))
            continue;
        if (own->key > limit)
            return thread;
        thread_t *rival = thread_of(s, best);
        if (best == NONE || own->rank > rival->rank || (own->rank == rival->rank && own->serial < rival->serial))
            best = thread;
    }
    return best;
}

/* The first waiting thread of a queue that a core may run, but for those with the preference `except`. */
static __always_inline u32 first_of(sched_t *s, queue_t *queue, u32 core, u32 except)
{
    if (rule(s, order) == ORDER_DEADLINE)
        return earliest_eligible(s, queue, core, except);
    if (rule(s, order) == ORDER_HIGHEST_RANK)
        return highest_rank(s, queue, core, except);
    u32 thread = queue->first;
    while (thread != NONE && can_loop && !fits(s, thread, core, except))
        thread = thread_of(s, thread)->next;
    return thread;
}

/* Highest rank first; ties: the thread that has been in its state longest. */
static __always_inline bool ranks_before(sched_t *s, u32 a, u32 b)
{
    thread_t *one = thread_of(s, a), *other = thread_of(s, b);
    if (one->rank != other->rank)
        return one->rank > other->rank;
    if (one->since_ns != other->since_ns)
        return one->since_ns < other->since_ns;
    return a < b;
}

/* Whether a thread that waits elsewhere is taken rather than the best one found so far. */
static __always_inline bool is_better(sched_t *s, u32 thread, u32 best)
{
    if (best == NONE)
        return true;
    if (rule(s, order) == ORDER_HIGHEST_RANK)
        return ranks_before(s, thread, best);
    if (has_rounds(s) && round_of(s, thread) != round_of(s, best))
        return round_of(s, thread) < round_of(s, best);
    return scaled_load(queue_of(s, thread_of(s, thread)->core)) > scaled_load(queue_of(s, thread_of(s, best)->core));
}

/* Whether a waiting thread is in no earlier round than the one that the core would run otherwise. */
static __always_inline bool can_wait(sched_t *s, u32 thread, u32 instead_of)
{
    return instead_of != NONE && round_of(s, thread) >= round_of(s, instead_of);
}

/* A waiting thread of another core's queue. */
global_subprog done_t waiting_elsewhere(__arg_arena sched_t *s, __arg_arena pick_t *pick, __arg_arena steal_t *step)
{
    u32 core = pick->core;
    for (u32 other = s->zero; other < s->core_count && can_loop; other += s->one) {
        if (rule(s, queues) == QUEUES_PER_CORE && !any_of_eight(s->waiting, other)) {
            other += 7 * s->one;
            continue;
        }
        bool same_cluster = core_of(s, other)->cluster == core_of(s, core)->cluster;
        if (!has_waiting(s, core_of(s, other)->queue) || core_of(s, other)->queue == core_of(s, core)->queue ||
            same_cluster != (step->from == STEAL_FROM_OWN_CLUSTER) || passes_over(s, pick, other))
            continue;
        queue_t *queue = queue_of(s, other);
        u32 thread = can_spare(queue) ? first_of(s, queue, core, step->except) : NONE;
        if (thread == NONE || can_wait(s, thread, pick->instead_of))
            continue;
        if (is_better(s, thread, pick->thread))
            pick->thread = thread;
    }
    return DONE;
}

static __always_inline bool gains(sched_t *s, u32 thread, u32 from, u32 to, steal_t *step)
{
    thread_t *own = thread_of(s, thread);
    u64 gain = (u64)speed_on(s, thread, to) * SPEED_ONE / max(speed_on(s, thread, from), 1);
    return allows(s, thread, to) && own->prefer != step->except && gain >= step->min_gain;
}

/* Whether the thread that runs on core `from` would be two rounds behind the one that the core would run otherwise,
 * which may take its place. */
static __always_inline bool is_far_behind(sched_t *s, u32 thread, u32 from, pick_t *pick)
{
    u32 own = pick->instead_of;
    return own == NONE || (round_now(s, thread, from, pick->now_ns) + 1 < round_of(s, own) && allows(s, own, from));
}

/* A thread that runs on a core of a slower class. */
global_subprog done_t running_on_slower(__arg_arena sched_t *s, __arg_arena pick_t *pick, __arg_arena steal_t *step)
{
    u32 core = pick->core;
    u64 recheck_ns = pick->recheck_ns;
    pick->thread = NONE;
    for (u32 other = s->zero; other < s->core_count && can_loop; other += s->one) {
        u32 thread = core_of(s, other)->running;
        if (thread == NONE || core_of(s, other)->class >= core_of(s, core)->class || passes_over(s, pick, other))
            continue;
        thread_t *own = thread_of(s, thread);
        if (own->pull_to != NONE || !is_far_behind(s, thread, other, pick) || !gains(s, thread, other, core, step))
            continue;
        u64 due_ns = own->migrations == 0 ? pick->now_ns : own->migrated_at_ns + step->min_resident_ns;
        if (pick->now_ns < due_ns)
            pick->recheck_ns = min(pick->recheck_ns, due_ns);
        else if (pick->thread == NONE || ranks_before(s, thread, pick->thread))
            pick->thread = thread;
    }
    if (pick->thread == NONE)
        return DONE;
    pick->kind = PICK_PULL;
    pick->recheck_ns = recheck_ns;
    return DONE;
}

static __always_inline bool may_try(sched_t *s, u32 core, steal_t *step)
{
    return step->who == PREFER_ANY || step->who == core_of(s, core)->kind;
}

/* What a step yields, now or when. */
static __always_inline void try_steal(sched_t *s, pick_t *pick, steal_t *step)
{
    /* Half of a core is not faster. */
    if (step->from == STEAL_FROM_RUNNING_ON_SLOWER && shares_core(s, pick->core))
        return;
    if (step->load != STEAL_LOAD_ANY)
        return steal_by_load(s, pick, step);
    if (step->from == STEAL_FROM_RUNNING_ON_SLOWER) {
        running_on_slower(s, pick, step);
        return;
    }
    pick->thread = NONE;
    pick->except = step->except;
    if (any_queue_waits(s))
        waiting_elsewhere(s, pick, step);
    if (pick->thread == NONE)
        return;
    u64 due_ns = core_of(s, pick->core)->since_ns + step->min_idle_ns;
    if (pick->now_ns < due_ns)
        pick->recheck_ns = min(pick->recheck_ns, due_ns);
    else
        pick->kind = PICK_RUN;
}

/* A thread that an idle core with an idle sibling takes from two that share a physical core of its class, those who
 * have for longest, or when it would. After crates/policy/src/sched/part.rs. */
global_subprog done_t part(__arg_arena sched_t *s, __arg_arena pick_t *pick)
{
    u32 core = pick->core;
    u64 least_ns = opaque(s, NEVER);
    pick->thread = NONE;
    if (shares_core(s, core))
        return DONE;
    for (u32 other = s->zero; other < s->core_count && can_loop; other += s->one) {
        core_t *own = core_of(s, other);
        if (own->sibling == NONE || own->class != core_of(s, core)->class || own->running == NONE)
            continue;
        core_t *beside = core_of(s, own->sibling);
        if (beside->running == NONE || !allows(s, own->running, core) || thread_of(s, own->running)->pull_to != NONE)
            continue;
        u64 since_ns = max(own->since_ns, beside->since_ns);
        if (since_ns >= least_ns)
            continue;
        least_ns = since_ns;
        pick->thread = own->running;
    }
    if (pick->thread == NONE)
        return DONE;
    if (pick->now_ns < least_ns + SHARED_NS)
        pick->recheck_ns = min(pick->recheck_ns, least_ns + SHARED_NS);
    else
        pick->kind = PICK_PULL;
    return DONE;
}

/* Whether idle cores like this one steal within a cluster. */
static __always_inline bool steals_nearby(sched_t *s, u32 core)
{
    for (u32 i = s->zero; i < rule(s, steps) && can_loop; i += s->one)
        if (at(s->rules.steal, i).from == STEAL_FROM_OWN_CLUSTER && may_try(s, core, &at(s->rules.steal, i)))
            return true;
    return false;
}

/* What the steal steps yield. It only looks, so that no lock is needed but those of rounds. */
global_subprog done_t pick_elsewhere(__arg_arena sched_t *s, __arg_arena pick_t *pick)
{
    pick->kind = PICK_IDLE;
    pick->passed = false;
    pick->recheck_ns = NEVER;
    if (!may_balance(s, pick->now_ns)) {
        pick->thread = NONE;
        pick->recheck_ns = search_again_ns(s, pick->now_ns);
        return DONE;
    }
    for (u32 i = s->zero; i < rule(s, steps) && can_loop && pick->kind == PICK_IDLE && !pick->passed; i += s->one)
        if (may_try(s, pick->core, &at(s->rules.steal, i)))
            try_steal(s, pick, &at(s->rules.steal, i));
    if (has_smt(s) && pick->kind == PICK_IDLE && !pick->passed && pick->instead_of == NONE &&
        steals_nearby(s, pick->core))
        part(s, pick);
    if (pick->kind == PICK_IDLE)
        pick->thread = NONE;
    return DONE;
}

/* The same of a core that acts on it; `passes`: without queues that are locked. */
static __always_inline void search(sched_t *s, pick_t *pick, bool passes)
{
    pick->passes = passes;
    begin_search(s, pick);
    pick_elsewhere(s, pick);
    record_search(s, pick, what_of(RECORD_ELSEWHERE, pick->kind | pick->passed << 7, pick->thread, pick->core),
                  pick->now_ns, pick->instead_of);
    pick->passes = false;
}

/* Whether a core looks elsewhere before it enters the round of its own next thread. */
static __always_inline bool searches_others_first(sched_t *s, u32 own)
{
    if (!has_rounds(s))
        return false;
    u64 round = round_of(s, own);
    return round > s->rounds.latest || (round == s->rounds.latest && s->rounds.waiting_earlier > 0);
}

/* What a core without a running thread does next if that is in its own queue. Returns whether it need not look
 * elsewhere. */
global_subprog bool pick_own(__arg_arena sched_t *s, __arg_arena pick_t *pick, u32 core, u64 now_ns)
{
    u32 own = first_of(s, queue_of(s, core), core, NONE);
    pick->core = core;
    pick->now_ns = now_ns;
    pick->instead_of = own;
    record_at(s, core, what_of(RECORD_FIRST, 0, own, core), now_ns, 0);
    if (own == NONE)
        return false;
    if (searches_others_first(s, own)) {
        search(s, pick, false);
        if (pick->kind != PICK_IDLE)
            return true;
    }
    pick->kind = PICK_RUN;
    pick->thread = own;
    pick->recheck_ns = NEVER;
    return true;
}

/* What a core without a running thread does next. */
static __always_inline void pick_by_rules(sched_t *s, pick_t *pick, u32 core, u64 now_ns)
{
    if (!pick_own(s, pick, core, now_ns))
        pick_elsewhere(s, pick);
}

/* When the thread that runs on a core has to let others run; NEVER if no thread waits. It must have been charged up to
 * now. */
static __always_inline u64 expiry_ns(sched_t *s, u32 core, u64 now_ns)
{
    if (has_rounds(s))
        return expiry_in_rounds(s, core, now_ns);
    u32 thread = core_of(s, core)->running;
    if (queue_of(s, core)->len == 0 || thread == NONE)
        return NEVER;
    return at_tick(s, max(slice_end_ns(s, core, thread, now_ns), now_ns));
}

/* EEVDF: whether choosing anew would yield the woken thread, or the request of the running one is used up anyway. */
static __always_inline bool is_fresh_pick(sched_t *s, u32 woken, u32 running, u32 core)
{
    queue_t *queue = queue_of(s, core);
    thread_t *current = thread_of(s, running);
    if (current->vruntime >= current->deadline)
        return true;
    bool competes = is_eligible(current, queue);
    if (rule(s, run_to_parity) && competes)
        return false;
    return first_of(s, queue, core, NONE) == woken && !(competes && current->deadline <= thread_of(s, woken)->deadline);
}

/* Whether a woken thread, already in the core's queue, interrupts the one that runs there, which must have been
 * charged. */
static __noinline bool preempts(sched_t *s, u32 woken, u32 running, u32 core)
{
    if (rule(s, preempt) == PREEMPT_NEVER)
        return false;
    if (rule(s, preempt) == PREEMPT_EARLIER_DEADLINE)
        return is_fresh_pick(s, woken, running, core);
    thread_t *own = thread_of(s, woken);
    u64 compared = thread_of(s, running)->vruntime, granularity_ns = rule(s, granularity_ns);
    if (rule(s, preempt) == PREEMPT_SCALED_VRUNTIME_GAP) {
        granularity_ns = rule(s, scaled_granularity_ns);
        /* Only the part above the queue's least has a meaning. */
        u64 floor = min(queue_of(s, core)->min_vruntime, compared);
        compared = floor + (compared - floor) * SPEED_ONE / max(speed_on(s, running, core), 1);
    }
    return sat_sub(compared, own->vruntime) > to_virtual(granularity_ns, own->weight);
}

#endif
