/* SPDX-License-Identifier: GPL-2.0-only */
/* What BPF programs here share: the arena with the scheduler's state, and how interrupts are kept away. */
#ifndef AMPSCHED_KERNEL_H
#define AMPSCHED_KERNEL_H

#include "operation.h"

/* Constants of the kernel's interface, include/uapi/linux/bpf.h. */
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_RINGBUF 27
#define BPF_MAP_TYPE_ARENA 33
#define BPF_RB_NO_WAKEUP 1
#define BPF_F_MMAPABLE (1u << 10)

/* The arena lies at the same address for loader and programs; the scheduler's state is at its beginning, operations
 * of the loader are behind it. The loader sets the size. */
struct {
    __uint(type, BPF_MAP_TYPE_ARENA);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __ulong(map_extra, ARENA_AT);
} arena_map SEC(".maps");

/* Those that do not come from a CPU with interrupts off (the timer, the plan) keep them away while they hold locks of
 * lock.h: a callback that interrupted a holder would wait for it for ever. */
void bpf_local_irq_save(unsigned long *before) __ksym;
void bpf_local_irq_restore(unsigned long *before) __ksym;

static __always_inline sched_t *shared_state(void)
{
    /* A program may use an arena only if it refers to its map. */
    asm volatile("" : : "r"(&arena_map));
    return (sched_t *)ARENA_AT;
}

static __always_inline struct operation __arena *operations(void)
{
    return (struct operation __arena *)(ARENA_AT + shared_state()->operations_at);
}

char terms[] SEC("license") = "GPL";

#endif
