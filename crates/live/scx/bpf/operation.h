/* SPDX-License-Identifier: GPL-2.0-only */
/* The interpreter behind one function: what a replay of events, and a loader with a changed plan, ask of it. */
#ifndef AMPSCHED_OPERATION_H
#define AMPSCHED_OPERATION_H

#include "balance.h"
#include "pick.h"
#include "plan.h"

enum operation_kind {
    OP_ADD, /* a: weight, cores -> value: thread */
    OP_ENQUEUE, /* thread, core, a: kind */
    OP_START, /* core, thread */
    OP_CHARGE, /* core, a: ns */
    OP_STOP, /* core, a: state */
    OP_REQUEUE, /* core */
    OP_DEQUEUE, /* thread */
    OP_LEAVE, /* thread, a: state */
    OP_BALANCE, /* -> cores: those whose queues received a thread */
    OP_PLACE, /* thread, core: the waker's or NONE -> value: core */
    OP_PICK, /* core -> kind, thread, value: recheck */
    OP_EXPIRY, /* core -> value: ns */
    OP_PREEMPTS, /* thread, core -> value */
    OP_USER_AFFINITY, /* thread, cores -> value: must be moved */
    OP_PACE, /* core, a, b: runs at a / b of its highest frequency */
    /* this and a CHANGE_: thread, a or cores: what is set (core: the class, of a speed) -> value: must be moved */
    OP_CHANGE = 64,
};

struct operation {
    u64 now_ns;
    u64 a;
    u64 b;
    u32 kind;
    u32 thread;
    u32 core;
    u32 generation; /* of the thread's slot */
    /* Answer */
    u64 value;
    u32 pick_kind;
    u32 pick_thread;
    struct set cores;
};

/* A change of the plan; returns whether the thread must be moved. */
static __noinline bool apply_change(sched_t *s, struct operation __arena *op)
{
    u32 thread = op->thread;
    switch (op->kind - OP_CHANGE) {
    case CHANGE_AFFINITY:
        return restrict_plan(s, thread, &op->cores);
    case CHANGE_PREFER:
        return prefer(s, thread, op->a, false);
    case CHANGE_MOVE:
        return prefer(s, thread, op->a, true);
    case CHANGE_RANK:
        thread_of(s, thread)->rank = op->a;
        return false;
    case CHANGE_WEIGHT:
        reweigh(s, thread, op->a);
        return false;
    case CHANGE_SPEED:
        set_speed(s, thread, op->core, op->a);
        return false;
    case CHANGE_SLICE:
        thread_of(s, thread)->slice_ns = op->a;
        return false;
    case CHANGE_HOLD:
        return set_held(s, thread, op->a);
    }
    return false;
}

/* A question. */
static __always_inline u64 query(sched_t *s, struct operation __arena *op)
{
    switch (op->kind) {
    case OP_BALANCE:
        balance(s, op->now_ns);
        copy(s, &op->cores, &s->group.receivers);
        return 0;
    case OP_PLACE:
        return place(s, op->thread, op->core, op->now_ns);
    case OP_EXPIRY:
        return expiry_ns(s, op->core, op->now_ns);
    case OP_PREEMPTS:
        return preempts(s, op->thread, core_of(s, op->core)->running, op->core);
    }
    pick_t *pick = &at(s->calls, CALL_OF_PLAN).pick;
    pick_by_rules(s, pick, op->core, op->now_ns);
    op->pick_kind = pick->kind;
    op->pick_thread = pick->thread;
    return pick->recheck_ns;
}

/* Something happens. */
static __noinline u64 apply_event(sched_t *s, struct operation __arena *op)
{
    switch (op->kind) {
    case OP_ADD:
        return add_thread(s, op->a, &op->cores);
    case OP_ENQUEUE:
        enqueue(s, op->thread, op->core, op->a, op->now_ns);
        break;
    case OP_START:
        start(s, op->core, op->thread, op->now_ns);
        break;
    case OP_CHARGE:
        charge(s, op->core, op->a);
        break;
    case OP_STOP:
        stop(s, op->core, op->a, op->now_ns);
        break;
    case OP_REQUEUE:
        requeue(s, op->core, op->now_ns);
        break;
    case OP_DEQUEUE:
        dequeue(s, op->thread);
        break;
    case OP_LEAVE:
        block(s, op->thread, op->a, op->now_ns);
        break;
    case OP_USER_AFFINITY:
        return restrict_user(s, op->thread, &op->cores);
    case OP_PACE:
        set_pace(s, op->core, op->a, op->b, op->now_ns);
    }
    return 0;
}

static __always_inline void operate(sched_t *s, struct operation __arena *op)
{
    if (op->kind >= OP_CHANGE)
        op->value = apply_change(s, op);
    else if (op->kind >= OP_BALANCE && op->kind <= OP_PREEMPTS)
        op->value = query(s, op);
    else
        op->value = apply_event(s, op);
}

#endif
