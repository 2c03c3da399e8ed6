/* SPDX-License-Identifier: GPL-2.0-only */
/* What the simulator's engine does around its interpreter (crates/sim/src/engine/dispatch.rs), for a kernel that
 * tells what happens in its own order. All of it runs under the lock; cores that must look for work are collected
 * and told afterwards. */
#ifndef AMPSCHED_HOST_H
#define AMPSCHED_HOST_H

#include "operation.h"

/* When a core that waits for a thread looks again in case it does not come: one tick at 250 Hz. */
#define COMES_NS 4000000

inlined u64 bit(u32 core)
{
    return 1ull << (core & (CORES_MAX - 1));
}

/* Charges the thread that runs on a core, if it is really there. */
inlined void charge_up_to(sched_t *s, u32 core, u64 now_ns)
{
    u32 thread = core_of(s, core)->running;
    if (thread == NONE)
        return;
    thread_t *own = thread_of(s, thread);
    u64 charged_ns = own->charged_ns;
    if (charged_ns == OFF_CPU)
        return;
    charge(s, core, less(now_ns, charged_ns));
    own->charged_ns = now_ns;
}

inlined void wake_core(sched_t *s, u32 core)
{
    core_of(s, core)->looks = true;
    s->to_wake |= bit(core);
}

inlined void interrupt_core(sched_t *s, u32 core)
{
    core_of(s, core)->interrupted = true;
    s->to_interrupt |= bit(core);
}

/* Idle cores look for work, if the rules say so. */
apart void wake_idle_cores(sched_t *s)
{
    if (s->idle_cores == 0 || !rule(s, kick_idle))
        return;
    for (u32 core = s->zero; core < s->core_count && can_go_on; core += s->one)
        if (core_of(s, core)->running == NONE)
            wake_core(s, core);
}

/* A thread waits in a core's queue: the core, or idle ones, must look. */
inlined void after_enqueue(sched_t *s, u32 core)
{
    if (core_of(s, core)->running == NONE) {
        bool already_looks = core_of(s, core)->looks;
        wake_core(s, core);
        /* The core can take only one: a further thread is for others. */
        if (!already_looks)
            return;
    }
    wake_idle_cores(s);
}

/* Cores without work may want a thread that has just started on a slow core. */
apart void remind_idle_cores(sched_t *s)
{
    for (u32 core = s->zero; core < s->core_count && can_go_on; core += s->one)
        if (is_idle(s, core) && core_of(s, core)->recheck_ns == NEVER)
            wake_core(s, core);
}

/* A thread waits in a core's queue, where it may interrupt the one that runs, which has been charged. */
apart void announce(sched_t *s, u32 thread, u32 core)
{
    u32 running = core_of(s, core)->running;
    if (running != NONE && thread_of(s, running)->charged_ns != OFF_CPU && preempts(s, thread, running, core))
        interrupt_core(s, core);
    else
        after_enqueue(s, core);
}

/* A thread that is in no queue comes to a core's queue. */
inlined void arrive(sched_t *s, u32 thread, u32 core, u32 kind, u64 now_ns)
{
    charge_up_to(s, core, now_ns);
    thread_of(s, thread)->bound_to = NONE;
    enqueue(s, thread, core, kind, now_ns);
    announce(s, thread, core);
}

/* A thread is where the plan has put it, or no longer awaited there. */
inlined void end_coming(sched_t *s, u32 thread)
{
    thread_t *own = thread_of(s, thread);
    if (own->comes)
        queue_of(s, own->core)->coming--;
    own->comes = false;
}

/* A thread that is in no queue becomes runnable: where the allocator says, or where it was if it has to stay there. */
apart void make_runnable(sched_t *s, u32 thread, u32 kind, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    if (own->held)
        return leave_for(s, thread, STATE_HELD, now_ns);
    u32 core = own->chosen;
    own->chosen = NONE;
    if (core == NONE || !allows(s, thread, core))
        core = place(s, thread, NONE, now_ns);
    if (core != NONE)
        arrive(s, thread, core, kind, now_ns);
}

