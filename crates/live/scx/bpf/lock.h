/* SPDX-License-Identifier: GPL-2.0-only */
/* What each lock guards. Each queue has one; it guards the queue, the cores that it serves, and all threads whose core
 * is one of these, whatever their state. To move a thread from one queue to another takes both locks, first that of the
 * queue with the lower number. With rounds, which are the same for all queues, one lock is for all. Slots for threads
 * have a lock of their own, within which no other is taken.
 *
 * Interrupts are off while a lock is held: a callback of the kernel's that interrupted the holder would wait for ever.
 * Callbacks of CPUs have them off anyway; the timer and the plan see to it themselves (kernel.h). These two are like
 * two more CPUs otherwise: each has a call of its own, the kernel lets no timer run twice at a time, and there is one
 * loader. What only balancing needs (`group`, `targets`, `sources`, rotations and newcomers) is the timer's.
 *
 * A search without a lock (where to put a thread, which one to steal) may see a state that is stale a moment later, so
 * it decides nothing: its result is checked again under the locks before it is acted on. */
#ifndef AMPSCHED_LOCK_H
#define AMPSCHED_LOCK_H

#include "record.h"

/* Locks of queues, and at the end that of the slots. */
#define LOCKS (2 * CORES_MAX)
#define SLOTS_LOCK CORES_MAX

/* On a cache line of its own. Not in the arena: there, Linux refuses atomic instructions on ARMv8.0. */
struct lock_word {
    u32 held;
    u32 unused;
    u64 begun; /* how many records there were when it was taken */
} __attribute__((aligned(64)));

#ifdef __bpf__
struct lock_word lock_words[LOCKS] __attribute__((section(".data.locks"), visibility("hidden")));
#else
extern struct lock_word lock_words[LOCKS];
#endif

/* Notes how many records there are when a lock is taken. */
static __always_inline done_t count_records(sched_t *s, u32 index)
{
    if (records(s))
        lock_words[index & (LOCKS - 1)].begun = READ_ONCE(record_count.given);
    return DONE;
}

/* Takes a lock as soon as it is free. Interrupts are off, here and wherever it is held. Gives up when the kernel's
 * patience is at an end, which ends the scheduler. */
global_subprog done_t lock(__arg_arena sched_t *s, u32 index)
{
    u32 *held = &lock_words[index & (LOCKS - 1)].held;
    do {
        if (READ_ONCE(*held) == 0 && __sync_val_compare_and_swap(held, 0, 1) == 0)
            return count_records(s, index);
    } while (can_loop);
    s->stuck++;
    return DONE;
}

/* Whether a lock is held just now. */
static __always_inline bool is_locked(u32 index)
{
    return READ_ONCE(lock_words[index & (LOCKS - 1)].held);
}

static __always_inline void unlock(sched_t *s, u32 index)
{
    (void)s;
    u32 *held = &lock_words[index & (LOCKS - 1)].held;
#ifdef __bpf__
    __sync_lock_test_and_set(held, 0); /* In BPF a full barrier. */
#else
    __atomic_exchange_n(held, 0, __ATOMIC_SEQ_CST);
#endif
}

/* The lock of the queue of a core. */
static __always_inline u32 lock_of(sched_t *s, u32 core)
{
    return rule(s, order) == ORDER_ROUNDS ? 0 : core_of(s, core)->queue;
}

/* Two locks that are held, or one twice: the lower in the lower half. */
typedef u64 locks_t;

static __always_inline locks_t lock_both(sched_t *s, u32 a, u32 b)
{
    u32 low = a < b ? a : b, high = a < b ? b : a;
    lock(s, low);
    if (high != low)
        lock(s, high);
    return (u64)high << 32 | low;
}

static __always_inline void unlock_both(sched_t *s, locks_t held)
{
    if (held >> 32 != (u32)held)
        unlock(s, held >> 32);
    unlock(s, (u32)held);
}

/* Locks a thread, wherever it is, and a core. */
global_subprog locks_t lock_thread_and_core(__arg_arena sched_t *s, u32 thread, u32 core)
{
    for (;;) {
        u32 own = lock_of(s, READ_ONCE(thread_of(s, thread)->core));
        locks_t held = lock_both(s, own, lock_of(s, core));
        if (lock_of(s, READ_ONCE(thread_of(s, thread)->core)) == own || !can_loop)
            return held;
        unlock_both(s, held);
    }
}

/* Locks a thread, wherever it is. Returns the lock. */
static __noinline u32 lock_thread(sched_t *s, u32 thread)
{
    for (;;) {
        u32 own = lock_of(s, READ_ONCE(thread_of(s, thread)->core));
        lock(s, own);
        if (lock_of(s, READ_ONCE(thread_of(s, thread)->core)) == own || !can_loop)
            return own;
        unlock(s, own);
    }
}

static __always_inline u32 lock_core(sched_t *s, u32 core)
{
    u32 own = lock_of(s, core);
    lock(s, own);
    return own;
}

static __noinline void record_locked(sched_t *s, u32 core, u64 what, u64 now_ns, u64 value)
{
    append_record(s, lock_words[lock_of(s, core) & (LOCKS - 1)].begun, what, now_ns, value);
}

/* Records what has been done, or decided, with the lock of a core; `what` as what_of() has it. */
static __always_inline void record_at(sched_t *s, u32 core, u64 what, u64 now_ns, u64 value)
{
    if (records(s))
        record_locked(s, core, what, now_ns, value);
}

/* Records a set of cores, of which the next record of a thread, whose lock is held, speaks. */
static __noinline void record_words(sched_t *s, u32 thread, set_t *cores)
{
    for (u32 i = s->zero; i < s->words && can_loop; i += s->one)
        record_at(s, thread_of(s, thread)->core, what_of(RECORD_CORES, 0, thread, i), 0, at(cores->words, i));
}

static __always_inline void record_cores(sched_t *s, u32 thread, set_t *cores)
{
    if (records(s))
        record_words(s, thread, cores);
}

#endif
