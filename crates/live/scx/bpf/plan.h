/* SPDX-License-Identifier: GPL-2.0-only */
/* Threads are added, and changes of the plan carried out. After crates/policy/src/sched/mod.rs. */
#ifndef AMPSCHED_PLAN_H
#define AMPSCHED_PLAN_H

#include "place.h"

/* A slot for a new thread; NONE if all are taken. */
static __always_inline u32 free_slot(sched_t *s)
{
    u32 thread = s->free_slot;
    if (thread != NONE)
        s->free_slot = thread_of(s, thread)->next;
    else if (s->thread_count < READ_ONCE(s->slots))
        thread = s->thread_count++;
    return thread;
}

/* What a thread may use follows the cores that are online. If none of those that its program allows is, it stays bound
 * to the last one: there the kernel finds it, and then allows it others. Returns whether the plan wants fewer. */
global_subprog bool follow_online(__arg_arena sched_t *s, u32 thread)
{
    thread_t *own = thread_of(s, thread);
    if (!intersects(s, &own->allowed, &s->online))
        return false;
    intersect(s, &own->user_affinity, &own->allowed, &s->online);
    copy(s, &own->affinity, &own->user_affinity);
    return intersect(s, &own->affinity, &own->wanted, &own->user_affinity);
}

/* A program allows its thread some cores: it may use those of them that are online, all that are if none is. What the
 * plan wanted before is over. */
static __always_inline void allow(sched_t *s, u32 thread, set_t *cores)
{
    thread_t *own = thread_of(s, thread);
    copy(s, &own->allowed, cores);
    fill(s, &own->wanted);
    intersect(s, &own->user_affinity, cores, &s->online);
    copy(s, &own->affinity, &own->user_affinity);
}

/* A new thread gets a slot. */
static __noinline void clear_thread(sched_t *s, u32 thread, u32 weight, set_t *cores)
{
    thread_t *own = thread_of(s, thread);
    u32 generation = own->generation + 1;
    for (u32 i = s->zero; i < sizeof(struct thread) / sizeof(u64) && can_loop; i += s->one)
        at((u64 __arena *)own, i) = 0;
    own->generation = generation;
    own->in_use = true;
    own->weight = weight;
    allow(s, thread, cores);
    for (u32 i = s->zero; i < CLASSES_MAX && can_loop; i += s->one)
        at(own->speed, i) = SPEED_ONE;
    own->ran_on = own->prev = own->next = own->pull_to = own->bound_to = own->chosen = NONE;
    note_change(s, thread);
    record_cores(s, thread, &own->user_affinity);
    record_at(s, own->core, what_of(RECORD_ADD, 0, thread, 0), 0, weight);
}

static __always_inline u32 add_thread(sched_t *s, u32 weight, set_t *cores)
{
    u32 thread = free_slot(s);
    if (thread != NONE)
        clear_thread(s, thread, weight, cores);
    return thread;
}

static __always_inline void free_thread(sched_t *s, u32 thread)
{
    thread_of(s, thread)->next = s->free_slot;
    s->free_slot = thread;
    note_change(s, thread);
}

static __always_inline bool is_runnable(thread_t *thread)
{
    return thread->state == STATE_READY || thread->state == STATE_RUNNING;
}

static __noinline void reweigh(sched_t *s, u32 thread, u32 weight)
{
    thread_t *own = thread_of(s, thread);
    u32 old = own->weight;
    own->weight = weight > 0 ? weight : 1;
    if (own->weight == old)
        return;
    begin_turn_anew(s, thread);
    /* What the kernel has taken out for a moment is in no queue. */
    if (!is_runnable(own) || own->dequeued)
        return;
    queue_t *queue = queue_of(s, own->core);
    queue->load += own->weight - (u64)old;
    if (rule(s, order) == ORDER_DEADLINE)
        queue->weighted += ((s64)own->weight - (s64)old) * (s64)(own->vruntime - queue->base);
}

static __always_inline bool is_misplaced(sched_t *s, u32 thread)
{
    thread_t *own = thread_of(s, thread);
    return is_runnable(own) && !allows(s, thread, own->core);
}

/* Restricts a thread to cores within what its program allows. Returns whether it is now where it may not be. */
static __always_inline bool restrict_plan(sched_t *s, u32 thread, set_t *cores)
{
    thread_t *own = thread_of(s, thread);
    copy(s, &own->wanted, cores);
    return intersect(s, &own->affinity, cores, &own->user_affinity) && is_misplaced(s, thread);
}

/* The program itself restricts its thread. */
static __always_inline bool restrict_user(sched_t *s, u32 thread, set_t *cores)
{
    allow(s, thread, cores);
    return is_misplaced(s, thread);
}

/* Prefers a kind of core; with `now`, returns whether the thread is on the wrong kind though it need not be. */
static __always_inline bool prefer(sched_t *s, u32 thread, u32 kind, bool now)
{
    thread_t *own = thread_of(s, thread);
    own->prefer = kind;
    return now && is_runnable(own) && !is_preferred(s, thread, own->core) && may_use_preferred(s, thread);
}

/* Sets the predicted speed of a thread on a class of cores. */
static __always_inline void set_speed(sched_t *s, u32 thread, u32 class, u32 speed)
{
    thread_t *own = thread_of(s, thread);
    if (at(own->speed, class) == speed)
        return;
    at(own->speed, class) = speed;
    begin_turn_anew(s, thread);
}

/* Holds a thread back or lets it go on; returns whether it has to be moved for that. */
static __always_inline bool set_held(sched_t *s, u32 thread, bool held)
{
    thread_t *own = thread_of(s, thread);
    own->held = held;
    return held ? is_runnable(own) : own->state == STATE_HELD;
}

#endif