/* A core takes a waiting thread. */
apart void begin(sched_t *s, u32 core, u32 thread, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    u64 migrations = own->migrations;
    end_coming(s, thread);
    own->bound_to = own->pull_to = NONE;
    core_of(s, core)->interrupted = false;
    start(s, core, thread, now_ns);
    if (s->idle_cores == 0)
        return;
    if (queue_of(s, core)->len > 0)
        wake_idle_cores(s);
    /* As a middle core may pull from a slow one, the threads that start on any core but the fastest are announced. */
    if (own->migrations != migrations || core_of(s, core)->class < s->top_class)
        if (s->pulls_running)
            remind_idle_cores(s);
}

/* The thread on a core, charged, leaves it: whoever is to be elsewhere may be picked by nobody until the kernel has
 * let it go, others by this core only. */
inlined void give_way(sched_t *s, u32 core, u64 now_ns)
{
    u32 thread = core_of(s, core)->running;
    thread_t *own = thread_of(s, thread);
    charge_up_to(s, core, now_ns);
    own->charged_ns = OFF_CPU;
    if (own->held) {
        stop(s, core, STATE_READY, now_ns);
        return leave_for(s, thread, STATE_HELD, now_ns);
    }
    requeue(s, core, now_ns);
    own->bound_to = own->moves || own->pull_to != NONE ? NOBODY : core;
}

/* A core that has chosen a thread to pull waits for it in vain: it looks again, and hears again of others that start on
 * slower cores. */
inlined void release_puller(sched_t *s, u32 thread)
{
    thread_t *own = thread_of(s, thread);
    if (own->pull_to != NONE && core_of(s, own->pull_to)->running == NONE)
        wake_core(s, own->pull_to);
    own->pull_to = NONE;
}

/* Takes a thread out of wherever it is; it is then in no queue and on no core. */
apart void take_out(sched_t *s, u32 thread, u32 state, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    end_coming(s, thread);
    if (own->state == STATE_RUNNING) {
        charge_up_to(s, own->core, now_ns);
        stop(s, own->core, state, now_ns);
        if (state == STATE_READY)
            track_rest(s, thread, state, now_ns);
    } else {
        if (own->state == STATE_READY && !own->taken_out)
            dequeue(s, thread);
        leave_for(s, thread, state, now_ns);
    }
    own->charged_ns = OFF_CPU;
    own->taken_out = own->moves = false;
    release_puller(s, thread);
    own->bound_to = own->chosen = NONE;
}

/* The kernel takes a runnable thread out and will bring it back. */
inlined void suspend(sched_t *s, u32 thread, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    if (!is_runnable(own) || own->taken_out)
        return;
    take_out(s, thread, STATE_READY, now_ns);
    own->taken_out = true;
}

/* Whether a thread that has lost its core to a task that is not ours, or has not got there yet, still belongs there:
 * such tasks are like interrupts. */
inlined bool stays(sched_t *s, u32 thread, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    return allows(s, thread, own->core) && !own->held && !own->moves && own->pull_to == NONE &&
           !core_of(s, own->core)->interrupted && now_ns < expiry_ns(s, own->core, now_ns);
}

/* The kernel hands a runnable thread over. Returns the core that takes it now, or NONE. */
apart u32 hand_over(sched_t *s, u32 thread, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    u32 core = own->core, pull_to = own->pull_to;
    bool comes = own->comes;
    switch (own->state) {
    case STATE_NEW:
        make_runnable(s, thread, ENQUEUE_FORK, now_ns);
        return NONE;
    case STATE_BLOCKED:
        make_runnable(s, thread, ENQUEUE_WAKE, now_ns);
        return NONE;
    case STATE_RUNNING:
        if (stays(s, thread, now_ns)) {
            own->charged_ns = OFF_CPU;
            return core;
        }
        give_way(s, core, now_ns);
        break;
    case STATE_READY:
        if (own->taken_out) {
            own->taken_out = false;
            own->chosen = allows(s, thread, core) ? core : NONE;
            make_runnable(s, thread, ENQUEUE_REQUEUE, now_ns);
            return NONE;
        }
        break;
    }
    if (own->state != STATE_READY)
        return NONE;
    end_coming(s, thread);
    own->bound_to = own->pull_to = NONE;
    if (own->moves || !allows(s, thread, core)) {
        own->moves = false;
        own->pull_to = pull_to;
        release_puller(s, thread);
        dequeue(s, thread);
        make_runnable(s, thread, ENQUEUE_REQUEUE, now_ns);
        return NONE;
    }
    if (pull_to != NONE && core_of(s, pull_to)->running == NONE && allows(s, thread, pull_to)) {
        begin(s, pull_to, thread, now_ns);
        return pull_to;
    }
    if (comes) {
        charge_up_to(s, core, now_ns);
        announce(s, thread, core);
    } else {
        after_enqueue(s, core);
    }
    return NONE;
}

