/* SPDX-License-Identifier: GPL-2.0-only */
/* What the simulator's engine does around its interpreter (crates/sim/src/engine/dispatch.rs), for a kernel that
 * tells what happens in its own order, on many CPUs at once (lock.h).
 *
 * Callers hold the locks of all threads and cores that are given; calls.h takes them. Cores that must look for work are
 * collected in the call, and kicked when no lock is held any more. */
#ifndef AMPSCHED_HOST_H
#define AMPSCHED_HOST_H

#include "operation.h"

/* When a core that waits for a thread looks again in case it does not come: one tick at 250 Hz. */
#define ARRIVAL_NS 4000000

/* A call in which nothing has been collected yet. */
static __always_inline call_t *call_of(sched_t *s, u32 core, u64 now_ns)
{
    call_t *c = &at(s->calls, core);
    c->now_ns = now_ns;
    c->here = NONE;
    return c;
}

/* Charges the thread that runs on a core, if it is really there. */
static __always_inline void charge_up_to(sched_t *s, u32 core, u64 now_ns)
{
    u32 thread = core_of(s, core)->running;
    if (thread == NONE)
        return;
    thread_t *own = thread_of(s, thread);
    u64 charged_ns = own->charged_ns;
    if (charged_ns == OFF_CPU)
        return;
    u64 ran_ns = sat_sub(now_ns, charged_ns);
    charge(s, core, ran_ns);
    record_at(s, core, what_of(RECORD_CHARGE, 0, thread, core), 0, ran_ns);
    own->charged_ns = now_ns;
}

/* Records a change of a thread, if it is one. */
static __noinline void record_if(sched_t *s, u32 thread, u32 kind, u32 core, bool changes)
{
    if (changes)
        record_locked(s, thread_of(s, thread)->core, what_of(kind, 0, thread, core), 0, 0);
}

/* Notes a core with a thread, in one of its words; records that after it is there to be seen. */
static __always_inline void note_core(sched_t *s, u32 thread, u32 __arena *word, u32 core, u32 kind)
{
    bool changes = *word != core;
    *word = core;
    if (records(s))
        record_if(s, thread, kind, core, changes);
}

/* Says which core only may pick a waiting thread: one, NO_CORE, or NONE for all. */
static __always_inline void bind(sched_t *s, u32 thread, u32 core)
{
    note_core(s, thread, &thread_of(s, thread)->bound_to, core, RECORD_BIND);
}

/* Says which idle core waits for a thread, or NONE. */
static __always_inline void set_puller(sched_t *s, u32 thread, u32 core)
{
    note_core(s, thread, &thread_of(s, thread)->pull_to, core, RECORD_PULL_TO);
}

static __always_inline void wake_core(sched_t *s, call_t *c, u32 core)
{
    WRITE_ONCE(core_of(s, core)->need_resched, true);
    include(&c->wake, core);
    c->has_kicks = true;
}

static __always_inline void interrupt_core(sched_t *s, call_t *c, u32 core)
{
    core_of(s, core)->interrupted = true;
    include(&c->interrupt, core);
    c->has_kicks = true;
}

/* Kicks idle cores that wait for no thread; of two that are one physical core the first, which lets the other look if
 * it takes nothing. */
static __noinline void rekick_idle_cores(sched_t *s, call_t *c)
{
    for (u32 core = s->zero; core < s->core_count && can_loop; core += s->one) {
        if (!any_of_eight(s->idle, core))
            core += 7 * s->one;
        else if (is_core_free(s, core) && READ_ONCE(core_of(s, core)->recheck_ns) == NEVER &&
                 !(is_second(s, core) && is_core_free(s, core_of(s, core)->sibling)))
            wake_core(s, c, core);
    }
}

/* Kicks the first idle core that would take a thread now, of those that have a physical core for themselves (of two
 * idle threads of a core, one has it), or of the others. Returns whether there is one. */
