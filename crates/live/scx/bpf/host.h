/* SPDX-License-Identifier: GPL-2.0-only */
/* What the simulator's engine does around its interpreter (crates/sim/src/engine/dispatch.rs), for a kernel that
 * tells what happens in its own order, on many CPUs at once (lock.h).
 *
 * Functions up to "Calls" are for those who hold the locks of all threads and cores that they are given. Cores that
 * must look for work are collected in the call, and told when no lock is held any more. */
#ifndef AMPSCHED_HOST_H
#define AMPSCHED_HOST_H

#include "operation.h"

/* When a core that waits for a thread looks again in case it does not come: one tick at 250 Hz. */
#define COMES_NS 4000000

inlined u64 bit(u32 core)
{
    return 1ull << (core & (CORES_MAX - 1));
}

/* A call in which nothing has been collected yet. Who comes from no core is alone (scheduler/session.h). */
inlined call_t *call_of(sched_t *s, u32 core, u64 now_ns)
{
    call_t *c = &at(s->calls, core);
    c->now_ns = now_ns;
    c->here = NONE;
    return c;
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

inlined void wake_core(sched_t *s, call_t *c, u32 core)
{
    put(core_of(s, core)->looks, true);
    c->wake |= bit(core);
}

inlined void interrupt_core(sched_t *s, call_t *c, u32 core)
{
    core_of(s, core)->interrupted = true;
    c->interrupt |= bit(core);
}

/* Cores without work that wait for nothing are told. */
apart void remind_idle_cores(sched_t *s, call_t *c)
{
    for (u32 core = s->zero; core < s->core_count && can_go_on; core += s->one) {
        if (!some_of_eight(s->idle, core))
            core += 7 * s->one;
        else if (is_idle(s, core) && get(core_of(s, core)->recheck_ns) == NEVER)
            wake_core(s, c, core);
    }
}

/* The first idle core that would take a thread now is told. All could look, as in the simulator, and the first one
 * would be served; the others learn only when to look again. */
apart void wake_idle_core(sched_t *s, call_t *c)
{
    pick_t *pick = &c->pick;
    pick->now_ns = c->now_ns;
    pick->instead_of = NONE;
    for (u32 core = s->zero; core < s->core_count && can_go_on; core += s->one) {
        if (!some_of_eight(s->idle, core)) {
            core += 7 * s->one;
            continue;
        }
        core_t *cpu = core_of(s, core);
        if (!idles(s, core) || get(cpu->looks))
            continue;
        pick->core = core;
        if (queue_of(s, core)->len == 0)
            pick_elsewhere(s, pick);
        if (queue_of(s, core)->len > 0 || pick->kind != PICK_IDLE)
            return wake_core(s, c, core);
        put(cpu->recheck_ns, least_of(get(cpu->recheck_ns), pick->recheck_ns));
    }
}

/* Completes the cores to be told, when no lock is held any more: whoever idles by then has seen what this call did, or
 * is seen here. */
inlined void collect(sched_t *s, call_t *c)
{
    bool wake = c->wake_idle && rule(s, kick_idle), remind = c->remind_idle;
    c->wake_idle = c->remind_idle = false;
    if (remind)
        remind_idle_cores(s, c);
    if (wake)
        wake_idle_core(s, c);
}

/* A thread waits in a core's queue: the core, or idle ones, must look. */
inlined void after_enqueue(sched_t *s, call_t *c, u32 core)
{
    if (core_of(s, core)->running == NONE) {
        bool already_looks = get(core_of(s, core)->looks);
        wake_core(s, c, core);
        /* The core can take only one: a further thread is for others. */
        if (!already_looks)
            return;
    }
    c->wake_idle = true;
}

/* A thread waits in a core's queue, where it may interrupt the one that runs, which has been charged. */
inlined void announce(sched_t *s, call_t *c, u32 thread, u32 core)
{
    u32 running = core_of(s, core)->running;
    if (running != NONE && thread_of(s, running)->charged_ns != OFF_CPU && preempts(s, thread, running, core))
        interrupt_core(s, c, core);
    else
        after_enqueue(s, c, core);
}

/* A thread is where the plan has put it, or no longer awaited there. */
inlined void end_coming(sched_t *s, u32 thread)
{
    thread_t *own = thread_of(s, thread);
    if (own->comes)
        queue_of(s, own->core)->coming--;
    own->comes = false;
}

/* A core takes a waiting thread. */
apart void begin(sched_t *s, call_t *c, u32 core, u32 thread)
{
    thread_t *own = thread_of(s, thread);
    u64 migrations = own->migrations;
    end_coming(s, thread);
    own->bound_to = own->pull_to = NONE;
    own->charged_ns = OFF_CPU;
    core_of(s, core)->interrupted = false;
    start(s, core, thread, c->now_ns);
    if (queue_of(s, core)->len > 0)
        c->wake_idle = true;
    /* As a middle core may pull from a slow one, the threads that start on any core but the fastest are announced to
     * cores without work. */
    if ((own->migrations != migrations || core_of(s, core)->class < s->top_class) && s->pulls_running)
        c->remind_idle = true;
}

/* A core that has chosen a thread to pull waits for it in vain: it looks again, and hears again of others that start on
 * slower cores. */
inlined void release_puller(sched_t *s, call_t *c, u32 thread)
{
    thread_t *own = thread_of(s, thread);
    if (own->pull_to != NONE && idles(s, own->pull_to))
        wake_core(s, c, own->pull_to);
    own->pull_to = NONE;
}

/* Whether a thread is in no queue and on no core, and will come into one. */
inlined bool is_out(thread_t *thread)
{
    return thread->taken_out || thread->state == STATE_NEW || thread->state == STATE_BLOCKED ||
           thread->state == STATE_HELD;
}

inlined u32 kind_of_return(thread_t *thread)
{
    if (thread->state == STATE_NEW)
        return ENQUEUE_FORK;
    return thread->state == STATE_READY ? ENQUEUE_REQUEUE : ENQUEUE_WAKE;
}

/* A thread that is in no queue comes into a core's. */
inlined void come_in(sched_t *s, u32 thread, u32 core, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    u32 kind = kind_of_return(own);
    own->taken_out = false;
    own->chosen = NONE;
    enqueue(s, thread, core, kind, now_ns);
}

/* The thread on a core, charged, leaves it: whoever is to be elsewhere may be picked by nobody until the kernel has
 * let it go, others by this core only. */
apart void give_way(sched_t *s, u32 core, u64 now_ns)
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

/* Takes a thread out of wherever it is; it is then in no queue and on no core. */
inlined void take_out_of(sched_t *s, call_t *c, u32 thread, u32 state)
{
    thread_t *own = thread_of(s, thread);
    end_coming(s, thread);
    if (own->state == STATE_RUNNING) {
        charge_up_to(s, own->core, c->now_ns);
        stop(s, own->core, state, c->now_ns);
        if (state == STATE_READY)
            track_rest(s, thread, state, c->now_ns);
    } else {
        if (own->state == STATE_READY && !own->taken_out)
            dequeue(s, thread);
        leave_for(s, thread, state, c->now_ns);
    }
    own->charged_ns = OFF_CPU;
    own->taken_out = own->moves = false;
    release_puller(s, c, thread);
    own->bound_to = own->chosen = NONE;
}

/* Whether a thread that has lost its core to a task that is not ours, or has not got there yet, still belongs there:
 * such tasks are like interrupts. */
inlined bool stays(sched_t *s, u32 thread, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    return allows(s, thread, own->core) && !own->held && !own->moves && own->pull_to == NONE &&
           !core_of(s, own->core)->interrupted && now_ns < expiry_ns(s, own->core, now_ns);
}

/* A thread that has just been queued at an idle core begins there if that would take this very thread: the core need
 * not be asked. Returns whether it has begun. */
inlined bool begin_at_once(sched_t *s, call_t *c, u32 thread, u32 core)
{
    thread_t *own = thread_of(s, thread);
    if (own->state != STATE_READY || own->core != core || own->bound_to != NONE || core_of(s, core)->running != NONE)
        return false;
    if (!pick_own(s, &c->pick, core, c->now_ns) || c->pick.kind != PICK_RUN || c->pick.thread != thread)
        return false;
    put(core_of(s, core)->looks, false);
    put(core_of(s, core)->recheck_ns, NEVER);
    c->wake &= ~bit(core);
    begin(s, c, core, thread);
    return true;
}

/* A thread that has just been queued at a core and interrupts what runs there takes its place now if it is the one
 * that the core would choose: the core need not be asked. Returns whether it has begun there; otherwise the core,
 * which has been told to, still looks. */
inlined bool take_over(sched_t *s, call_t *c, u32 thread, u32 core)
{
    thread_t *own = thread_of(s, thread);
    if (!(c->interrupt & bit(core)) || own->state != STATE_READY || own->core != core)
        return false;
    /* It may be interrupted for a thread that the plan has sent away and that runs in no book any more. */
    if (core_of(s, core)->running != NONE)
        give_way(s, core, c->now_ns);
    if (!begin_at_once(s, c, thread, core))
        return false;
    c->interrupt &= ~bit(core);
    return true;
}

/* A thread waits in a core's queue since a moment ago. If that is the core of the CPU where the kernel has put it, it
 * may begin at once. */
inlined void begin_here(sched_t *s, call_t *c, u32 thread, u32 core)
{
    if (c->here != core)
        return;
    c->begun = c->here_idles ? begin_at_once(s, c, thread, core) : take_over(s, c, thread, core);
}

/* Whether all that wait at a core are still on the way there. */
inlined bool waits_for_coming(sched_t *s, u32 core, u64 now_ns)
{
    core_t *cpu = core_of(s, core);
    queue_t *queue = queue_of(s, core);
    if (queue->coming == 0 || queue->coming != queue->len || now_ns >= get(cpu->recheck_ns))
        return false;
    put(cpu->recheck_ns, least_of(get(cpu->recheck_ns), now_ns + COMES_NS));
    return true;
}

/* Whether the thread that a core has chosen is still one that waits elsewhere for whoever comes. */
inlined bool can_take(sched_t *s, pick_t *pick)
{
    thread_t *own = thread_of(s, pick->thread);
    if (own->state != STATE_READY || own->taken_out)
        return false;
    queue_t *queue = queue_of(s, own->core);
    return queue != queue_of(s, pick->core) && can_spare(queue) && fits(s, pick->thread, pick->core, pick->except);
}

/* Whether the thread that a core has chosen still runs on a slower one. */
inlined bool can_pull(sched_t *s, pick_t *pick)
{
    thread_t *own = thread_of(s, pick->thread);
    return own->state == STATE_RUNNING && own->pull_to == NONE && !own->held && allows(s, pick->thread, pick->core) &&
           core_of(s, own->core)->class < core_of(s, pick->core)->class;
}

/* What an idle core has chosen comes about. Returns whether it could. */
inlined bool act(sched_t *s, call_t *c)
{
    pick_t *pick = &c->pick;
    if (pick->kind == PICK_RUN) {
        if (pick->thread != pick->instead_of && !can_take(s, pick))
            return false;
        if (pick->thread != pick->instead_of)
            c->wake_idle = anybody_waits(s);
        begin(s, c, pick->core, pick->thread);
        return true;
    }
    if (!can_pull(s, pick))
        return false;
    thread_of(s, pick->thread)->pull_to = pick->core;
    interrupt_core(s, c, thread_of(s, pick->thread)->core);
    /* It may block before it comes. */
    put(core_of(s, pick->core)->recheck_ns, c->now_ns + COMES_NS);
    return true;
}

/* ---- Calls: who calls these holds no lock. ---- */

/* Where a thread that wakes up, or is new, shall wait, without a lock: what this sees may have changed until the thread
 * gets there in any case. NONE: nowhere yet. */
inlined u32 choose_core(sched_t *s, u32 thread, u32 waker, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    u32 core = own->held ? NONE : place(s, thread, waker, now_ns);
    own->chosen = core;
    return core;
}

/* Where a thread shall go that is in no queue, without a lock; NONE: nowhere. */
inlined u32 where_to(sched_t *s, u32 thread, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    if (own->held)
        return own->core;
    return own->chosen != NONE && allows(s, thread, own->chosen) ? own->chosen : place(s, thread, NONE, now_ns);
}

/* A thread that is in no queue becomes runnable: where the allocator says, or where it was if it has to stay there.
 * `back`: one that has been taken out of a queue for that, or held, unless somebody else has brought it back. */
apart void make_runnable(sched_t *s, call_t *c, u32 thread, bool back)
{
    thread_t *own = thread_of(s, thread);
    while (can_go_on) {
        u32 core = where_to(s, thread, c->now_ns);
        if (core == NONE)
            return;
        locks_t held = lock_thread_and(s, thread, core);
        bool comes = back ? own->taken_out || own->state == STATE_HELD : is_out(own), done = !comes || own->held;
        if (comes && own->held) {
            own->taken_out = false;
            leave_for(s, thread, STATE_HELD, c->now_ns);
        } else if (comes && allows(s, thread, core)) {
            charge_up_to(s, core, c->now_ns);
            own->bound_to = NONE;
            come_in(s, thread, core, c->now_ns);
            announce(s, c, thread, core);
            begin_here(s, c, thread, core);
            done = true;
        }
        unlock_both(s, held);
        if (done)
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
    own->bound_to = NONE;
    if (own->moves || !allows(s, thread, core)) {
        own->moves = false;
        release_puller(s, c, thread);
        dequeue(s, thread);
        own->taken_out = true;
        return HANDED_LEAVES;
    }
    if (own->pull_to != NONE && idles(s, own->pull_to) && allows(s, thread, own->pull_to))
        return HANDED_WAITS;
    own->pull_to = NONE;
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
    if (has_slept(own)) {
        make_runnable(s, c, thread, false);
        return NONE;
    }
    u32 held = lock_thread(s, thread);
    u32 core = own->core, handed = hand_over_here(s, c, thread), puller = NONE;
    if (handed == HANDED_WAITS && own->state == STATE_READY) {
        puller = own->pull_to;
        own->pull_to = NONE;
    }
    unlock(s, held);
    if (handed == HANDED_STAYS)
        return core;
    if (handed == HANDED_LEAVES) {
        make_runnable(s, c, thread, true);
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
        own->bound_to = NONE;
        come_in(s, thread, core, c->now_ns);
        begins = begin_at_once(s, c, thread, core);
        if (!begins)
            own->bound_to = NOBODY;
    }
    unlock_both(s, held);
    return begins;
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

/* The running thread that has left its core for where the plan wants it comes there: at once in the books, so that all
 * changes of a plan see those before them, as in the simulator; in fact when its core lets it go. Until then nobody
 * picks it, and an idle core where it waits looks for nobody else. */
apart void send_away(sched_t *s, call_t *c, u32 thread, u32 from)
{
    thread_t *own = thread_of(s, thread);
    u32 to = place(s, thread, NONE, c->now_ns);
    if (to == NONE)
        to = from;
    locks_t held = lock_thread_and(s, thread, to);
    if (own->state == STATE_READY && own->taken_out) {
        come_in(s, thread, to, c->now_ns);
        own->bound_to = NOBODY;
        release_puller(s, c, thread);
        own->comes = true;
        queue_of(s, to)->coming++;
    }
    unlock_both(s, held);
}

/* A thread that the plan, or its program, wants elsewhere. */
apart void relocate(sched_t *s, call_t *c, u32 thread)
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
            track_rest(s, thread, STATE_READY, c->now_ns);
            own->taken_out = true;
        }
    } else if (own->state == STATE_READY && !own->taken_out) {
        if (own->bound_to != NONE) {
            own->moves = true; /* The kernel will hand it over in a moment. */
        } else {
            dequeue(s, thread);
            own->taken_out = is_placed = true;
        }
    }
    unlock(s, held);
    if (is_sent)
        send_away(s, c, thread, core);
    if (is_placed)
        make_runnable(s, c, thread, true);
}

