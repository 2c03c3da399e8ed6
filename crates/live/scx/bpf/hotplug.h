/* SPDX-License-Identifier: GPL-2.0-only */
/* Cores go and come back. Who calls these holds no lock (lock.h). */
#ifndef AMPSCHED_HOTPLUG_H
#define AMPSCHED_HOTPLUG_H

#include "calls.h"

/* A core comes to the cores that are online, or goes: its queue has one core more, or less. What threads may use
 * follows, thread by thread. It has to look in any case: if it has come, the kernel forgets until a moment later that
 * somebody has told it something; if it goes, others look for it. */
inlined void change_core(sched_t *s, u32 core, bool comes)
{
    core_t *own = core_of(s, core);
    u32 held = lock_core(s, core), rating = at(s->rules.rating, own->class);
    queue_t *queue = queue_of(s, core);
    if (comes != has(&s->online, core)) {
        if (comes)
            include(&s->online, core);
        else
            exclude(&s->online, core);
        queue->cores += comes ? 1 : -1;
        queue->capacity += comes ? rating : -rating;
        put(at(s->idle, core), comes && own->running == NONE);
        put(own->recheck_ns, 0);
        put(own->looks, true);
    }
    unlock(s, held);
}

/* Recorded as if first the program had allowed a thread other cores, and then the plan wanted what it wants. */
apart void record_follow(sched_t *s, u32 thread, bool narrows)
{
    thread_t *own = thread_of(s, thread);
    bool out = is_runnable(own) && !has(&own->user_affinity, own->core);
    record_cores(s, thread, &own->user_affinity);
    record_at(s, own->core, what_of(RECORD_USER_AFFINITY, out, thread, 0), 0, 0);
    record_cores(s, thread, &own->wanted);
    u64 moves = narrows && is_misplaced(s, thread);
    record_at(s, own->core, what_of(RECORD_CHANGE, moves, thread, CHANGE_AFFINITY), 0, 0);
}

/* The cores that are online have changed: whoever is where it may no longer be goes elsewhere. */
inlined void follow_cores(sched_t *s, call_t *c, u32 thread)
{
    if (!get(thread_of(s, thread)->in_use))
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

/* What a core would run that does not look itself: also those who may run there only, whom the kernel takes away from
 * there if it is offline. */
inlined u32 look_for(sched_t *s, call_t *c, u32 core)
{
    u32 thread = look(s, c, core, NONE);
    /* There may be more. */
    if (thread != NONE)
        put(core_of(s, core)->looks, true);
    return thread;
}

#endif
