/* SPDX-License-Identifier: GPL-2.0-only */
/* Threads become runnable, are handed over and arrive, or are no longer runnable. Who calls these holds no lock
 * (lock.h). */
#ifndef AMPSCHED_RUNNABLE_H
#define AMPSCHED_RUNNABLE_H

#include "choose.h"

/* A thread that is in no queue comes to a core, if it still may and is not held back. Returns whether it has a place.
 * Apart, as little is to be on the stack while places are compared. */
once bool come_back(shared sched_t *s, shared call_t *c, u32 thread, u32 core)
{
    thread_t *own = thread_of(s, thread);
    locks_t held = lock_thread_and(s, thread, core);
    bool comes = c->back ? own->taken_out || own->state == STATE_HELD : is_out(own), done = !comes || own->held;
    if (comes && own->held) {
        own->taken_out = false;
        leave_for(s, thread, STATE_HELD, c->now_ns);
    } else if (comes && allows(s, thread, core)) {
        charge_up_to(s, core, c->now_ns);
        bind(s, thread, NONE);
        come_in(s, thread, core, c->now_ns);
        announce(s, c, thread, core);
        begin_here(s, c, thread, core);
        done = true;
    }
    unlock_both(s, held);
    return done;
}

/* A thread that is in no queue becomes runnable: where the allocator says, or where it was if it has to stay there.
 * c->back: one that has been taken out of a queue for that, or held, unless somebody else has brought it back. */
inlined void make_runnable(sched_t *s, call_t *c, u32 thread)
{
    while (can_go_on) {
        u32 core = where_to(s, c, thread);
        if (core == NONE || come_back(s, c, thread, core))
            return;
    }
}

/* Takes a thread out of wherever it is; it is then in no queue and on no core. */
apart void take_out(sched_t *s, call_t *c, u32 thread, u32 state)
{
    u32 held = lock_thread(s, thread);
    take_out_of(s, c, thread, state);
    unlock(s, held);
}

/* The kernel takes a runnable thread out and will bring it back. */
apart void suspend(sched_t *s, call_t *c, u32 thread)
{
    thread_t *own = thread_of(s, thread);
    u32 held = lock_thread(s, thread);
    if (is_runnable(own) && !own->taken_out) {
        take_out_of(s, c, thread, STATE_READY);
        own->taken_out = true;
    }
    unlock(s, held);
}

/* A thread that waits comes to the core that pulls it, if that still idles. Returns whether it has begun there. */
apart bool come_to_puller(sched_t *s, call_t *c, u32 thread, u32 puller)
{
    thread_t *own = thread_of(s, thread);
    locks_t held = lock_thread_and(s, thread, puller);
    bool comes = own->state == STATE_READY && !own->taken_out && own->bound_to == NONE &&
                 core_of(s, puller)->running == NONE && allows(s, thread, puller);
    if (comes)
        begin(s, c, puller, thread);
    unlock_both(s, held);
    return comes;
}

enum handed { HANDED_STAYS, HANDED_WAITS, HANDED_LEAVES };

/* The kernel hands a thread over that is in a queue, or on its core in the books. */
inlined u32 hand_over_here(sched_t *s, call_t *c, u32 thread)
{
    thread_t *own = thread_of(s, thread);
    u32 core = own->core;
    if (own->state == STATE_RUNNING) {
        if (stays(s, thread, c->now_ns)) {
            own->charged_ns = OFF_CPU;
            return HANDED_STAYS;
        }
        give_way(s, core, c->now_ns);
    }
    if (own->state != STATE_READY)
        return HANDED_WAITS;
    if (own->taken_out) {
        own->chosen = allows(s, thread, core) ? core : NONE;
        return HANDED_LEAVES;
    }
    bool comes = own->comes;
    end_coming(s, thread);
    bind(s, thread, NONE);
    if (own->moves || !allows(s, thread, core)) {
        own->moves = false;
        release_puller(s, c, thread);
        dequeue(s, thread);
        own->taken_out = true;
        return HANDED_LEAVES;
    }
    if (own->pull_to != NONE && idles(s, own->pull_to) && allows(s, thread, own->pull_to))
        return HANDED_WAITS;
    await(s, thread, NONE);
    if (comes) {
        charge_up_to(s, core, c->now_ns);
        announce(s, c, thread, core);
    } else {
        after_enqueue(s, c, core);
    }
    begin_here(s, c, thread, core);
    return HANDED_WAITS;
}