static __noinline bool wake_first_idle(sched_t *s, call_t *c, bool late)
{
    pick_t *pick = &c->pick;
    pick->now_ns = c->now_ns;
    pick->instead_of = NONE;
    for (u32 core = s->zero; core < s->core_count && can_loop; core += s->one) {
        if (!any_of_eight(s->idle, core)) {
            core += 7 * s->one;
            continue;
        }
        core_t *cpu = core_of(s, core);
        if (!is_core_idle(s, core) || READ_ONCE(cpu->need_resched) ||
            (is_second(s, core) || shares_core(s, core)) != late)
            continue;
        pick->core = core;
        if (queue_of(s, core)->len == 0)
            pick_elsewhere(s, pick);
        if (queue_of(s, core)->len > 0 || pick->kind != PICK_IDLE) {
            wake_core(s, c, core);
            return true;
        }
        WRITE_ONCE(cpu->recheck_ns, min(READ_ONCE(cpu->recheck_ns), pick->recheck_ns));
    }
    return false;
}

/* Kicks one idle core. All could look, as in the simulator, and the first one would be served; the others learn only
 * when to look again. */
static __always_inline void wake_idle_core(sched_t *s, call_t *c)
{
    if (!wake_first_idle(s, c, false) && has_smt(s))
        wake_first_idle(s, c, true);
}

/* Completes the cores to be kicked, when no lock is held any more: a core that idles by then has seen what this call
 * did, or is seen here. */
static __always_inline void collect_kicks(sched_t *s, call_t *c)
{
    bool wake = c->wake_idle && rule(s, kick_idle), remind = c->rekick_idle;
    c->wake_idle = c->rekick_idle = false;
    if (remind)
        rekick_idle_cores(s, c);
    if (wake)
        wake_idle_core(s, c);
}

/* A thread waits in a core's queue: the core, or idle ones, must look. */
static __always_inline void after_enqueue(sched_t *s, call_t *c, u32 core)
{
    if (core_of(s, core)->running == NONE) {
        bool already_looks = READ_ONCE(core_of(s, core)->need_resched);
        wake_core(s, c, core);
        /* The core can take only one: a further thread is for others. */
        if (!already_looks)
            return;
    }
    c->wake_idle = true;
}

/* Records a decision of a call about a thread and a core: its kind and answer. */
static __noinline void record_answer(sched_t *s, call_t *c, u32 answer, u32 thread, u32 core)
{
    record_locked(s, core, what_of(answer >> 8, answer & 0xff, thread, core), c->now_ns, c->pick.except);
}

/* Records whether it does. */
static __always_inline void record_preempts(sched_t *s, call_t *c, u32 thread, u32 core, bool interrupts)
{
    if (records(s))
        record_answer(s, c, RECORD_PREEMPTS << 8 | interrupts, thread, core);
}

/* A thread waits in a core's queue, where it may interrupt the one that runs, which has been charged. */
static __always_inline void wakeup_preempt(sched_t *s, call_t *c, u32 thread, u32 core)
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
static __always_inline void clear_arriving(sched_t *s, u32 thread)
{
    thread_t *own = thread_of(s, thread);
    if (own->arriving)
        queue_of(s, own->core)->arriving--;
    own->arriving = false;
}

/* A core takes a waiting thread. */
static __noinline void run_thread(sched_t *s, call_t *c, u32 core, u32 thread)
{
    thread_t *own = thread_of(s, thread);
    u64 migrations = own->migrations;
    clear_arriving(s, thread);
    bind(s, thread, NONE);
    set_puller(s, thread, NONE);
    own->charged_ns = OFF_CPU;
    core_of(s, core)->interrupted = false;
    start(s, core, thread, c->now_ns);
    if (queue_of(s, core)->len > 0)
        c->wake_idle = true;
    /* As a middle core may pull from a slow one, the threads that start on any core but the fastest are announced to
     * cores without work. */
    if ((own->migrations != migrations || core_of(s, core)->class < s->top_class || shares_core(s, core)) &&
        s->pulls_running)
        c->rekick_idle = true;
}

/* A core that has chosen a thread to pull waits for it in vain: it looks again, and hears again of others that start on
 * slower cores. */
static __always_inline void release_puller(sched_t *s, call_t *c, u32 thread)
{
    thread_t *own = thread_of(s, thread);
    if (own->pull_to != NONE && is_core_idle(s, own->pull_to))
        wake_core(s, c, own->pull_to);
    set_puller(s, thread, NONE);
}

