/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's tasks and the interpreter's threads. */
#ifndef AMPSCHED_SCHEDULER_TASKS_H
#define AMPSCHED_SCHEDULER_TASKS_H

/* A task's thread; NONE if the task is not ours. It is noted where schedulers may keep a task's virtual time, which the
 * kernel looks at only in queues that are ordered by it: nothing is found faster. */
static __always_inline u32 thread_of_task(struct task_struct *p)
{
    return (u32)p->scx.dsq_vtime - 1;
}

static __always_inline void note_thread(struct task_struct *p, u32 thread)
{
    p->scx.dsq_vtime = thread + 1;
}

/* A task's thread is no more; what the kernel still does with the task is like the work of others. */
static __always_inline void forget(struct task_struct *p)
{
    u32 thread = thread_of_task(p);
    if (thread == NONE)
        return;
    sched_t *s = shared_state();
    call_t *c = own_call(s);
    note_thread(p, NONE);
    exit_thread(s, c, thread);
    kick_collected(s, c);
}

#endif
