/* SPDX-License-Identifier: GPL-2.0-only */
/* Earliest eligible virtual deadline first: eligibility, deadlines, lag. After crates/policy/src/sched/eevdf.rs. */
#ifndef AMPSCHED_DEADLINE_H
#define AMPSCHED_DEADLINE_H

#include "vtime.h"

/* Whether a thread has had no more than its share. */
static __always_inline bool is_eligible(thread_t *thread, queue_t *queue)
{
    return (s64)(thread->vruntime - queue->base) * (s64)queue->load <= queue->weighted;
}

static __always_inline u64 request_virtual(sched_t *s, thread_t *thread)
{
    u64 request_ns = rule(s, slice) == SLICE_REQUEST ? rule(s, base_ns) : 0;
    return to_virtual(thread->slice_ns > 0 ? thread->slice_ns : request_ns, thread->weight);
}

/* The lag of a sleeping thread that owes time, had it stayed in its queue without running. */
static __always_inline s64 remaining_debt(sched_t *s, thread_t *thread)
{
    queue_t *queue = queue_of(s, thread->core);
    s64 gap = mean_vruntime(queue) - (s64)thread->vruntime;
    if (gap >= 0)
        return 0;
    s64 debt = div_to_zero(gap * (s64)queue->load, queue->load + thread->weight);
    return debt < thread->lag ? thread->lag : debt;
}

/* What a thread is owed when it comes to a queue. */
static __always_inline s64 kept_lag(sched_t *s, thread_t *thread, u32 kind)
{
    if (kind == ENQUEUE_FORK)
        return 0;
    return kind == ENQUEUE_WAKE && thread->lag < 0 ? remaining_debt(s, thread) : thread->lag;
}

global_subprog done_t place_deadline(__arg_arena sched_t *s, u32 thread, u32 core, u32 kind)
{
    thread_t *own = thread_of(s, thread);
    queue_t *queue = queue_of(s, core);
    s64 lag = kept_lag(s, own, kind);
    /* lag x (load + weight) / load, in steps that do not overflow. */
    if (queue->load > 0)
        lag += div_to_zero(lag * (s64)own->weight, queue->load);
    s64 vruntime = mean_vruntime(queue) - lag;
    u64 request = request_virtual(s, own);
    if (kind == ENQUEUE_FORK)
        request /= 2;
    else if (kind == ENQUEUE_REQUEUE)
        request = sat_sub(own->deadline, own->vruntime);
    own->vruntime = vruntime < 0 ? 0 : (u64)vruntime;
    own->deadline = own->vruntime + request;
    return DONE;
}

/* Remembers how much time a thread that leaves its queue is owed; a request that is used up is renewed. */
static __noinline void keep_lag(sched_t *s, u32 thread, queue_t *queue)
{
    thread_t *own = thread_of(s, thread);
    u64 request = request_virtual(s, own);
    s64 limit = 2 * (s64)request;
    s64 lag = mean_vruntime(queue) - (s64)own->vruntime;
    own->lag = lag > limit ? limit : lag < -limit ? -limit : lag;
    if (own->vruntime >= own->deadline)
        own->deadline = own->vruntime + request;
}

#endif
