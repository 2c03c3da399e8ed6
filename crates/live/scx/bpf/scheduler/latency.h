/* SPDX-License-Identifier: GPL-2.0-only */
/* Wake-up latencies, as docs/reference/latency.md defines them and the simulator counts them
 * (crates/sim/src/engine/timeliness.rs): from when a thread that slept becomes runnable (moves.h: leave_state) to when
 * the kernel puts it on a CPU. That of a thread which has lost its CPU is none.
 *
 * Each goes to the loader through a ring; the loader makes histograms of them. */
#ifndef AMPSCHED_SCHEDULER_LATENCY_H
#define AMPSCHED_SCHEDULER_LATENCY_H

#define LATENCIES_BYTES (1u << 22) /* of 24 bytes each: for 0.25 s at 600,000 wake-ups per s */

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, LATENCIES_BYTES);
} latencies SEC(".maps");

/* src/latencies.rs has the same in Rust. */
struct latency {
    u64 ns;
    u32 process;
    u32 thread;
};

/* How many have found no room; read by the loader. */
u64 latencies_lost SEC(".data.lost");

/* A thread gets a CPU. */
static __always_inline void note_latency(struct task_struct *p, thread_t *thread, u64 now_ns)
{
    if (!thread->woken_ns)
        return;
    struct latency latency = {
        .ns = sat_sub(now_ns, thread->woken_ns),
        .process = p->tgid,
        .thread = p->pid,
    };
    thread->woken_ns = 0;
    if (bpf_ringbuf_output(&latencies, &latency, sizeof(latency), BPF_RB_NO_WAKEUP))
        __sync_fetch_and_add(&latencies_lost, 1);
}

#endif