/* Carries out a change of the plan, unless the thread has ended since. */
inlined void change_plan(sched_t *s, call_t *c, struct operation arena *op)
{
    thread_t *own = thread_of(s, op->thread);
    u32 held = lock_thread(s, op->thread);
    bool is_there = own->in_use && own->generation == op->generation;
    bool moves = is_there && change(s, op);
    unlock(s, held);
    if (moves)
        relocate(s, c, op->thread);
}

/* A core runs at `part / whole` of its highest frequency from now on. */
apart void change_pace(sched_t *s, u32 core, u64 part, u64 whole, u64 now_ns)
{
    u32 held = lock_core(s, core);
    set_pace(s, core, part, whole, now_ns);
    unlock(s, held);
}

/* The kernel says at which pace a core runs. */
apart void see_pace(sched_t *s, u32 core, u64 pace, u64 now_ns)
{
    if (!is_new_pace(s, core, pace))
        return;
    u32 held = lock_core(s, core);
    follow_pace(s, core, pace, now_ns);
    unlock(s, held);
}

/* The program restricts its thread to cores. */
inlined void restrict_to(sched_t *s, call_t *c, u32 thread, u64 cores)
{
    u32 held = lock_thread(s, thread);
    bool moves = restrict_user(s, thread, cores);
    unlock(s, held);
    if (moves)
        relocate(s, c, thread);
}

