/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's CPUs and the interpreter's cores: which is which, what waits for a CPU there, and how cores are told to
 * look. */
#ifndef AMPSCHED_SCHEDULER_CORES_H
#define AMPSCHED_SCHEDULER_CORES_H

/* Queues of the kernel, one of each kind per CPU: threads that have been given that CPU, and tasks that are not ours.
 * */
#define OURS (1ull << 16)
#define OTHERS (1ull << 17)

static __always_inline u32 core_at(s32 cpu)
{
    return settings.core_of_cpu[cpu & (CPUS_MAX - 1)];
}

static __always_inline s32 cpu_at(u32 core)
{
    return settings.cpu_of_core[core & (CORES_MAX - 1)];
}

/* Whether a CPU is in a class. */
static __always_inline bool is_ours(s32 cpu)
{
    return cpu_at(core_at(cpu)) == cpu;
}

/* What a call by the kernel on this CPU works with. Interrupts are off, so there is one at a time. */
static __always_inline call_t *own_call(sched_t *s)
{
    return call_of(s, core_at(bpf_get_smp_processor_id()), bpf_ktime_get_ns());
}

/* The lowest core in a word of a set. The verifier is to see that cpu_at() keeps within bounds, not what the compiler
 * knows. */
static __always_inline u32 lowest(u64 cores)
{
    u32 core = __builtin_ctzll(cores);
    asm("" : "+r"(core));
    return core;
}

/* Tells cores from `first` on. */
static __always_inline void kick(u32 first, u64 cores, u64 how)
{
    for (; cores && can_loop; cores &= cores - 1)
        scx_bpf_kick_cpu(cpu_at(first + lowest(cores)), how);
}

/* Tells the cores that a call has named; no lock is held. */
static __noinline void kick_collected(sched_t *s, call_t *c)
{
    if (!c->has_kicks)
        return;
    c->has_kicks = false;
    for (u32 i = s->zero; i < s->words && can_loop; i += s->one) {
        u64 wake = at(c->wake.words, i), interrupt = at(c->interrupt.words, i);
        at(c->wake.words, i) = opaque_zero();
        at(c->interrupt.words, i) = opaque_zero();
        if (interrupt)
            kick(i * 64, interrupt, SCX_KICK_PREEMPT);
        if (wake)
            kick(i * 64, wake, SCX_KICK_IDLE);
    }
}

/* Tells the cores that a call has collected; no lock is held. */
static __always_inline void kick_cores(sched_t *s, call_t *c)
{
    collect_kicks(s, c);
    kick_collected(s, c);
}

/* The core of the thread that wakes another one, if one of ours does. */
static __always_inline u32 waker_core(sched_t *s, u32 waker, s32 cpu)
{
    u32 core = core_at(cpu);
    return waker != NONE && core_of(s, core)->running == waker ? core : NONE;
}

#endif
