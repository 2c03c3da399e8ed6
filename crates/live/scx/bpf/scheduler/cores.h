/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's CPUs and the interpreter's cores: which is which, what waits for a CPU there, and how cores are told to
 * look. */
#ifndef AMPSCHED_SCHEDULER_CORES_H
#define AMPSCHED_SCHEDULER_CORES_H

/* Queues of the kernel, one of each kind per CPU: threads that have been given that CPU, and tasks that are not ours.
 * */
#define OURS (1ull << 16)
#define OTHERS (1ull << 17)

inlined u32 core_at(s32 cpu)
{
    return settings.core_of_cpu[cpu & (CORES_MAX - 1)];
}

inlined s32 cpu_at(u32 core)
{
    return settings.cpu_of_core[core & (CORES_MAX - 1)];
}

/* Cores that are to be told something when the lock is free. */
struct kicks {
    u64 wake;
    u64 interrupt;
};

/* Takes the collected cores out; the lock is held. */
#define take_kicks(s, kicks) \
    do { \
        (kicks).wake = (s)->to_wake; \
        (kicks).interrupt = (s)->to_interrupt; \
        (s)->to_wake = (s)->to_interrupt = 0; \
    } while (0)

apart u32 kick(u64 cores, u64 how)
{
    u32 core = shared_state()->zero;
    for (; cores && can_go_on; core += shared_state()->one, cores >>= 1)
        if (cores & 1)
            scx_bpf_kick_cpu(cpu_at(core), how);
    return core;
}

inlined void tell(struct kicks *kicks)
{
    if (kicks->interrupt)
        kick(kicks->interrupt, SCX_KICK_PREEMPT);
    if (kicks->wake)
        kick(kicks->wake, SCX_KICK_IDLE);
}

/* The core of the thread that wakes another one, if one of ours does. */
inlined u32 waker_core(sched_t *s, u32 waker, s32 cpu)
{
    u32 core = core_at(cpu);
    return waker != NONE && core_of(s, core)->running == waker ? core : NONE;
}

#endif