/* The program changes its thread's weight. */
apart void weigh(sched_t *s, u32 thread, u32 weight)
{
    u32 held = lock_thread(s, thread);
    reweigh(s, thread, weight);
    unlock(s, held);
}

/* Whether a core need not look for work: nobody waits anywhere, nobody is on the way, and it has been told nothing. Who
 * comes a moment later tells it. */
inlined bool has_no_work(sched_t *s, u32 core)
{
    core_t *cpu = core_of(s, core);
    return !anybody_waits(s) && cpu->running == NONE && !get(cpu->looks) && get(cpu->recheck_ns) == NEVER &&
           !s->pulls_running;
}

/* A core whose own queue has nobody for it looks elsewhere, first without locks. Returns a thread to run there, which
 * has begun, or NONE. */
apart u32 look_elsewhere(sched_t *s, call_t *c, u32 core)
{
    core_t *cpu = core_of(s, core);
    pick_t *pick = &c->pick;
    pick_elsewhere(s, pick);
    if (pick->kind == PICK_IDLE) {
        put(cpu->recheck_ns, pick->recheck_ns);
        return NONE;
    }
    locks_t held = lock_thread_and(s, pick->thread, core);
    /* Who has begun here meanwhile is on the way; whoever waits here comes first. */
    bool acts = cpu->running == NONE && first_of(s, queue_of(s, core), core, NONE) == NONE && act(s, c);
    unlock_both(s, held);
    if (!acts)
        wake_core(s, c, core); /* It looks again. */
    return acts && pick->kind == PICK_RUN ? pick->thread : NONE;
}