/* A thread that has just been queued at an idle core, if that would take this very thread: the core need not be
 * asked. Returns whether it has begun there. */
apart bool begin_at_once(sched_t *s, u32 thread, u32 core, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    if (own->state != STATE_READY || own->core != core || own->bound_to != NONE || core_of(s, core)->running != NONE)
        return false;
    pick_by_rules(s, core, now_ns);
    if (s->pick.kind != PICK_RUN || s->pick.thread != thread)
        return false;
    core_of(s, core)->looks = false;
    core_of(s, core)->recheck_ns = NEVER;
    s->to_wake &= ~bit(core);
    begin(s, core, thread, now_ns);
    return true;
}

/* A thread that has just been queued at a core and interrupts what runs there takes its place now if it is the one
 * that the core would choose: the core need not be asked. Returns whether it has begun there; otherwise the core,
 * which has been told to, still looks. */
apart bool take_over(sched_t *s, u32 thread, u32 core, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    if (!(s->to_interrupt & bit(core)) || own->state != STATE_READY || own->core != core)
        return false;
    /* It may be interrupted for a thread that the plan has sent away and that runs in no book any more. */
    if (core_of(s, core)->running != NONE)
        give_way(s, core, now_ns);
    if (!begin_at_once(s, thread, core, now_ns))
        return false;
    s->to_interrupt &= ~bit(core);
    return true;
}

/* A thread that wakes up, or is new, has been placed at an idle core: the kernel need not hand it over if it begins
 * there. Otherwise nobody picks it until the kernel has done so. */
apart bool begin_before_enqueue(sched_t *s, u32 thread, u32 core, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    if ((own->state != STATE_NEW && own->state != STATE_BLOCKED) || !is_idle(s, core))
        return false;
    hand_over(s, thread, now_ns);
    if (begin_at_once(s, thread, core, now_ns))
        return true;
    own->bound_to = NOBODY;
    return false;
}

/* The usual case of is_running(), without the lock: the kernel has put a thread where it was sent. Nobody else
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

/* Whether a core need not look for work, without the lock: nobody waits anywhere, nobody is on the way, and it has
 * been told nothing. Who comes a moment later tells it. */
inlined bool has_no_work(sched_t *s, u32 core)
{
    core_t *cpu = core_of(s, core);
    return s->waiting == 0 && cpu->running == NONE && !cpu->looks && cpu->recheck_ns == NEVER && !s->pulls_running;
}

/* The kernel has put a thread on a core, whatever was decided. */
apart void is_running(sched_t *s, u32 thread, u32 core, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    /* It was on its way here when the plan sent it elsewhere: this core lets it go at once. */
    if (own->comes)
        return interrupt_core(s, core);
    if (own->state != STATE_RUNNING || own->core != core) {
        if (own->state == STATE_RUNNING) {
            /* One that is about to end may be moved without a word; its CPU idles by now. */
            wake_core(s, own->core);
            give_way(s, own->core, now_ns);
        }
        if (core_of(s, core)->running != NONE)
            give_way(s, core, now_ns);
        if (own->state != STATE_READY || own->taken_out) {
            own->taken_out = false;
            enqueue(s, thread, core,
                    own->state == STATE_NEW     ? ENQUEUE_FORK
                    : own->state == STATE_READY ? ENQUEUE_REQUEUE
                                                : ENQUEUE_WAKE,
                    now_ns);
        }
        begin(s, core, thread, now_ns);
    }
    own->charged_ns = own->on_since_ns = now_ns;
}

