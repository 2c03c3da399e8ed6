/* SPDX-License-Identifier: GPL-2.0-only */
/* Threads come into queues, onto cores and off them; the books follow. After crates/policy/src/sched/moves.rs. */
#ifndef AMPSCHED_MOVES_H
#define AMPSCHED_MOVES_H

#include "deadline.h"
#include "lock.h"
#include "rounds.h"

/* Sets the virtual run time of a thread that comes to a core's queue from elsewhere. */
static __always_inline void place_vruntime(sched_t *s, u32 thread, u32 core, u32 kind)
{
    if (rule(s, order) == ORDER_DEADLINE) {
        place_deadline(s, thread, core, kind);
        return;
    }
    if (has_rounds(s))
        return place_in_round(s, thread, core, kind);
    thread_t *own = thread_of(s, thread);
    queue_t *queue = queue_of(s, core);
    u64 target = queue->min_vruntime;
    if (kind == ENQUEUE_FORK) {
        u64 debit_ns = stated_slice_ns(s);
        if (rule(s, slice) == SLICE_LATENCY_SHARE)
            debit_ns = share_ns(s, queue, own->weight, 1);
        own->vruntime = target + (rule(s, fork_debit) ? to_virtual(debit_ns, own->weight) : 0);
        return;
    }
    /* Virtual run times mean something only relative to their queue's least one. */
    u64 source = queue_of(s, own->core)->min_vruntime;
    u64 floor = kind == ENQUEUE_WAKE ? sat_sub(target, rule(s, sleeper_credit_ns)) : 0;
    own->vruntime = max(sat_sub(target + own->vruntime, source), floor);
}

static __always_inline void join_queue(sched_t *s, u32 thread, queue_t *queue)
{
    thread_t *own = thread_of(s, thread);
    if (rule(s, order) == ORDER_DEADLINE) {
        if (queue->load == 0)
            queue->base = own->vruntime;
        queue->weighted += (s64)own->weight * (s64)(own->vruntime - queue->base);
    }
    queue->load += own->weight;
}

static __always_inline void leave_queue(sched_t *s, u32 thread, queue_t *queue)
{
    thread_t *own = thread_of(s, thread);
    if (rule(s, order) == ORDER_DEADLINE) {
        keep_lag(s, thread, queue);
        queue->weighted -= (s64)own->weight * (s64)(own->vruntime - queue->base);
        if (queue->load == own->weight)
            queue->min_vruntime = own->vruntime;
    }
    queue->load -= own->weight;
}

/* A thread has left a queue for good or to sleep. If no thread runs there, the first waiting one has the least virtual
 * run time now; else that is seen when the running thread is charged. */
static __always_inline void update_min_vruntime(sched_t *s, queue_t *queue)
{
    u64 order = rule(s, order);
    if (queue->running == 0 && queue->len > 0 && order != ORDER_FIFO && order != ORDER_DEADLINE)
        queue->min_vruntime = max(queue->min_vruntime, queue_least(s, queue));
}

static __always_inline void count_wait(thread_t *thread, u64 waited_ns)
{
    thread->ready_ns += waited_ns;
    thread->ready_ns_max = max(thread->ready_ns_max, waited_ns);
}

static __always_inline void leave_state(thread_t *thread, u64 now_ns)
{
    /* A CPU that has had to wait for a lock comes with an earlier time than the lock's last holder. */
    u64 waited_ns = sat_sub(now_ns, thread->since_ns);
    if (thread->state == STATE_READY || thread->state == STATE_HELD)
        count_wait(thread, waited_ns);
    else if (thread->state == STATE_BLOCKED) {
        thread->blocked_ns += waited_ns;
        thread->woken_ns = now_ns;
    }
}

static __always_inline void enter_state(thread_t *thread, u32 state, u64 now_ns)
{
    thread->state = state;
    thread->since_ns = now_ns;
}

static __always_inline void push(sched_t *s, u32 thread, queue_t *queue)
{
    thread_t *own = thread_of(s, thread);
    queue->serial++;
    own->key = rule(s, order) == ORDER_FIFO ? 0 : own->vruntime;
    own->serial = queue->serial;
    queue_push(s, queue, thread);
}

