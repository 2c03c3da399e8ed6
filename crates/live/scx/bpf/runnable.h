/* SPDX-License-Identifier: GPL-2.0-only */
/* Threads become runnable, are handed over and arrive, or are no longer runnable. Callers hold no lock (lock.h). */
#ifndef AMPSCHED_RUNNABLE_H
#define AMPSCHED_RUNNABLE_H

#include "choose.h"

/* A thread that is in no queue comes to a core, if it still may and is not held back. Returns whether it has a place.
 * Apart, as little is to be on the stack while places are compared. */
global_subprog bool try_enqueue(__arg_arena sched_t *s, __arg_arena call_t *c, u32 thread, u32 core)
{
    thread_t *own = thread_of(s, thread);
    locks_t held = lock_thread_and_core(s, thread, core);
    bool comes = c->back ? own->dequeued || own->state == STATE_HELD : is_off_rq(own), done = !comes || own->held;
    if (comes && own->held) {
        own->dequeued = false;
        block(s, thread, STATE_HELD, c->now_ns);
    } else if (comes && allows(s, thread, core)) {
        charge_up_to(s, core, c->now_ns);
        bind(s, thread, NONE);
        enqueue_thread(s, thread, core, c->now_ns);
        wakeup_preempt(s, c, thread, core);
        run_here(s, c, thread, core);
        done = true;
    }
    unlock_both(s, held);
    return done;
}

/* A thread that is in no queue becomes runnable: where the allocator says, or where it was if it has to stay there.
 * c->back: one that has been taken out of a queue for that, or held, unless another CPU has brought it back. */
static __always_inline void make_runnable(sched_t *s, call_t *c, u32 thread)
{
    while (can_loop) {
        u32 core = where_to(s, c, thread);
        if (core == NONE || try_enqueue(s, c, thread, core))
            return;
    }
}

/* Takes a thread out of wherever it is; it is then in no queue and on no core. */
static __noinline void dequeue_thread(sched_t *s, call_t *c, u32 thread, u32 state)
{
    u32 held = lock_thread(s, thread);
    dequeue_locked(s, c, thread, state);
    unlock(s, held);
}

/* The kernel takes a runnable thread out and will bring it back. */
static __noinline void suspend(sched_t *s, call_t *c, u32 thread)
{
    thread_t *own = thread_of(s, thread);
    u32 held = lock_thread(s, thread);
    if (is_runnable(own) && !own->dequeued) {
        dequeue_locked(s, c, thread, STATE_READY);
        own->dequeued = true;
    }
    unlock(s, held);
}

/* A thread that waits comes to the core that pulls it, if that still idles. Returns whether it has begun there. */
static __noinline bool run_at_puller(sched_t *s, call_t *c, u32 thread, u32 puller)
{
    thread_t *own = thread_of(s, thread);
    locks_t held = lock_thread_and_core(s, thread, puller);
    bool comes = own->state == STATE_READY && !own->dequeued && own->bound_to == NONE &&
                 core_of(s, puller)->running == NONE && allows(s, thread, puller);
    if (comes)
        run_thread(s, c, puller, thread);
    unlock_both(s, held);
    return comes;
}

enum handed { HANDED_STAYS, HANDED_WAITS, HANDED_LEAVES };

/* The kernel hands a thread over that is in a queue, or on its core in the books. */
static __always_inline u32 hand_over_here(sched_t *s, call_t *c, u32 thread)
{
    thread_t *own = thread_of(s, thread);
    u32 core = own->core;
    if (own->state == STATE_RUNNING) {
        if (keeps_core(s, thread, c->now_ns)) {
            own->charged_ns = OFF_CPU;
            return HANDED_STAYS;
        }
        put_prev(s, core, c->now_ns);
    }
    if (own->state != STATE_READY)
        return HANDED_WAITS;
    if (own->dequeued) {
        own->chosen = allows(s, thread, core) ? core : NONE;
        return HANDED_LEAVES;
    }
    bool comes = own->arriving;
    clear_arriving(s, thread);
    bind(s, thread, NONE);
    if (own->must_move || !allows(s, thread, core)) {
        own->must_move = false;
        release_puller(s, c, thread);
        dequeue(s, thread);
        own->dequeued = true;
        return HANDED_LEAVES;
    }
    if (own->pull_to != NONE && is_core_idle(s, own->pull_to) && allows(s, thread, own->pull_to))
        return HANDED_WAITS;
    set_puller(s, thread, NONE);
    if (comes) {
        charge_up_to(s, core, c->now_ns);
        wakeup_preempt(s, c, thread, core);
    } else {
        after_enqueue(s, c, core);
    }
    run_here(s, c, thread, core);
    return HANDED_WAITS;
}

/* Whether a thread that the kernel hands over has slept, or is new, without a lock: only the kernel's calls for this
 * thread, one after the other, end that. */
