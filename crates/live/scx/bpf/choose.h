/* SPDX-License-Identifier: GPL-2.0-only */
/* Where threads shall go: looks without locks. */
#ifndef AMPSCHED_CHOOSE_H
#define AMPSCHED_CHOOSE_H

#include "host.h"

static __noinline void record_place(sched_t *s, call_t *c, u32 thread, u32 waker, u32 core)
{
    record_found(s, &c->pick, what_of(RECORD_PLACE, 0, thread, waker), c->now_ns, core);
}

/* The core for a thread, without a lock. */
static __always_inline u32 find_place(sched_t *s, call_t *c, u32 thread, u32 waker)
{
    begin_search(s, &c->pick);
    u32 core = place(s, thread, waker, c->now_ns);
    if (records(s))
        record_place(s, c, thread, waker, core);
    return core;
}

/* Where a thread that wakes up, or is new, shall wait, without a lock: what this sees may have changed until the thread
 * gets there in any case. NONE: nowhere yet. */
static __always_inline u32 choose_core(sched_t *s, call_t *c, u32 thread, u32 waker)
{
    thread_t *own = thread_of(s, thread);
    u32 core = own->held ? NONE : find_place(s, c, thread, waker);
    own->chosen = core;
    return core;
}

/* Where a thread shall go that is in no queue, without a lock; NONE: nowhere. */
static __always_inline u32 where_to(sched_t *s, call_t *c, u32 thread)
{
    thread_t *own = thread_of(s, thread);
    if (own->held)
        return own->core;
    return own->chosen != NONE && allows(s, thread, own->chosen) ? own->chosen : find_place(s, c, thread, NONE);
}

#endif
