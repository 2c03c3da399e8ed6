/* SPDX-License-Identifier: GPL-2.0-only */
/* Run queues: waiting threads in the order (key, serial), linked; FIFO queues have one key for all. After
 * crates/policy/src/queue.rs. */
#ifndef AMPSCHED_QUEUE_H
#define AMPSCHED_QUEUE_H

#include "set.h"

/* Where the state is: to the compiler a constant, though functions that are looked at once get it as an argument. */
#ifdef __bpf__
#define known(s) __builtin_assume((s) == (sched_t *)ARENA_AT)
#else
#define known(s) ((void)(s))
#endif

inlined thread_t *thread_of(sched_t *s, u32 thread)
{
    known(s);
    return &at(s->threads, thread);
}

/* Marks a thread whose state or counters are about to change: at each look the loader takes the marks off and reads
 * those threads only. It reads them once more at the next look, by when all is in memory that was on its way at the
 * first, and now and then it reads everybody. So it is enough if the mark is there at about the time of the change.
 * Who has it is not marked again, as it shares its cache line with those of others. Callers mark where they begin:
 * what they still had to know at their end the verifier would follow on every path to there. */
inlined void note_change(sched_t *s, u32 thread)
{
    u8 arena *mark = &at((u8 arena *)s, s->marks_at + thread);
    if (!get(*mark))
        put(*mark, 1);
}

inlined core_t *core_of(sched_t *s, u32 core)
{
    known(s);
    return &at(s->cores, core);
}

inlined queue_t *queue_of(sched_t *s, u32 core)
{
    known(s);
    return &at(s->queues, core_of(s, core)->queue);
}

/* The same number, of which the verifier knows nothing. What it knows of a number that lives on in a loop differs from
 * round to round, and it would follow each difference by itself. For the same reason loops begin at `zero`, step by
 * `one` and keep in the arena what they can. */
inlined u64 unknown(sched_t *s, u64 number)
{
    return number + s->zero;
}

inlined bool is_before(thread_t *a, thread_t *b)
{
    return a->key < b->key || (a->key == b->key && a->serial < b->serial);
}

/* Eight of an array of small numbers as one: whether any of them is not 0. */
inlined u64 eight_of(u8 arena *array, u32 first)
{
    return get(*(u64 arena *)&at(array, first));
}

/* Whether any of eight numbers is not 0, for loops that skip those. */
inlined bool some_of_eight(u8 arena *array, u32 index)
{
    return index % 8 != 0 || eight_of(array, index) != 0;
}

/* Whether a core is online and nobody runs there; it need not be locked. */
inlined bool idles(sched_t *s, u32 core)
{
    return get(at(s->idle, core));
}

/* Whether somebody waits in a queue; it need not be locked. */
inlined bool somebody_waits(sched_t *s, u32 queue)
{
    return get(at(s->waiting, queue));
}

inlined bool anybody_waits(sched_t *s)
{
    for (u32 queue = s->zero; queue < s->queue_count && can_go_on; queue += 8 * s->one)
        if (eight_of(s->waiting, queue))
            return true;
    return false;
}

/* A thread comes to wait (1), or does so no longer (-1). */
inlined void count_waiting(sched_t *s, queue_t *queue, s32 more)
{
    queue->len += more;
    put(at(s->waiting, queue->index), queue->len > 0);
}

/* Puts a thread, whose key and serial are set, at its place. Most keys are large, so the search begins at the end. */
apart void queue_push(sched_t *s, queue_t *queue, u32 thread)
{
    thread_t *own = thread_of(s, thread);
    u32 before = queue->last;
    while (before != NONE && can_go_on && is_before(own, thread_of(s, before)))
        before = thread_of(s, before)->before;
    u32 behind = before == NONE ? queue->first : thread_of(s, before)->behind;
    own->before = before;
    own->behind = behind;
    if (before == NONE)
        queue->first = thread;
    else
        thread_of(s, before)->behind = thread;
    if (behind == NONE)
        queue->last = thread;
    else
        thread_of(s, behind)->before = thread;
    count_waiting(s, queue, 1);
}

apart void queue_remove(sched_t *s, queue_t *queue, u32 thread)
{
    thread_t *own = thread_of(s, thread);
    if (own->before == NONE)
        queue->first = own->behind;
    else
        thread_of(s, own->before)->behind = own->behind;
    if (own->behind == NONE)
        queue->last = own->before;
    else
        thread_of(s, own->behind)->before = own->before;
    own->before = own->behind = NONE;
    count_waiting(s, queue, -1);
}

/* Least key, NEVER if the queue is empty. */
inlined u64 queue_least(sched_t *s, queue_t *queue)
{
    return queue->first == NONE ? NEVER : thread_of(s, queue->first)->key;
}

/* Whether a thread can be taken from it: the only thread of a core that is about to run it stays. */
inlined bool can_spare(queue_t *queue)
{
    return queue->len + (queue->running > 0) > 1;
}

/* Sum of weights per rated core that it serves. */
inlined u64 scaled(queue_t *queue, u64 load)
{
    return queue->capacity == SPEED_ONE ? load : load * SPEED_ONE / greatest_of(queue->capacity, 1);
}

inlined u64 scaled_load(queue_t *queue)
{
    return scaled(queue, queue->load);
}

/* Sum of weights per core, whatever the rating. */
inlined u64 load_per_core(queue_t *queue)
{
    return queue->load / greatest_of(queue->cores, 1);
}

/* Weighted mean virtual run time (EEVDF's V), where it stood last if it has no thread. */
inlined s64 mean_vruntime(queue_t *queue)
{
    if (queue->load == 0)
        return (s64)queue->min_vruntime;
    return (s64)queue->base + div_down(queue->weighted, queue->load);
}

/* Keeps the sum small: a multiple of the load is taken over by the base, which changes nothing. */
inlined void rebase(queue_t *queue)
{
    s64 step = queue->load == 0 ? 0 : div_down(queue->weighted, queue->load);
    queue->base += (u64)step;
    queue->weighted -= step * (s64)queue->load;
}

#endif
