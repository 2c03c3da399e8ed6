/* SPDX-License-Identifier: GPL-2.0-only */
/* What the scheduler in the kernel does when it is called; runnable.h has what is about one thread that comes or goes.
 * Callers hold no lock (lock.h); host.h has what is done with locks. */
#ifndef AMPSCHED_CALLS_H
#define AMPSCHED_CALLS_H

#include "runnable.h"

/* The running thread that has left its core for where the plan wants it comes there: at once in the books, so that all
 * changes of a plan see those before them, as in the simulator; in fact when its core lets it go. Until then no core
 * picks it, and an idle core where it waits looks for no other thread. */
static __noinline void migrate(sched_t *s, call_t *c, u32 thread, u32 from)
{
    thread_t *own = thread_of(s, thread);
    u32 to = find_place(s, c, thread, NONE);
    if (to == NONE)
        to = from;
    locks_t held = lock_thread_and_core(s, thread, to);
    if (own->state == STATE_READY && own->dequeued) {
        enqueue_thread(s, thread, to, c->now_ns);
        bind(s, thread, NO_CORE);
        release_puller(s, c, thread);
        own->arriving = true;
        queue_of(s, to)->arriving++;
    }
    unlock_both(s, held);
}

/* A thread that the plan, or its program, wants elsewhere. */
global_subprog done_t relocate(__arg_arena sched_t *s, __arg_arena call_t *c, u32 thread)
{
    thread_t *own = thread_of(s, thread);
    u32 held = lock_thread(s, thread);
    u32 core = own->core;
    bool is_sent = false, is_placed = own->state == STATE_HELD && !own->held;
    if (own->state == STATE_RUNNING) {
        interrupt_core(s, c, core);
        is_sent = !own->held;
        if (is_sent) {
            charge_up_to(s, core, c->now_ns);
            own->charged_ns = OFF_CPU;
            stop(s, core, STATE_READY, c->now_ns);
            track_dequeued(s, thread, c->now_ns);
            own->dequeued = true;
        }
    } else if (own->state == STATE_READY && !own->dequeued) {
        if (own->bound_to != NONE) {
            own->must_move = true; /* The kernel will hand it over in a moment. */
        } else {
            dequeue(s, thread);
            own->dequeued = is_placed = true;
        }
    }
    unlock(s, held);
    if (is_sent)
        migrate(s, c, thread, core);
    c->back = true;
    if (is_placed)
        make_runnable(s, c, thread);
    return DONE;
}

/* Records a change of the plan. */
static __always_inline void record_plan(sched_t *s, struct operation __arena *op, bool moves)
{
    u32 core = thread_of(s, op->thread)->core, change = op->kind - OP_CHANGE;
    if (change == CHANGE_AFFINITY)
        record_cores(s, op->thread, &op->cores);
    record_at(s, core, what_of(RECORD_CHANGE, moves, op->thread, change | op->core << 8), 0, op->a);
}

/* Carries out a change of the plan, unless the thread has ended since. */
static __always_inline void change_plan(sched_t *s, call_t *c, struct operation __arena *op)
{
    thread_t *own = thread_of(s, op->thread);
    u32 held = lock_thread(s, op->thread);
    bool is_there = own->in_use && own->generation == op->generation;
    bool moves = is_there && apply_change(s, op);
    if (is_there)
        record_plan(s, op, moves);
    unlock(s, held);
    if (moves)
        relocate(s, c, op->thread);
}

static __always_inline void record_pace(sched_t *s, u32 core, u64 now_ns)
{
    record_at(s, core, what_of(RECORD_PACE, 0, NONE, core), now_ns, core_of(s, core)->tracked.present);
}

/* A core runs at `part / whole` of its highest frequency from now on. */
static __noinline void change_pace(sched_t *s, u32 core, u64 part, u64 whole, u64 now_ns)
{
    u32 held = lock_core(s, core);
    set_pace(s, core, part, whole, now_ns);
    record_pace(s, core, now_ns);
    unlock(s, held);
}

/* The kernel says at which pace a core runs. */
static __noinline void see_pace(sched_t *s, u32 core, u64 pace, u64 now_ns)
{
    if (!is_new_pace(s, core, pace))
        return;
    u32 held = lock_core(s, core);
    follow_pace(s, core, pace, now_ns);
    record_pace(s, core, now_ns);
    unlock(s, held);
}

/* The program restricts its thread to cores. */
static __always_inline void restrict_to(sched_t *s, call_t *c, u32 thread, set_t *cores)
{
    u32 held = lock_thread(s, thread);
    bool moves = restrict_user(s, thread, cores);
    record_cores(s, thread, &thread_of(s, thread)->user_affinity);
    record_at(s, thread_of(s, thread)->core, what_of(RECORD_USER_AFFINITY, moves, thread, 0), 0, 0);
    unlock(s, held);
    if (moves)
        relocate(s, c, thread);
}

/* The program changes its thread's weight. */
static __noinline void change_weight(sched_t *s, u32 thread, u32 weight)
{
    u32 held = lock_thread(s, thread);
    reweigh(s, thread, weight);
    record_at(s, thread_of(s, thread)->core, what_of(RECORD_CHANGE, 0, thread, CHANGE_WEIGHT), 0, weight);
    unlock(s, held);
}

/* Whether a core need not look for work: no thread waits anywhere or is on the way, and it has not been kicked. A
 * thread that comes a moment later kicks it. */
static __always_inline bool has_no_work(sched_t *s, u32 core)
{
    core_t *cpu = core_of(s, core);
    return !any_queue_waits(s) && cpu->running == NONE && !READ_ONCE(cpu->need_resched) &&
           READ_ONCE(cpu->recheck_ns) == NEVER && !s->pulls_running;
}

