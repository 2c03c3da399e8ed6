/* SPDX-License-Identifier: GPL-2.0-only */
/* Run queues: waiting threads in the order (key, serial), linked; FIFO queues have one key for all. After
 * crates/policy/src/queue.rs. */
#ifndef AMPSCHED_QUEUE_H
#define AMPSCHED_QUEUE_H

#include "set.h"

/* Where the state is: to the compiler a constant, though functions that are looked at once get it as an argument. */
#ifdef __bpf__
#define assume_state(s) __builtin_assume((s) == (sched_t *)ARENA_AT)
#else
#define assume_state(s) ((void)(s))
#endif

static __always_inline thread_t *thread_of(sched_t *s, u32 thread)
{
    assume_state(s);
    return &at(s->threads, thread);
}

/* Marks a thread whose state or counters are about to change: at each look the loader takes the marks off and reads
 * those threads only. It reads them once more at the next look, by when all is in memory that was on its way at the
 * first, and now and then it reads all threads. So it is enough if the mark is there at about the time of the change. A
 * marked thread is not marked again, as marks of several threads share a cache line. Callers mark where they begin:
 * what they still had to know at their end the verifier would follow on every path to there. */
static __always_inline void note_change(sched_t *s, u32 thread)
{
    u8 __arena *mark = &at((u8 __arena *)s, s->marks_at + thread);
    if (!READ_ONCE(*mark))
        WRITE_ONCE(*mark, 1);
}

static __always_inline core_t *core_of(sched_t *s, u32 core)
{
    assume_state(s);
    return &at(s->cores, core);
}

static __always_inline queue_t *queue_of(sched_t *s, u32 core)
{
    assume_state(s);
    return &at(s->queues, core_of(s, core)->queue);
}

/* The same number, of which the verifier knows nothing. What it knows of a number that lives on in a loop differs from
 * round to round, and it would follow each difference by itself. For the same reason loops begin at `zero`, step by
 * `one` and keep in the arena what they can. */
static __always_inline u64 opaque(sched_t *s, u64 number)
{
    return number + s->zero;
}

static __always_inline bool is_before(thread_t *a, thread_t *b)
{
    return a->key < b->key || (a->key == b->key && a->serial < b->serial);
}

/* Eight of an array of small numbers as one: whether any of them is not 0. */
static __always_inline u64 eight_of(u8 __arena *array, u32 first)
{
    return READ_ONCE(*(u64 __arena *)&at(array, first));
}

/* Whether any of eight numbers is not 0, for loops that skip those. */
static __always_inline bool any_of_eight(u8 __arena *array, u32 index)
{
    return index % 8 != 0 || eight_of(array, index) != 0;
}

/* Whether a core is online and runs no thread; it need not be locked. */
static __always_inline bool is_core_idle(sched_t *s, u32 core)
{
    return READ_ONCE(at(s->idle, core));
}

/* Whether a thread waits in a queue; it need not be locked. */
static __always_inline bool has_waiting(sched_t *s, u32 queue)
{
    return READ_ONCE(at(s->waiting, queue));
}

static __always_inline bool any_queue_waits(sched_t *s)
{
    for (u32 queue = s->zero; queue < s->queue_count && can_loop; queue += 8 * s->one)
        if (eight_of(s->waiting, queue))
            return true;
    return false;
}

/* A thread comes to wait (1), or does so no longer (-1). */
static __always_inline void count_waiting(sched_t *s, queue_t *queue, s32 more)
{
    queue->len += more;
    WRITE_ONCE(at(s->waiting, queue->index), queue->len > 0);
}

/* Puts a thread, whose key and serial are set, at its place. Most keys are large, so the search begins at the end. */
static __noinline void queue_push(sched_t *s, queue_t *queue, u32 thread)
{
    thread_t *own = thread_of(s, thread);
    u32 prev = queue->last;
    while (prev != NONE && can_loop && is_before(own, thread_of(s, prev)))
        prev = thread_of(s, prev)->prev;
    u32 next = prev == NONE ? queue->first : thread_of(s, prev)->next;
    own->prev = prev;
    own->next = next;
    if (prev == NONE)
        queue->first = thread;
    else
        thread_of(s, prev)->next = thread;
    if (next == NONE)
        queue->last = thread;
    else
        thread_of(s, next)->prev = thread;
    count_waiting(s, queue, 1);
}

static __noinline void queue_remove(sched_t *s, queue_t *queue, u32 thread)
{
    thread_t *own = thread_of(s, thread);
    if (own->prev == NONE)
        queue->first = own->next;
    else
        thread_of(s, own->prev)->next = own->next;
    if (own->next == NONE)
        queue->last = own->prev;
    else
        thread_of(s, own->next)->prev = own->prev;
    own->prev = own->next = NONE;
    count_waiting(s, queue, -1);
}

/* Least key, NEVER if the queue is empty. */
static __always_inline u64 queue_least(sched_t *s, queue_t *queue)
{
    return queue->first == NONE ? NEVER : thread_of(s, queue->first)->key;
}

/* Whether a thread can be taken from it: the only thread of a core that is about to run it stays. */
static __always_inline bool can_spare(queue_t *queue)
{
    return queue->len + (queue->running > 0) > 1;
}

/* Sum of weights per rated core that it serves. */
static __always_inline u64 scaled(queue_t *queue, u64 load)
{
    return queue->capacity == SPEED_ONE ? load : load * SPEED_ONE / max(queue->capacity, 1);
}

static __always_inline u64 scaled_load(queue_t *queue)
{
    return scaled(queue, queue->load);
}

/* Sum of weights per core, whatever the rating. */
static __always_inline u64 load_per_core(queue_t *queue)
{
    return queue->load / max(queue->cores, 1);
}

/* Weighted mean virtual run time (EEVDF's V), where it stood last if it has no thread. */
static __always_inline s64 mean_vruntime(queue_t *queue)
{
    if (queue->load == 0)
        return (s64)queue->min_vruntime;
    return (s64)queue->base + div_floor(queue->weighted, queue->load);
}

/* Keeps the sum small: a multiple of the load is taken over by the base, which changes nothing. */
static __always_inline void rebase(queue_t *queue)
{
    s64 step = queue->load == 0 ? 0 : div_floor(queue->weighted, queue->load);
    queue->base += (u64)step;
    queue->weighted -= step * (s64)queue->load;
}

#endif
