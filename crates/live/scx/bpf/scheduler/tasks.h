/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's tasks and the interpreter's threads. */
#ifndef AMPSCHED_SCHEDULER_TASKS_H
#define AMPSCHED_SCHEDULER_TASKS_H

/* Which thread of the interpreter a task is. */
struct slot {
    u32 thread;
    u32 ours;
    /* Address of the futex that it is about to lock, or unlock (blame.h) */
    u64 locks;
    u64 unlocks;
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct slot);
} slots SEC(".maps");

/* A task's thread; NONE if the task is not ours. */
inlined u32 thread_of_task(struct task_struct *p)
{
    struct slot *slot = bpf_task_storage_get(&slots, p, 0, 0);
    return slot && slot->ours ? slot->thread : NONE;
}

/* A task's thread is no more; what the kernel still does with the task is like the work of others. */
inlined void forget(struct task_struct *p)
{
    struct slot *slot = bpf_task_storage_get(&slots, p, 0, 0);
    if (!slot || !slot->ours)
        return;
    sched_t *s = shared_state();
    call_t *c = own_call(s);
    slot->ours = false;
    bid_farewell(s, c, slot->thread);
    tell(s, c);
}

#endif