/* Whether a thread is in no queue and on no core, and will come into one. */
static __always_inline bool is_off_rq(thread_t *thread)
{
    return thread->dequeued || thread->state == STATE_NEW || thread->state == STATE_BLOCKED ||
           thread->state == STATE_HELD;
}

static __always_inline u32 enqueue_kind_of(thread_t *thread)
{
    if (thread->state == STATE_NEW)
        return ENQUEUE_FORK;
    return thread->state == STATE_READY ? ENQUEUE_REQUEUE : ENQUEUE_WAKE;
}

/* A thread that is in no queue comes into a core's. */
static __always_inline void enqueue_thread(sched_t *s, u32 thread, u32 core, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    u32 kind = enqueue_kind_of(own);
    own->dequeued = false;
    own->chosen = NONE;
    enqueue(s, thread, core, kind, now_ns);
}

/* The thread on a core, charged, leaves it: until the kernel has let it go no core may pick it if it is to be
 * elsewhere, and otherwise only this core. */
static __noinline void put_prev(sched_t *s, u32 core, u64 now_ns)
{
    u32 thread = core_of(s, core)->running;
    thread_t *own = thread_of(s, thread);
    charge_up_to(s, core, now_ns);
    own->charged_ns = OFF_CPU;
    if (own->held) {
        stop(s, core, STATE_READY, now_ns);
        return block(s, thread, STATE_HELD, now_ns);
    }
    requeue(s, core, now_ns);
    bind(s, thread, own->must_move || own->pull_to != NONE ? NO_CORE : core);
}

/* A thread that has been taken off its core for a moment still waits, as far as its load goes. */
static __always_inline void track_dequeued(sched_t *s, u32 thread, u64 now_ns)
{
    track_rest(s, thread, STATE_READY, now_ns);
    record_at(s, thread_of(s, thread)->core, what_of(RECORD_OUT, 0, thread, 0), now_ns, 0);
}

/* Takes a thread out of wherever it is; it is then in no queue and on no core. */
static __always_inline void dequeue_locked(sched_t *s, call_t *c, u32 thread, u32 state)
{
    thread_t *own = thread_of(s, thread);
    clear_arriving(s, thread);
    if (own->state == STATE_RUNNING) {
        charge_up_to(s, own->core, c->now_ns);
        stop(s, own->core, state, c->now_ns);
        if (state == STATE_READY)
            track_dequeued(s, thread, c->now_ns);
    } else {
        if (own->state == STATE_READY && !own->dequeued)
            dequeue(s, thread);
        block(s, thread, state, c->now_ns);
    }
    own->charged_ns = OFF_CPU;
    own->dequeued = own->must_move = false;
    release_puller(s, c, thread);
    bind(s, thread, NONE);
    own->chosen = NONE;
}

/* Whether the turn on a core is over, whose thread has been charged. If turns end at ticks, it is asked as at the last
 * one: the kernel's come a little late, and from then on the next tick would be the first at which it could end. */
static __always_inline bool turn_is_over(sched_t *s, u32 core, u64 now_ns)
{
    u64 tick_ns = rule(s, tick_ns), asked_ns = tick_ns == 0 ? now_ns : now_ns / tick_ns * tick_ns;
    u64 end_ns = expiry_ns(s, core, asked_ns);
    record_at(s, core, what_of(RECORD_EXPIRY, 0, NONE, core), asked_ns, end_ns);
    return asked_ns >= end_ns;
}

/* Whether a thread that has lost its core to a task that is not ours, or has not got there yet, still belongs there:
 * such tasks are like interrupts. */
static __always_inline bool keeps_core(sched_t *s, u32 thread, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    return allows(s, thread, own->core) && !own->held && !own->must_move && own->pull_to == NONE &&
           !core_of(s, own->core)->interrupted && !turn_is_over(s, own->core, now_ns);
}

/* A thread that has just been queued at an idle core begins there if that would take this very thread: the core need
 * not be asked. Returns whether it has begun. */
static __always_inline bool run_at_once(sched_t *s, call_t *c, u32 thread, u32 core)
{
    thread_t *own = thread_of(s, thread);
    if (own->state != STATE_READY || own->core != core || own->bound_to != NONE || core_of(s, core)->running != NONE)
        return false;
    if (!pick_own(s, &c->pick, core, c->now_ns) || c->pick.kind != PICK_RUN || c->pick.thread != thread)
        return false;
    WRITE_ONCE(core_of(s, core)->need_resched, false);
    WRITE_ONCE(core_of(s, core)->recheck_ns, NEVER);
    exclude(&c->wake, core);
    run_thread(s, c, core, thread);
    return true;
}