/* A core without work looks for some. `before` has run there until now and, if it is still there in the books, gives
 * way (NONE: nobody). Returns a thread to run there, which has begun, or NONE. */
apart u32 look(sched_t *s, call_t *c, u32 core, u32 before)
{
    core_t *cpu = core_of(s, core);
    u32 held = lock_core(s, core), thread = NONE;
    bool elsewhere = false;
    if (before != NONE && cpu->running == before)
        give_way(s, core, c->now_ns);
    /* Otherwise a thread is on its way here. */
    if (cpu->running == NONE) {
        put(cpu->looks, false);
        if (!waits_for_coming(s, core, c->now_ns)) {
            put(cpu->recheck_ns, NEVER);
            elsewhere = !pick_own(s, &c->pick, core, c->now_ns);
            if (!elsewhere && act(s, c) && c->pick.kind == PICK_RUN)
                thread = c->pick.thread;
        }
    }
    if (thread != NONE && thread == before)
        thread_of(s, thread)->charged_ns = c->now_ns;
    unlock(s, held);
    return elsewhere ? look_elsewhere(s, c, core) : thread;
}

/* A thread that has begun on a core cannot be found by the kernel: it is about to disappear. */
apart void give_up(sched_t *s, call_t *c, u32 core, u32 thread)
{
    if (core_of(s, core)->running == thread)
        suspend(s, c, thread);
    wake_core(s, c, core);
}

