/* SPDX-License-Identifier: GPL-2.0-only */
/* What happens and what is decided, written down in one order, so that the interpreter in Rust can be asked whether it
 * decides the same (src/replay.rs says what of it is compared).
 *
 * Each record has a number. A change takes it while the locks are held (lock.h), after it has been made; so does a
 * decision under locks. Of two that concern the same queue, core or thread, one had the lock first, and has the lower
 * number: carried out in the order of numbers, each sees what it saw.
 *
 * A search without locks takes a number when it is over. Each record also says how many numbers had been given out when
 * its lock was taken, or the look began. What was changed by one whose lock was taken before a look ended, and whose
 * number was given out after it began, the look may have seen or not; all else it has seen as the order of numbers
 * says.
 *
 * If nothing is recorded, that is a constant: the kernel's verifier leaves all this out. */
#ifndef AMPSCHED_RECORD_H
#define AMPSCHED_RECORD_H

#include "queue.h"

enum record_kind {
    RECORD_CORES, /* thread, core: index of a word, value: that word of the set in the thread's next record */
    RECORD_ADD, /* thread, value: weight; cores */
    RECORD_ENQUEUE, /* thread, core, flag: kind, value: virtual run time then */
    RECORD_START, /* thread, core, value: virtual run time then */
    RECORD_CHARGE, /* thread, core, value: ns */
    RECORD_STOP, /* thread, core, flag: state, value: virtual run time then */
    RECORD_DEQUEUE, /* thread */
    RECORD_LEAVE, /* thread, flag: state */
    RECORD_OUT, /* thread: it has been taken off its core, and still waits */
    RECORD_USER_AFFINITY, /* thread, flag: must be moved; cores */
    RECORD_CHANGE, /* thread, core: CHANGE_ + 256 x class, flag: must be moved, value; cores */
    RECORD_PACE, /* core, value: its capacity from now on */
    RECORD_BIND, /* thread, core: the only one that may pick it, NO_CORE or NONE as 16 bits */
    RECORD_PULL_TO, /* thread, core: that has chosen to pull it, or NONE */
    /* Decisions with locks */
    RECORD_FIRST, /* core, thread: the first that it may run of its queue */
    RECORD_PREEMPTS, /* thread, core, flag: whether it interrupts what runs there */
    RECORD_EXPIRY, /* core, value: when the turn there ends */
    RECORD_TAKE, /* thread, core, value: the preference left out, flag: whether the core takes it from another queue */
    RECORD_PULL, /* thread, core, flag: whether the core pulls it */
    RECORD_MOVE, /* thread, core, value: the core from whose queue, flag: whether balancing moves it there */
    /* Looks without locks */
    RECORD_PLACE, /* thread, core: the waker's, value: where it shall go */
    RECORD_ELSEWHERE, /* core, value: instead of which thread, flag: PICK_, + 0x80 if queues were locked, thread */
    /* Nothing is decided by it */
    RECORD_OTHERS, /* core, flag: whether a task that is not ours runs there */
};

struct record {
    u64 number; /* and 1, written last; 0: it is not there yet */
    u64 begun; /* how many numbers had been given out when the lock was taken, or the look began */
    u64 now_ns; /* 0: whenever */
    u64 value;
    u64 what; /* kind, flag, core, thread: 8, 8, 16 and 32 bits, the highest first */
};

/* On a cache line of its own, not in the arena (lock.h). */
struct record_count {
    u64 given;
} __attribute__((aligned(64)));

#ifdef __bpf__
struct record_count record_count __attribute__((section(".data.count"), visibility("hidden")));
#else
extern struct record_count record_count;
#endif

/* Whether anything is recorded. */
#ifdef CONSTANT_RULES
extern const volatile u32 constant_recording;
#define records(s) constant_recording
#elif defined(RECORDS)
#define records(s) ((s)->records_max > 0)
#else
#define records(s) ((void)(s), false)
#endif

/* Writes a record. If there is no room for it, the recording ends; its reader sees that, as a number is missing. */
static __always_inline void append_record(sched_t *s, u64 begun, u64 what, u64 now_ns, u64 value)
{
    if (READ_ONCE(s->records_lost))
        return;
    u64 number = __sync_fetch_and_add(&record_count.given, 1);
    if (number - READ_ONCE(s->records_read) >= s->records_max) {
        WRITE_ONCE(s->records_lost, 1);
        return;
    }
    struct record __arena *all = (struct record __arena *)&at((u8 __arena *)s, s->records_at);
    struct record __arena *own = &at(all, number % s->records_max);
    own->begun = begun;
    own->now_ns = now_ns;
    own->value = value;
    own->what = what;
    WRITE_ONCE(own->number, number + 1);
}

static __always_inline u64 what_of(u32 kind, u32 flag, u32 thread, u32 core)
{
    return (u64)kind << 56 | (u64)(flag & 0xff) << 48 | (u64)(core & 0xffff) << 32 | thread;
}

/* A look without locks begins. It sees all that is done up to the records that there are: they are counted in a way
 * that is a barrier. */
static __noinline void count_before_search(pick_t *pick)
{
    pick->begun = __sync_fetch_and_add(&record_count.given, 0);
}

static __always_inline void begin_search(sched_t *s, pick_t *pick)
{
    if (records(s))
        count_before_search(pick);
}

static __noinline void record_found(sched_t *s, pick_t *pick, u64 what, u64 now_ns, u64 value)
{
    append_record(s, pick->begun, what, now_ns, value);
}

static __always_inline void record_search(sched_t *s, pick_t *pick, u64 what, u64 now_ns, u64 value)
{
    if (records(s))
        record_found(s, pick, what, now_ns, value);
}

#endif
