/* SPDX-License-Identifier: GPL-2.0-only */
/* Virtual time: what running costs, how long a slice lasts, which thread may interrupt which. After
 * crates/policy/src/sched/time.rs. */
#ifndef AMPSCHED_VTIME_H
#define AMPSCHED_VTIME_H

#include "queue.h"

static __always_inline u64 to_virtual(u64 ns, u32 weight)
{
    return weight == WEIGHT_ONE ? ns : ns * WEIGHT_ONE / weight;
}

static __always_inline u64 to_real(u64 virtual_ns, u32 weight)
{
    return weight == WEIGHT_ONE ? virtual_ns : div_round_up(virtual_ns * weight, WEIGHT_ONE);
}

static __always_inline u64 run_ns_total(thread_t *thread)
{
    return thread->run_ns[0] + thread->run_ns[1] + thread->run_ns[2] + thread->run_ns[3];
}

static __always_inline u32 speed_on(sched_t *s, u32 thread, u32 core)
{
    return at(thread_of(s, thread)->speed, core_of(s, core)->class);
}

/* How much faster than real time a thread of weight 1024 is charged on a core. */
static __always_inline u32 pace_on(sched_t *s, u32 thread, u32 core)
{
    switch (rule(s, charge)) {
    case CHARGE_TIME:
        return SPEED_ONE;
    case CHARGE_PROGRESS:
        return speed_on(s, thread, core);
    default:
        return at(s->rules.rating, core_of(s, core)->class);
    }
}

static __always_inline u64 counted_ns(sched_t *s, u32 thread, u32 core, u64 ran_ns)
{
    return ran_ns * pace_on(s, thread, core) / SPEED_ONE;
}

/* A turn begins, of which nothing has been charged yet. */
static __always_inline void begin_turn(core_t *cpu)
{
    cpu->turn_ns = opaque_zero();
    cpu->turn_virtual_ns = opaque_zero();
}

/* The pace at which a thread is charged changes: what it has run so far has been charged for. */
static __always_inline void begin_turn_anew(sched_t *s, u32 thread)
{
    core_t *cpu = core_of(s, thread_of(s, thread)->core);
    if (cpu->running == thread)
        begin_turn(cpu);
}

/* Charges the thread that runs on a core. */
static __noinline void charge(sched_t *s, u32 core, u64 ran_ns)
{
    core_t *cpu = core_of(s, core);
    u32 thread = cpu->running;
    thread_t *own = thread_of(s, thread);
    cpu->busy_ns += ran_ns;
    at(own->run_ns, cpu->class) += ran_ns;
    note_change(s, thread);
    if (rule(s, order) == ORDER_FIFO)
        return;
    /* Only the turn as a whole is rounded, so that it does not matter in how many parts it is charged. */
    cpu->turn_ns += ran_ns;
    u64 virtual_ns = to_virtual(counted_ns(s, thread, core, cpu->turn_ns), own->weight);
    u64 delta = virtual_ns - cpu->turn_virtual_ns;
    cpu->turn_virtual_ns = virtual_ns;
    own->vruntime += delta;
    queue_t *queue = queue_of(s, core);
    if (rule(s, order) == ORDER_DEADLINE) {
        queue->weighted += (s64)own->weight * (s64)delta;
        rebase(queue);
    } else {
        u64 least = min(queue_least(s, queue), own->vruntime);
        queue->min_vruntime = max(queue->min_vruntime, least);
    }
}

/* The part of the period of a queue's core that belongs to a weight, `more` threads of that weight added. */
static __always_inline u64 share_ns(sched_t *s, queue_t *queue, u32 weight, u32 more)
{
    u64 threads = div_round_up((u64)queue->len + queue->running, max(queue->cores, 1)) + more;
    u64 load = load_per_core(queue) + (u64)weight * more;
    u64 period_ns = max(rule(s, latency_ns), threads * rule(s, min_granularity_ns));
    return period_ns * weight / max(load, weight);
}

/* The length of a slice or request that the rules state. */
static __always_inline u64 stated_slice_ns(sched_t *s)
{
    return rule(s, slice) == SLICE_REQUEST ? rule(s, base_ns) : rule(s, slice_ns);
}

/* How long a thread may run on a core while others wait. */
static __noinline u64 slice_by_rules(sched_t *s, u32 thread, u32 core)
{
    thread_t *own = thread_of(s, thread);
    if (own->slice_ns > 0)
        return own->slice_ns;
    u64 slice_ns = stated_slice_ns(s);
    if (rule(s, slice) == SLICE_LATENCY_SHARE)
        slice_ns = share_ns(s, queue_of(s, core), own->weight, 0);
    if (rule(s, slice_by_speed))
        slice_ns = slice_ns * SPEED_ONE / max(speed_on(s, thread, core), 1);
    return slice_ns;
}

/* When the slice of the thread that runs on a core ends. */
static __always_inline u64 slice_end_ns(sched_t *s, u32 core, u32 thread, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    u64 since_ns = core_of(s, core)->since_ns;
    if (rule(s, slice) == SLICE_REQUEST)
        return now_ns + to_real(sat_sub(own->deadline, own->vruntime), own->weight);
    u64 slice_ns = slice_by_rules(s, thread, core);
    u64 by_share = since_ns + slice_ns;
    if (rule(s, slice) == SLICE_FIXED)
        return by_share;
    /* Past the minimum granularity, being a slice ahead of the leftmost waiting thread also ends the turn. */
    queue_t *queue = queue_of(s, core);
    if (rule(s, order) != ORDER_VRUNTIME || queue->len == 0)
        return by_share;
    u64 ahead = sat_sub(queue_least(s, queue) + slice_ns, own->vruntime);
    u64 by_gap = now_ns + to_real(ahead, own->weight);
    return min(by_share, max(since_ns + rule(s, min_granularity_ns), by_gap));
}

static __always_inline u64 at_tick(sched_t *s, u64 due_ns)
{
    u64 tick_ns = rule(s, tick_ns);
    return tick_ns == 0 ? due_ns : div_round_up(due_ns, tick_ns) * tick_ns;
}

#endif