/* The kernel takes a thread off its CPU for a task that is not ours; it is charged. */
apart void lose_cpu(sched_t *s, u32 thread, u64 now_ns)
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
apart bool is_over(sched_t *s, u32 thread, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    u32 held = lock_thread(s, thread);
    bool over = own->comes;
    if (own->state == STATE_RUNNING) {
        charge_up_to(s, own->core, now_ns);
        over = core_of(s, own->core)->interrupted || now_ns >= expiry_ns(s, own->core, now_ns);
    }
    unlock(s, held);
    return over;
}

/* What is done every few milliseconds: balancing, and idle cores whose time to look again has come. */
inlined void look_after(sched_t *s, call_t *c, bool balances)
{
    u64 receivers = balances ? balance(s, c->now_ns) : 0;
    for (u32 core = s->zero; core < s->core_count && can_go_on; core += s->one)
        if (idles(s, core) && (receivers & bit(core) || c->now_ns >= get(core_of(s, core)->recheck_ns)))
            wake_core(s, c, core);
}

/* Gives a slot to a new thread; NONE if all are taken. */
apart u32 welcome(sched_t *s, u32 weight, u64 affinity)
{
    lock(s, SLOTS_LOCK);
    u32 thread = free_slot(s);
    unlock(s, SLOTS_LOCK);
    if (thread == NONE)
        return NONE;
    locks_t held = lock_thread_and(s, thread, 0);
    clear_thread(s, thread, weight, affinity);
    unlock_both(s, held);
    return thread;
}

/* A thread is no more. */
apart void bid_farewell(sched_t *s, call_t *c, u32 thread)
{
    take_out(s, c, thread, STATE_EXITED);
    lock(s, SLOTS_LOCK);
    free_thread(s, thread);
    unlock(s, SLOTS_LOCK);
}

#endif