/* Puts a thread that is not in a queue into the queue of a core. */
global_subprog done_t enqueue(__arg_arena sched_t *s, u32 thread, u32 core, u32 kind, u64 now_ns)
{
    note_change(s, thread);
    thread_t *own = thread_of(s, thread);
    leave_state(own, now_ns);
    if (kind != ENQUEUE_REQUEUE || core_of(s, own->core)->queue != core_of(s, core)->queue)
        place_vruntime(s, thread, core, kind);
    enter_state(own, STATE_READY, now_ns);
    own->core = core;
    queue_t *queue = queue_of(s, core);
    join_queue(s, thread, queue);
    push(s, thread, queue);
    track(s, thread, core, ACTIVITY_WAITING, now_ns);
    if (has_rounds(s))
        count_in_round(s, thread, 1);
    record_at(s, core, what_of(RECORD_ENQUEUE, kind, thread, core), now_ns, own->vruntime);
    return DONE;
}

/* Puts a waiting thread on a core. */
static __noinline void start(sched_t *s, u32 core, u32 thread, u64 now_ns)
{
    note_change(s, thread);
    thread_t *own = thread_of(s, thread);
    core_t *cpu = core_of(s, core);
    queue_t *old = queue_of(s, own->core), *new = queue_of(s, core);
    count_wait(own, sat_sub(now_ns, own->since_ns));
    queue_remove(s, old, thread);
    if (old != new) {
        leave_queue(s, thread, old);
        place_vruntime(s, thread, core, ENQUEUE_REQUEUE);
        join_queue(s, thread, new);
    }
    if (has_rounds(s)) {
        count_in_round(s, thread, -1);
        enter_round(s, thread, core);
    }
    new->running++;
    enter_state(own, STATE_RUNNING, now_ns);
    own->core = core;
    if (own->ran_on != NONE && own->ran_on != core) {
        own->migrations++;
        own->migrated_at_ns = now_ns;
    }
    own->ran_on = core;
    WRITE_ONCE(at(s->idle, core), false);
    /* Another thread may have had the slot before. */
    own->switches += cpu->last != thread || cpu->last_generation != own->generation;
    cpu->last_generation = own->generation;
    cpu->running = cpu->last = thread;
    begin_turn(cpu);
    cpu->since_ns = now_ns;
    track(s, thread, core, ACTIVITY_RUNNING, now_ns);
    record_at(s, core, what_of(RECORD_START, 0, thread, core), now_ns, own->vruntime);
}

/* Takes the running thread off a core; it is then in no queue. */
static __noinline void stop(sched_t *s, u32 core, u32 state, u64 now_ns)
{
    core_t *cpu = core_of(s, core);
    queue_t *queue = queue_of(s, core);
    u32 thread = cpu->running;
    note_change(s, thread);
    cpu->running = NONE;
    cpu->since_ns = now_ns;
    WRITE_ONCE(at(s->idle, core), has(&s->online, core));
    queue->running--;
    leave_queue(s, thread, queue);
    if (has_rounds(s))
        end_in_round(s, thread);
    if (state != STATE_READY)
        update_min_vruntime(s, queue);
    enter_state(thread_of(s, thread), state, now_ns);
    /* One that is ready is queued or held back at once, which is tracked then. */
    if (state != STATE_READY)
        track_rest(s, thread, state, now_ns);
    record_at(s, core, what_of(RECORD_STOP, state, thread, core), now_ns, thread_of(s, thread)->vruntime);
}

/* The running thread loses its core and waits in the core's queue again. */
static __always_inline void requeue(sched_t *s, u32 core, u64 now_ns)
{
    u32 thread = core_of(s, core)->running;
    stop(s, core, STATE_READY, now_ns);
    enqueue(s, thread, core, ENQUEUE_REQUEUE, now_ns);
}

/* Takes a waiting thread out of its queue. */
static __noinline void dequeue(sched_t *s, u32 thread)
{
    queue_t *queue = queue_of(s, thread_of(s, thread)->core);
    queue_remove(s, queue, thread);
    leave_queue(s, thread, queue);
    if (has_rounds(s))
        count_in_round(s, thread, -1);
    record_at(s, thread_of(s, thread)->core, what_of(RECORD_DEQUEUE, 0, thread, 0), 0, 0);
}

/* Holds back, or ends, a thread that is in no queue and on no core. */
static __always_inline void block(sched_t *s, u32 thread, u32 state, u64 now_ns)
{
    note_change(s, thread);
    thread_t *own = thread_of(s, thread);
    leave_state(own, now_ns);
    enter_state(own, state, now_ns);
    track_rest(s, thread, state, now_ns);
    if (state == STATE_EXITED)
        update_min_vruntime(s, queue_of(s, own->core));
    record_at(s, own->core, what_of(RECORD_LEAVE, state, thread, 0), now_ns, own->vruntime);
}

#endif
