/* SPDX-License-Identifier: GPL-2.0-only */
/* The interpreter as an ordinary function, for tests at full speed. */
#include "operation.h"

#include <stddef.h>

struct lock_word lock_words[LOCKS];
struct record_count record_count;

void ampsched_operate(struct sched *s, struct operation *ops, u64 count)
{
    for (u64 i = 0; i < count; i++)
        operate(s, &ops[i]);
}

/* Sizes and offsets that src/layout.rs must share. */
const u64 ampsched_layout[] = {
    sizeof(struct rules),
    sizeof(struct steal),
    sizeof(struct balance),
    sizeof(struct thread),
    offsetof(struct thread, state),
    offsetof(struct thread, run_ns),
    offsetof(struct thread, generation),
    sizeof(struct tracked_thread),
    sizeof(struct tracked_core),
    sizeof(struct domain),
    sizeof(struct core),
    sizeof(struct queue),
    offsetof(struct queue, newcomer),
    sizeof(struct call),
    offsetof(struct call, started),
    sizeof(struct sched),
    offsetof(struct sched, idle),
    offsetof(struct sched, cores),
    offsetof(struct sched, queues),
    offsetof(struct sched, threads),
    sizeof(struct operation),
    offsetof(struct operation, value),
    sizeof(struct group),
};