/* The running thread leaves its core for where the plan wants it: at once in the books, so that all changes of a plan
 * see those before them, as in the simulator; in fact when its core lets it go. Until then nobody picks it, and an idle
 * core where it waits looks for nobody else. */
apart void send_away(sched_t *s, u32 thread, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    u32 from = own->core;
    charge_up_to(s, from, now_ns);
    own->charged_ns = OFF_CPU;
    stop(s, from, STATE_READY, now_ns);
    u32 to = place(s, thread, NONE, now_ns);
    if (to == NONE)
        to = from;
    enqueue(s, thread, to, ENQUEUE_REQUEUE, now_ns);
    own->bound_to = NOBODY;
    release_puller(s, thread);
    own->comes = true;
    queue_of(s, to)->coming++;
    interrupt_core(s, from);
}

/* A thread that the plan, or its program, wants elsewhere. */
apart void relocate(sched_t *s, u32 thread, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    if (own->state == STATE_RUNNING) {
        if (own->held)
            interrupt_core(s, own->core);
        else
            send_away(s, thread, now_ns);
    } else if (own->state == STATE_HELD) {
        make_runnable(s, thread, ENQUEUE_WAKE, now_ns);
    } else if (own->state == STATE_READY && !own->taken_out) {
        if (own->bound_to != NONE) {
            own->moves = true; /* The kernel will hand it over in a moment. */
            return;
        }
        dequeue(s, thread);
        make_runnable(s, thread, ENQUEUE_REQUEUE, now_ns);
    }
}

/* Whether all that wait at a core are still on the way there. */
inlined bool waits_for_coming(sched_t *s, u32 core, u64 now_ns)
{
    core_t *cpu = core_of(s, core);
    queue_t *queue = queue_of(s, core);
    if (queue->coming == 0 || queue->coming != queue->len || now_ns >= cpu->recheck_ns)
        return false;
    cpu->recheck_ns = least_of(cpu->recheck_ns, now_ns + COMES_NS);
    return true;
}

/* A core without work, or whose thread has given way, looks for work. Returns a thread to run there, which has
 * begun, or NONE. */
apart u32 look(sched_t *s, u32 core, u64 now_ns)
{
    core_t *cpu = core_of(s, core);
    cpu->looks = false;
    if (waits_for_coming(s, core, now_ns))
        return NONE;
    cpu->recheck_ns = NEVER;
    pick_by_rules(s, core, now_ns);
    u32 thread = s->pick.thread;
    if (s->pick.kind == PICK_RUN) {
        begin(s, core, thread, now_ns);
        return thread;
    }
    if (s->pick.kind == PICK_PULL) {
        thread_of(s, thread)->pull_to = core;
        interrupt_core(s, thread_of(s, thread)->core);
        /* It may block before it comes. */
        cpu->recheck_ns = now_ns + COMES_NS;
    } else {
        cpu->recheck_ns = s->pick.recheck_ns;
    }
    return NONE;
}

/* Whether the turn of the thread on a core is over. */
inlined bool is_over(sched_t *s, u32 core, u64 now_ns)
{
    charge_up_to(s, core, now_ns);
    return core_of(s, core)->interrupted || now_ns >= expiry_ns(s, core, now_ns);
}

/* What is done every few milliseconds: balancing, and idle cores whose time to look again has come. */
apart void look_after(sched_t *s, bool balances, u64 now_ns)
{
    u64 receivers = balances ? balance(s, now_ns) : 0;
    for (u32 core = s->zero; core < s->core_count && can_go_on; core += s->one) {
        if (core_of(s, core)->running == NONE && (receivers & bit(core) || now_ns >= core_of(s, core)->recheck_ns))
            wake_core(s, core);
    }
}

#endif
