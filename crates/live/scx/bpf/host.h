/* SPDX-License-Identifier: GPL-2.0-only */
/* What the simulator's engine does around its interpreter (crates/sim/src/engine/dispatch.rs), for a kernel that
 * tells what happens in its own order, on many CPUs at once (lock.h).
 *
 * Who calls these holds the locks of all threads and cores that are given; calls.h takes them. Cores that must look for
 * work are collected in the call, and told when no lock is held any more. */
#ifndef AMPSCHED_HOST_H
#define AMPSCHED_HOST_H

#include "operation.h"

/* When a core that waits for a thread looks again in case it does not come: one tick at 250 Hz. */
#define COMES_NS 4000000

/* A call in which nothing has been collected yet. */
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
    u64 ran_ns = less(now_ns, charged_ns);
    charge(s, core, ran_ns);
    record_at(s, core, what_of(RECORD_CHARGE, 0, thread, core), 0, ran_ns);
    own->charged_ns = now_ns;
}

/* Records a change of a thread, if it is one. */
apart void record_if(sched_t *s, u32 thread, u32 kind, u32 core, bool changes)
{
    if (changes)
        record_locked(s, thread_of(s, thread)->core, what_of(kind, 0, thread, core), 0, 0);
}

/* Notes a core with a thread, in one of its words; records that after it is there to be seen. */
inlined void note_core(sched_t *s, u32 thread, u32 arena *word, u32 core, u32 kind)
{
    bool changes = *word != core;
    *word = core;
    if (records(s))
        record_if(s, thread, kind, core, changes);
}

/* Says which core only may pick a waiting thread: one, NOBODY, or NONE for all. */
inlined void bind(sched_t *s, u32 thread, u32 core)
{
    note_core(s, thread, &thread_of(s, thread)->bound_to, core, RECORD_BIND);
}

/* Says which idle core waits for a thread, or NONE. */
inlined void await(sched_t *s, u32 thread, u32 core)
{
    note_core(s, thread, &thread_of(s, thread)->pull_to, core, RECORD_PULL_TO);
}

inlined void wake_core(sched_t *s, call_t *c, u32 core)
{
    put(core_of(s, core)->looks, true);
    include(&c->wake, core);
    c->names = true;
}

inlined void interrupt_core(sched_t *s, call_t *c, u32 core)
{
    core_of(s, core)->interrupted = true;
    include(&c->interrupt, core);
    c->names = true;
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

/* Records a decision of a call about a thread and a core: its kind and answer. */
apart void record_answer(sched_t *s, call_t *c, u32 answer, u32 thread, u32 core)
{
    record_locked(s, core, what_of(answer >> 8, answer & 0xff, thread, core), c->now_ns, c->pick.except);
}

/* Records whether it does. */
inlined void record_preempts(sched_t *s, call_t *c, u32 thread, u32 core, bool interrupts)
{
    if (records(s))
        record_answer(s, c, RECORD_PREEMPTS << 8 | interrupts, thread, core);
}

/* A thread waits in a core's queue, where it may interrupt the one that runs, which has been charged. */
inlined void announce(sched_t *s, call_t *c, u32 thread, u32 core)
{
    u32 running = core_of(s, core)->running;
    bool interrupts = running != NONE && thread_of(s, running)->charged_ns != OFF_CPU;
    if (interrupts) {
        interrupts = preempts(s, thread, running, core);
        record_preempts(s, c, thread, core, interrupts);
    }
    if (interrupts)
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
    bind(s, thread, NONE);
    await(s, thread, NONE);
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
    await(s, thread, NONE);
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
    bind(s, thread, own->moves || own->pull_to != NONE ? NOBODY : core);
}

/* A thread that has been taken off its core for a moment still waits, as far as its load goes. */
inlined void wait_out(sched_t *s, u32 thread, u64 now_ns)
{
    track_rest(s, thread, STATE_READY, now_ns);
    record_at(s, thread_of(s, thread)->core, what_of(RECORD_OUT, 0, thread, 0), now_ns, 0);
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
            wait_out(s, thread, c->now_ns);
    } else {
        if (own->state == STATE_READY && !own->taken_out)
            dequeue(s, thread);
        leave_for(s, thread, state, c->now_ns);
    }
    own->charged_ns = OFF_CPU;
    own->taken_out = own->moves = false;
    release_puller(s, c, thread);
    bind(s, thread, NONE);
    own->chosen = NONE;
}

/* Whether the turn on a core is over, whose thread has been charged. If turns end at ticks, it is asked as at the last
 * one: the kernel's come a little late, and from then on the next tick would be the first at which it could end. */
inlined bool turn_is_over(sched_t *s, u32 core, u64 now_ns)
{
    u64 tick_ns = rule(s, tick_ns), asked_ns = tick_ns == 0 ? now_ns : now_ns / tick_ns * tick_ns;
    u64 end_ns = expiry_ns(s, core, asked_ns);
    record_at(s, core, what_of(RECORD_EXPIRY, 0, NONE, core), asked_ns, end_ns);
    return asked_ns >= end_ns;
}

/* Whether a thread that has lost its core to a task that is not ours, or has not got there yet, still belongs there:
 * such tasks are like interrupts. */
inlined bool stays(sched_t *s, u32 thread, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    return allows(s, thread, own->core) && !own->held && !own->moves && own->pull_to == NONE &&
           !core_of(s, own->core)->interrupted && !turn_is_over(s, own->core, now_ns);
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
    exclude(&c->wake, core);
    begin(s, c, core, thread);
    return true;
}

/* A thread that has just been queued at a core and interrupts what runs there takes its place now if it is the one
 * that the core would choose: the core need not be asked. Returns whether it has begun there; otherwise the core,
 * which has been told to, still looks. */
inlined bool take_over(sched_t *s, call_t *c, u32 thread, u32 core)
{
    thread_t *own = thread_of(s, thread);
    if (!has(&c->interrupt, core) || own->state != STATE_READY || own->core != core)
        return false;
    /* It may be interrupted for a thread that the plan has sent away and that runs in no book any more. */
    if (core_of(s, core)->running != NONE)
        give_way(s, core, c->now_ns);
    if (!begin_at_once(s, c, thread, core))
        return false;
    exclude(&c->interrupt, core);
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

/* Records whether it does. */
inlined void record_taking(sched_t *s, call_t *c, u32 kind, bool comes)
{
    if (records(s))
        record_answer(s, c, kind << 8 | comes, c->pick.thread, c->pick.core);
}

/* What an idle core has chosen comes about. Returns whether it could. */
inlined bool act(sched_t *s, call_t *c)
{
    pick_t *pick = &c->pick;
    if (pick->kind == PICK_RUN) {
        bool is_own = pick->thread == pick->instead_of, takes = is_own || can_take(s, pick);
        if (!is_own)
            record_taking(s, c, RECORD_TAKE, takes);
        if (!takes)
            return false;
        if (!is_own)
            c->wake_idle = anybody_waits(s);
        begin(s, c, pick->core, pick->thread);
        return true;
    }
    bool pulls = can_pull(s, pick);
    record_taking(s, c, RECORD_PULL, pulls);
    if (!pulls)
        return false;
    await(s, pick->thread, pick->core);
    interrupt_core(s, c, thread_of(s, pick->thread)->core);
    /* It may block before it comes. */
    put(core_of(s, pick->core)->recheck_ns, c->now_ns + COMES_NS);
    return true;
}

#endif
