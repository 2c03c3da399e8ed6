/* SPDX-License-Identifier: GPL-2.0-only */
/* Cores go and come back. Callers hold no lock (lock.h). */
#ifndef AMPSCHED_HOTPLUG_H
#define AMPSCHED_HOTPLUG_H

#include "calls.h"

/* A core comes to the cores that are online, or goes: its queue has one core more, or less. What threads may use
 * follows, thread by thread. It has to look in any case: if it has come, the kernel loses kicks until a moment later;
 * if it goes, others look for it. */
static __always_inline void change_core(sched_t *s, u32 core, bool online)
{
    core_t *own = core_of(s, core);
    u32 held = lock_core(s, core), rating = at(s->rules.rating, own->class);
    queue_t *queue = queue_of(s, core);
    if (online != has(&s->online, core)) {
        if (online)
            include(&s->online, core);
        else
            exclude(&s->online, core);
        queue->cores += online ? 1 : -1;
        queue->capacity += online ? rating : -rating;
        WRITE_ONCE(at(s->idle, core), online && own->running == NONE);
        WRITE_ONCE(own->recheck_ns, 0);
        WRITE_ONCE(own->need_resched, true);
    }
    unlock(s, held);
}

/* Recorded as if first the program had allowed a thread other cores, and then the plan wanted what it wants. */
static __noinline void record_follow(sched_t *s, u32 thread, bool narrows)
{
    thread_t *own = thread_of(s, thread);
    bool out = is_runnable(own) && !has(&own->user_affinity, own->core);
    record_cores(s, thread, &own->user_affinity);
    record_at(s, own->core, what_of(RECORD_USER_AFFINITY, out, thread, 0), 0, 0);
    record_cores(s, thread, &own->wanted);
    u64 moves = narrows && is_misplaced(s, thread);
    record_at(s, own->core, what_of(RECORD_CHANGE, moves, thread, CHANGE_AFFINITY), 0, 0);
}

/* The cores that are online have changed: a thread on a core that it may no longer use goes elsewhere. */
static __always_inline void follow_cores(sched_t *s, call_t *c, u32 thread)
{
    if (!READ_ONCE(thread_of(s, thread)->in_use))
        return;
    u32 held = lock_thread(s, thread);
    bool is_there = thread_of(s, thread)->in_use, narrows = is_there && follow_online(s, thread);
    bool moves = is_there && is_misplaced(s, thread);
    if (is_there)
        record_follow(s, thread, narrows);
    unlock(s, held);
    if (moves)
        relocate(s, c, thread);
}

/* What a core would run that does not look itself: also threads that may run there only, which the kernel takes away
 * from there if it is offline. */
static __always_inline u32 pick_for(sched_t *s, call_t *c, u32 core)
{
    u32 thread = pick_next(s, c, core, NONE);
    /* There may be more. */
    if (thread != NONE)
        WRITE_ONCE(core_of(s, core)->need_resched, true);
    return thread;
}

#endif