/* Whether a thread that the kernel hands over has slept, or is new, without a lock: only the kernel's calls for this
 * thread, one after the other, end that. */
inlined bool has_slept(thread_t *thread)
{
    return thread->state == STATE_NEW || thread->state == STATE_BLOCKED;
}

/* The kernel hands a runnable thread over. Returns the core to which it shall be sent now, or NONE; c->begun says
 * whether it has begun on the CPU where it is. */
inlined u32 hand_over(sched_t *s, call_t *c, u32 thread)
{
    thread_t *own = thread_of(s, thread);
    c->begun = false;
    c->back = !has_slept(own);
    u32 core = NONE, handed = HANDED_LEAVES, puller = NONE;
    if (c->back) {
        u32 held = lock_thread(s, thread);
        core = own->core;
        handed = hand_over_here(s, c, thread);
        if (handed == HANDED_WAITS && own->state == STATE_READY) {
            puller = own->pull_to;
            await(s, thread, NONE);
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
    if (come_to_puller(s, c, thread, puller))
        return puller;
    after_enqueue(s, c, core);
    return NONE;
}

/* A thread that wakes up, or is new, has been placed at an idle core: the kernel need not hand it over if it begins
 * there. Otherwise nobody picks it until the kernel has done so. */
apart bool begin_before_enqueue(sched_t *s, call_t *c, u32 thread, u32 core)
{
    thread_t *own = thread_of(s, thread);
    locks_t held = lock_thread_and(s, thread, core);
    bool comes = has_slept(own) && !own->held && is_idle(s, core) &&
                 allows(s, thread, core);
    bool begins = false;
    if (comes) {
        bind(s, thread, NONE);
        come_in(s, thread, core, c->now_ns);
        begins = begin_at_once(s, c, thread, core);
        if (!begins)
            bind(s, thread, NOBODY);
    }
    unlock_both(s, held);
    return begins;
}

/* A thread wakes up, or is new. Returns where it shall wait, or NONE; c->begun says whether it has begun there, on an
 * idle core, as after most wake-ups. If somebody else has come to that core meanwhile, the thread is placed anew, as if
 * it had woken after that: else all that wake at about the same time would gather at the first idle core. */
inlined u32 wake_up(sched_t *s, call_t *c, u32 thread, u32 waker)
{
    thread_t *own = thread_of(s, thread);
    u32 core;
    c->begun = false;
    do {
        core = choose_core(s, c, thread, waker);
        if (core == NONE || !is_idle(s, core) || get(core_of(s, core)->others_run))
            return core;
        c->begun = begin_before_enqueue(s, c, thread, core);
    } while (!c->begun && has_slept(own) && can_go_on);
    return core;
}

/* The usual case of is_running(), without a lock: the kernel has put a thread where it was sent. Nobody else
 * changes where a thread runs between decision and arrival, and those who charge it see in one word that it has
 * arrived, and when. */
inlined bool has_got_there(sched_t *s, u32 thread, u32 core, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    if (own->state != STATE_RUNNING || own->core != core)
        return false;
    own->on_since_ns = now_ns;
    own->charged_ns = now_ns;
    return true;
}

/* The kernel has put a thread on a core, whatever was decided. */
apart void is_running(sched_t *s, call_t *c, u32 thread, u32 core)
{
    thread_t *own = thread_of(s, thread);
    locks_t held = lock_thread_and(s, thread, core);
    if (own->comes) {
        /* It was on its way here when the plan sent it elsewhere: this core lets it go at once. */
        interrupt_core(s, c, core);
    } else {
        if (own->state != STATE_RUNNING || own->core != core) {
            if (own->state == STATE_RUNNING) {
                /* One that is about to end may be moved without a word; its CPU idles by now. */
                wake_core(s, c, own->core);
                give_way(s, own->core, c->now_ns);
            }
            if (core_of(s, core)->running != NONE)
                give_way(s, core, c->now_ns);
            if (is_out(own))
                come_in(s, thread, core, c->now_ns);
            begin(s, c, core, thread);
        }
        own->charged_ns = own->on_since_ns = c->now_ns;
    }
    unlock_both(s, held);
}

/* A thread that is about to end goes on where it is, though the books may have taken it off that core: it is the one
 * that runs there, and whoever has been chosen instead waits again. */
apart void goes_on(sched_t *s, call_t *c, u32 thread, u32 core)
{
    thread_t *own = thread_of(s, thread);
    if (!own->comes && (own->state != STATE_RUNNING || own->core != core))
        is_running(s, c, thread, core);
}

#endif
