/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory for threads: address space is there for as many as the kernel allows, pages come as tasks do. */
#ifndef AMPSCHED_ROOM_H
#define AMPSCHED_ROOM_H

#include "kernel.h"

#define PAGE_BYTES 4096ull
#define GROWTH 16 /* pages that come at a time: for a hundred threads */
#define ANY_NODE (-1)

void arena *bpf_arena_alloc_pages(void *map, void arena *address, u32 count, s32 node, u64 flags) __ksym;

/* Tasks that are threads, or may become one. Not in the arena, for the reason in lock.h. */
u32 task_count SEC(".data.tasks") __attribute__((visibility("hidden")));

/* Room for some more threads, in pages of the arena behind those that are there; what sleeps may call this. If several
 * do so at a time, the kernel gives the pages to one of them, and it is seen that they are there: what is written to a
 * page that is not there is lost. Returns whether there is more room than before. */
apart bool make_more_room(sched_t *s)
{
    u64 before = get(s->slots);
    u64 first = div_up(sizeof(struct sched) + before * sizeof(struct thread), PAGE_BYTES);
    u64 end = div_up(sizeof(struct sched) + s->threads_max * sizeof(struct thread), PAGE_BYTES);
    u64 behind = least_of(first + GROWTH, end);
    u64 after = least_of((behind * PAGE_BYTES - sizeof(struct sched)) / sizeof(struct thread), s->threads_max);
    bpf_arena_alloc_pages(&arena_map, (void arena *)(ARENA_AT + first * PAGE_BYTES), behind - first, ANY_NODE, 0);
    thread_t *last = thread_of(s, after - 1);
    unsigned long interrupts;
    bpf_local_irq_save(&interrupts);
    lock(s, SLOTS_LOCK);
    if (get(s->slots) == before) {
        /* Nobody has had that slot yet. */
        put(last->generation, 1);
        put(s->slots, get(last->generation) == 1 ? after : before);
    }
    bool is_more = get(s->slots) > before;
    unlock(s, SLOTS_LOCK);
    bpf_local_irq_restore(&interrupts);
    return is_more;
}

/* A task comes that may become a thread at a moment when nobody can wait for memory: there is room for it from now on.
 * Returns whether there is. */
inlined bool make_room(sched_t *s)
{
    u32 wanted = least_of(__sync_fetch_and_add(&task_count, 1) + 1, s->threads_max);
    while (get(s->slots) < wanted && can_go_on)
        if (!make_more_room(s))
            return false;
    return true;
}

/* Such a task is no more. */
inlined void give_room_back(void)
{
    __sync_fetch_and_sub(&task_count, 1);
}

#endif
