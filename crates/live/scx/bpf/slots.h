/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory for threads: address space is there for as many as the kernel allows, pages come as tasks do. */
#ifndef AMPSCHED_SLOTS_H
#define AMPSCHED_SLOTS_H

#include "kernel.h"

#define PAGE_BYTES 4096ull
#define GROWTH 16 /* pages that come at a time: for a hundred threads */
#define ANY_NODE (-1)

void __arena *bpf_arena_alloc_pages(void *map, void __arena *address, u32 count, s32 node, u64 flags) __ksym;

/* Tasks that are threads, or may become one. Not in the arena, for the reason in lock.h. */
u32 task_count SEC(".data.tasks") __attribute__((visibility("hidden")));

/* Room for some more threads, in pages of the arena behind those that are there; what sleeps may call this. If several
 * do so at a time, the kernel gives the pages to one of them, and it is seen that they are there: what is written to a
 * page that is not there is lost. Returns whether there is more room than before. */
static __noinline bool grow_slots(sched_t *s)
{
    u64 old_slots = READ_ONCE(s->slots);
    u64 first_page = div_round_up(sizeof(struct sched) + old_slots * sizeof(struct thread), PAGE_BYTES);
    u64 end = div_round_up(sizeof(struct sched) + s->threads_max * sizeof(struct thread), PAGE_BYTES);
    u64 end_page = min(first_page + GROWTH, end);
    u64 new_slots = min((end_page * PAGE_BYTES - sizeof(struct sched)) / sizeof(struct thread), s->threads_max);
    bpf_arena_alloc_pages(&arena_map, (void __arena *)(ARENA_AT + first_page * PAGE_BYTES), end_page - first_page,
                          ANY_NODE, 0);
    thread_t *last = thread_of(s, new_slots - 1);
    unsigned long interrupts;
    bpf_local_irq_save(&interrupts);
    lock(s, SLOTS_LOCK);
    if (READ_ONCE(s->slots) == old_slots) {
        /* That slot is still unused. */
        WRITE_ONCE(last->generation, 1);
        WRITE_ONCE(s->slots, READ_ONCE(last->generation) == 1 ? new_slots : old_slots);
    }
    bool is_more = READ_ONCE(s->slots) > old_slots;
    unlock(s, SLOTS_LOCK);
    bpf_local_irq_restore(&interrupts);
    return is_more;
}

/* Reserves a slot for a task that may become a thread later, in a context that cannot sleep for memory. Returns whether
 * there is. */
static __always_inline bool reserve_slot(sched_t *s)
{
    u32 wanted = min(__sync_fetch_and_add(&task_count, 1) + 1, s->threads_max);
    while (READ_ONCE(s->slots) < wanted && can_loop)
        if (!grow_slots(s))
            return false;
    return true;
}

/* Releases the slot of a task that has ended. */
static __always_inline void release_slot(void)
{
    __sync_fetch_and_sub(&task_count, 1);
}

#endif