/* A thread that has just been queued at a core and interrupts what runs there takes its place now if it is the one that
 * the core would choose: the core need not be asked. Returns whether it has begun there; otherwise the core, which has
 * been kicked, still picks anew. */
static __always_inline bool preempt_at_once(sched_t *s, call_t *c, u32 thread, u32 core)
{
    thread_t *own = thread_of(s, thread);
    if (!has(&c->interrupt, core) || own->state != STATE_READY || own->core != core)
        return false;
    /* It may be interrupted for a thread that the plan has sent away and that runs in no book any more. */
    if (core_of(s, core)->running != NONE)
        put_prev(s, core, c->now_ns);
    if (!run_at_once(s, c, thread, core))
        return false;
    exclude(&c->interrupt, core);
    return true;
}

/* A thread waits in a core's queue since a moment ago. If that is the core of the CPU where the kernel has put it, it
 * may begin at once. */
static __always_inline void run_here(sched_t *s, call_t *c, u32 thread, u32 core)
{
    if (c->here != core)
        return;
    c->started = c->here_idles ? run_at_once(s, c, thread, core) : preempt_at_once(s, c, thread, core);
}

/* Whether all that wait at a core are still on the way there. */
static __always_inline bool waits_for_arrivals(sched_t *s, u32 core, u64 now_ns)
{
    core_t *cpu = core_of(s, core);
    queue_t *queue = queue_of(s, core);
    if (queue->arriving == 0 || queue->arriving != queue->len || now_ns >= READ_ONCE(cpu->recheck_ns))
        return false;
    WRITE_ONCE(cpu->recheck_ns, min(READ_ONCE(cpu->recheck_ns), now_ns + ARRIVAL_NS));
    return true;
}

/* Whether the thread that a core has chosen still waits elsewhere and may be taken. */
static __always_inline bool can_take(sched_t *s, pick_t *pick)
{
    thread_t *own = thread_of(s, pick->thread);
    if (own->state != STATE_READY || own->dequeued)
        return false;
    queue_t *queue = queue_of(s, own->core);
    return queue != queue_of(s, pick->core) && can_spare(queue) && fits(s, pick->thread, pick->core, pick->except);
}

/* Whether the thread that a core has chosen still runs on a slower one, or on a shared one. */
static __always_inline bool can_pull(sched_t *s, pick_t *pick)
{
    thread_t *own = thread_of(s, pick->thread);
    return own->state == STATE_RUNNING && own->pull_to == NONE && !own->held && allows(s, pick->thread, pick->core) &&
           (core_of(s, own->core)->class < core_of(s, pick->core)->class ||
            (shares_core(s, own->core) && !shares_core(s, pick->core)));
}

/* Records whether it does. */
static __always_inline void record_taking(sched_t *s, call_t *c, u32 kind, bool comes)
{
    if (records(s))
        record_answer(s, c, kind << 8 | comes, c->pick.thread, c->pick.core);
}

/* What an idle core has chosen comes about. Returns whether it could. */
static __always_inline bool act(sched_t *s, call_t *c)
{
    pick_t *pick = &c->pick;
    if (pick->kind == PICK_RUN) {
        bool is_own = pick->thread == pick->instead_of, takes = is_own || can_take(s, pick);
        if (!is_own)
            record_taking(s, c, RECORD_TAKE, takes);
        if (!takes)
            return false;
        if (!is_own)
            c->wake_idle = any_queue_waits(s);
        run_thread(s, c, pick->core, pick->thread);
        return true;
    }
    bool pulls = can_pull(s, pick);
    record_taking(s, c, RECORD_PULL, pulls);
    if (!pulls)
        return false;
    set_puller(s, pick->thread, pick->core);
    interrupt_core(s, c, thread_of(s, pick->thread)->core);
    /* It may block before it comes. */
    WRITE_ONCE(core_of(s, pick->core)->recheck_ns, c->now_ns + ARRIVAL_NS);
    return true;
}

#endif