/* The other thread of the physical core of one that idles now may pull what it could not while that was busy. One that
 * waits for a thread already, or will look by itself, is left alone. */
static __noinline void let_sibling_look(sched_t *s, call_t *c, u32 other)
{
    pick_t *pick = &c->pick;
    if (!is_core_free(s, other) || READ_ONCE(core_of(s, other)->recheck_ns) != NEVER)
        return;
    pick->core = other;
    pick_elsewhere(s, pick);
    if (pick->kind != PICK_IDLE)
        wake_core(s, c, other);
    else
        WRITE_ONCE(core_of(s, other)->recheck_ns, pick->recheck_ns);
}

/* A core whose own queue has no thread for it searches other queues, first without locks. It skips queues that are
 * locked; if only those have threads, it searches again. Returns a thread to run there, which has begun, or NONE. */
static __noinline u32 pick_remote(sched_t *s, call_t *c, u32 core)
{
    core_t *cpu = core_of(s, core);
    pick_t *pick = &c->pick;
    search(s, pick, !has_rounds(s));
    if (pick->kind == PICK_IDLE) {
        WRITE_ONCE(cpu->recheck_ns, pick->recheck_ns);
        if (pick->passed)
            wake_core(s, c, core);
        else if (has_smt(s) && s->pulls_running && cpu->sibling != NONE)
            let_sibling_look(s, c, cpu->sibling);
        return NONE;
    }
    locks_t held = lock_thread_and_core(s, pick->thread, core);
    /* A thread that has been started here meanwhile is on the way; a thread that waits here comes first. */
    bool acts = cpu->running == NONE && first_of(s, queue_of(s, core), core, NONE) == NONE && act(s, c);
    unlock_both(s, held);
    if (!acts)
        wake_core(s, c, core); /* It looks again. */
    return acts && pick->kind == PICK_RUN ? pick->thread : NONE;
}

/* A core without work looks for some. `prev` has run there until now and, if it is still there in the books, gives way
 * (NONE: no thread). Returns a thread to run there, which has begun, or NONE. */
static __noinline u32 pick_next(sched_t *s, call_t *c, u32 core, u32 prev)
{
    core_t *cpu = core_of(s, core);
    u32 held = lock_core(s, core), thread = NONE;
    bool elsewhere = false;
    if (prev != NONE && cpu->running == prev)
        put_prev(s, core, c->now_ns);
    /* Otherwise a thread is on its way here. */
    if (cpu->running == NONE) {
        WRITE_ONCE(cpu->need_resched, false);
        if (!waits_for_arrivals(s, core, c->now_ns)) {
            WRITE_ONCE(cpu->recheck_ns, NEVER);
            elsewhere = !pick_own(s, &c->pick, core, c->now_ns);
            if (!elsewhere && act(s, c) && c->pick.kind == PICK_RUN)
                thread = c->pick.thread;
        }
    }
    if (thread != NONE && thread == prev)
        thread_of(s, thread)->charged_ns = c->now_ns;
    unlock(s, held);
    return elsewhere ? pick_remote(s, c, core) : thread;
}

/* A thread that has begun on a core cannot be found by the kernel: it is about to disappear. */
static __noinline void abort_start(sched_t *s, call_t *c, u32 core, u32 thread)
{
    if (core_of(s, core)->running == thread)
        suspend(s, c, thread);
    wake_core(s, c, core);
}

/* The kernel takes a thread off its CPU for a task that is not ours; it is charged. */
static __noinline void charge_off_cpu(sched_t *s, u32 thread, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    u32 held = lock_thread(s, thread);
    /* One that has given way has been charged. */
    if (own->state == STATE_RUNNING) {
        charge_up_to(s, own->core, now_ns);
        own->charged_ns = OFF_CPU;
    }
    unlock(s, held);
}

/* Whether the turn of a thread is over, which the kernel runs. */
static __noinline bool tick_ends_turn(sched_t *s, u32 thread, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    u32 held = lock_thread(s, thread);
    bool over = own->arriving;
    if (own->state == STATE_RUNNING) {
        charge_up_to(s, own->core, now_ns);
        over = core_of(s, own->core)->interrupted || turn_is_over(s, own->core, now_ns);
    }
    unlock(s, held);
    return over;
}

/* What is done every few milliseconds: balancing, and idle cores whose time to look again has come. */
static __always_inline void run_periodic(sched_t *s, call_t *c, bool balances)
{
    if (balances)
        balance(s, c->now_ns);
    for (u32 core = s->zero; core < s->core_count && can_loop; core += s->one)
        if (is_core_idle(s, core) &&
            ((balances && has(&s->group.receivers, core)) || c->now_ns >= READ_ONCE(core_of(s, core)->recheck_ns)))
            wake_core(s, c, core);
}

/* Gives a slot to a new thread; NONE if all are taken. */
static __noinline u32 init_thread(sched_t *s, u32 weight, set_t *cores)
{
    lock(s, SLOTS_LOCK);
    u32 thread = free_slot(s);
    unlock(s, SLOTS_LOCK);
    if (thread == NONE)
        return NONE;
    locks_t held = lock_thread_and_core(s, thread, 0);
    clear_thread(s, thread, weight, cores);
    unlock_both(s, held);
    return thread;
}

/* A thread is no more. */
static __noinline void exit_thread(sched_t *s, call_t *c, u32 thread)
{
    u32 held = lock_thread(s, thread);
    dequeue_locked(s, c, thread, STATE_EXITED);
    thread_of(s, thread)->in_use = false;
    unlock(s, held);
    lock(s, SLOTS_LOCK);
    free_thread(s, thread);
    unlock(s, SLOTS_LOCK);
}

#endif