static __always_inline bool has_slept(thread_t *thread)
{
    return thread->state == STATE_NEW || thread->state == STATE_BLOCKED;
}

/* The kernel hands a runnable thread over. Returns the core to which it shall be sent now, or NONE; c->begun says
 * whether it has begun on the CPU where it is. */
static __always_inline u32 hand_over(sched_t *s, call_t *c, u32 thread)
{
    thread_t *own = thread_of(s, thread);
    c->started = false;
    c->back = !has_slept(own);
    u32 core = NONE, handed = HANDED_LEAVES, puller = NONE;
    if (c->back) {
        u32 held = lock_thread(s, thread);
        core = own->core;
        handed = hand_over_here(s, c, thread);
        if (handed == HANDED_WAITS && own->state == STATE_READY) {
            puller = own->pull_to;
            set_puller(s, thread, NONE);
        }
        unlock(s, held);
    }
    if (handed == HANDED_STAYS)
        return core;
    if (handed == HANDED_LEAVES) {
        make_runnable(s, c, thread);
        return NONE;
    }
    if (puller == NONE)
        return NONE;
    if (run_at_puller(s, c, thread, puller))
        return puller;
    after_enqueue(s, c, core);
    return NONE;
}

/* A thread that wakes up, or is new, has been placed at an idle core: the kernel need not hand it over if it begins
 * there. Otherwise no core picks it until the kernel has done so. */
static __noinline bool run_before_enqueue(sched_t *s, call_t *c, u32 thread, u32 core)
{
    thread_t *own = thread_of(s, thread);
    locks_t held = lock_thread_and_core(s, thread, core);
    bool comes = has_slept(own) && !own->held && is_core_free(s, core) && allows(s, thread, core);
    bool begins = false;
    if (comes) {
        bind(s, thread, NONE);
        enqueue_thread(s, thread, core, c->now_ns);
        begins = run_at_once(s, c, thread, core);
        if (!begins)
            bind(s, thread, NO_CORE);
    }
    unlock_both(s, held);
    return begins;
}

/* A thread wakes up, or is new. Returns where it shall wait, or NONE; c->begun says whether it has begun there, on an
 * idle core, as after most wake-ups. If another thread has come to that core meanwhile, the thread is placed anew, as
 * if it had woken after that: else all that wake at about the same time would gather at the first idle core. */
static __always_inline u32 wake_up(sched_t *s, call_t *c, u32 thread, u32 waker)
{
    thread_t *own = thread_of(s, thread);
    u32 core;
    c->started = false;
    do {
        core = choose_core(s, c, thread, waker);
        if (core == NONE || !is_core_free(s, core) || READ_ONCE(core_of(s, core)->others_run))
            return core;
        c->started = run_before_enqueue(s, c, thread, core);
    } while (!c->started && has_slept(own) && can_loop);
    return core;
}

/* The usual case of note_running(), without a lock: the kernel has put a thread where it was sent. No other CPU changes
 * where a thread runs between decision and arrival, and CPUs that charge it see in one word that it has arrived, and
 * when. */
static __always_inline bool note_arrival(sched_t *s, u32 thread, u32 core, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    if (own->state != STATE_RUNNING || own->core != core)
        return false;
    own->on_since_ns = now_ns;
    own->charged_ns = now_ns;
    return true;
}

/* The kernel has put a thread on a core, whatever was decided. */
static __noinline void note_running(sched_t *s, call_t *c, u32 thread, u32 core)
{
    thread_t *own = thread_of(s, thread);
    locks_t held = lock_thread_and_core(s, thread, core);
    if (own->arriving) {
        /* It was on its way here when the plan sent it elsewhere: this core lets it go at once. */
        interrupt_core(s, c, core);
    } else {
        if (own->state != STATE_RUNNING || own->core != core) {
            if (own->state == STATE_RUNNING) {
                /* One that is about to end may be moved without a word; its CPU idles by now. */
                wake_core(s, c, own->core);
                put_prev(s, own->core, c->now_ns);
            }
            if (core_of(s, core)->running != NONE)
                put_prev(s, core, c->now_ns);
            if (is_off_rq(own))
                enqueue_thread(s, thread, core, c->now_ns);
            run_thread(s, c, core, thread);
        }
        own->charged_ns = own->on_since_ns = c->now_ns;
    }
    unlock_both(s, held);
}

/* A thread that is about to end goes on where it is, though the books may have taken it off that core: it is the one
 * that runs there, and a thread that has been chosen instead waits again. */
static __noinline void continue_exiting(sched_t *s, call_t *c, u32 thread, u32 core)
{
    thread_t *own = thread_of(s, thread);
    if (!own->arriving && (own->state != STATE_RUNNING || own->core != core))
        note_running(s, c, thread, core);
}

#endif
