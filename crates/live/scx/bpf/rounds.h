/* SPDX-License-Identifier: GPL-2.0-only */
/* Rounds: no thread enters a round that is more than one ahead of another thread's. After
 * crates/policy/src/sched/rounds.rs. */
#ifndef AMPSCHED_ROUNDS_H
#define AMPSCHED_ROUNDS_H

#include "track.h"
#include "vtime.h"

static __always_inline bool has_rounds(sched_t *s)
{
    return rule(s, order) == ORDER_ROUNDS;
}

/* The earliest round in which a thread can be. */
static __always_inline u64 earliest_round(sched_t *s)
{
    return sat_sub(s->rounds.latest, 1);
}

static __always_inline u64 round_at(sched_t *s, u64 vruntime)
{
    return max(vruntime / rule(s, length_ns), earliest_round(s));
}

/* The round of a thread as of its last charge; 0 if there are no rounds. */
static __always_inline u64 round_of(sched_t *s, u32 thread)
{
    return has_rounds(s) ? round_at(s, thread_of(s, thread)->vruntime) : 0;
}

/* The round of the thread that runs on a core, with what it has not been charged for yet. */
static __always_inline u64 round_now(sched_t *s, u32 thread, u32 core, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    u64 charged_ns = run_ns_total(own) - at(s->rounds.run_ns_before, core);
    u64 uncharged_ns = sat_sub(sat_sub(now_ns, core_of(s, core)->since_ns), charged_ns);
    u64 counted = counted_ns(s, thread, core, uncharged_ns);
    return round_at(s, own->vruntime + to_virtual(counted, own->weight));
}

/* A thread that does not run waits for the next round at most, even if it ran on for longer. */
static __always_inline void end_in_round(sched_t *s, u32 thread)
{
    u64 end = (s->rounds.latest + 2) * rule(s, length_ns) - 1;
    thread_t *own = thread_of(s, thread);
    own->vruntime = min(own->vruntime, end);
}

/* A new thread joins the latest round: it is not owed the past. Others stay in theirs. */
static __always_inline void place_in_round(sched_t *s, u32 thread, u32 core, u32 kind)
{
    if (kind != ENQUEUE_FORK)
        return;
    u64 begin = s->rounds.latest * rule(s, length_ns);
    thread_of(s, thread)->vruntime = max(begin, queue_of(s, core)->min_vruntime);
    end_in_round(s, thread);
}

/* A thread comes into a queue (1) or leaves it (-1). */
static __always_inline void count_in_round(sched_t *s, u32 thread, s32 more)
{
    u64 round = thread_of(s, thread)->vruntime / rule(s, length_ns);
    s->rounds.waiting += more;
    if (round < s->rounds.latest)
        s->rounds.waiting_earlier += more;
    else if (round == s->rounds.latest)
        s->rounds.waiting_latest += more;
}

/* A thread that has left its queue starts on a core. If it is in the next round, that begins now. */
static __always_inline void enter_round(sched_t *s, u32 thread, u32 core)
{
    thread_t *own = thread_of(s, thread);
    at(s->rounds.run_ns_before, core) = run_ns_total(own);
    own->vruntime = max(own->vruntime, earliest_round(s) * rule(s, length_ns));
    if (own->vruntime / rule(s, length_ns) <= s->rounds.latest)
        return;
    u32 in_next = s->rounds.waiting - s->rounds.waiting_earlier - s->rounds.waiting_latest;
    s->rounds.waiting_earlier += s->rounds.waiting_latest;
    s->rounds.waiting_latest = in_next;
    s->rounds.latest++;
}

/* When the slice or the round of the thread that runs on a core ends. */
static __noinline u64 expiry_in_rounds(sched_t *s, u32 core, u64 now_ns)
{
    u32 thread = core_of(s, core)->running;
    if (thread == NONE)
        return NEVER;
    thread_t *own = thread_of(s, thread);
    u64 left = rule(s, length_ns) - own->vruntime % rule(s, length_ns);
    u64 left_ns = to_real(left, own->weight) * SPEED_ONE;
    u64 round_end_ns = now_ns + div_round_up(left_ns, max(pace_on(s, thread, core), 1));
    u64 end_ns = min(round_end_ns, slice_end_ns(s, core, thread, now_ns));
    return at_tick(s, max(end_ns, now_ns));
}

#endif
