/* SPDX-License-Identifier: GPL-2.0-only */
/* The other design that was measured: threads wait in the kernel's own dispatch queues, one per CPU, in the order of
 * their virtual run times. It decides about as the rules of `cfs` do, without a plan, counters or anything to tell a
 * slow plane, and is there for its speed only (examples/kernel_queues.rs). */
#include "sched_ext.h"

#define CPUS_MAX 64
#define SLICE_NS 6000000ull
#define GRANULARITY_NS 1000000ull

s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags, bool *is_idle) __ksym;
void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime, u64 enq_flags) __ksym;
s32 scx_bpf_pick_idle_cpu(const struct cpumask *cpus_allowed, u64 flags) __ksym;

const volatile u32 cpu_count SEC(".rodata.count");

/* What a CPU runs, and its queue's least virtual run time. */
struct cpu {
    u64 min_vruntime;
    u64 running_vruntime;
    u64 unused[6];
} __attribute__((aligned(64)));
struct cpu cpus[CPUS_MAX] SEC(".data.cpus");

static __always_inline struct cpu *of(s32 cpu)
{
    return &cpus[cpu & (CPUS_MAX - 1)];
}

SEC("struct_ops/select_cpu")
s32 BPF_PROG(queues_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
    bool is_idle = false;
    s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);
    if (is_idle)
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE_NS, 0);
    return cpu;
}

SEC("struct_ops/enqueue")
void BPF_PROG(queues_enqueue, struct task_struct *p, u64 enq_flags)
{
    s32 cpu = scx_bpf_task_cpu(p);
    u64 vruntime = max(p->scx.dsq_vtime, sat_sub(READ_ONCE(of(cpu)->min_vruntime), SLICE_NS / 2));
    scx_bpf_dsq_insert_vtime(p, cpu, SLICE_NS, vruntime, enq_flags);
    if (vruntime + GRANULARITY_NS < READ_ONCE(of(cpu)->running_vruntime)) {
        scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
        return;
    }
    s32 idle = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
    if (idle >= 0)
        scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
}

SEC("struct_ops/dispatch")
void BPF_PROG(queues_dispatch, s32 cpu, struct task_struct *prev)
{
    if (scx_bpf_dsq_move_to_local(cpu))
        return;
    for (u32 other = 0; other < cpu_count && can_loop; other++)
        if (other != (u32)cpu && scx_bpf_dsq_nr_queued(other) > 0 && scx_bpf_dsq_move_to_local(other))
            return;
}

SEC("struct_ops/running")
void BPF_PROG(queues_running, struct task_struct *p)
{
    struct cpu *own = of(scx_bpf_task_cpu(p));
    u64 vruntime = p->scx.dsq_vtime;
    WRITE_ONCE(own->running_vruntime, vruntime);
    WRITE_ONCE(own->min_vruntime, max(READ_ONCE(own->min_vruntime), vruntime));
}

SEC("struct_ops/stopping")
void BPF_PROG(queues_stopping, struct task_struct *p, bool runnable)
{
    p->scx.dsq_vtime += sat_sub(SLICE_NS, p->scx.slice);
}

SEC("struct_ops/enable")
void BPF_PROG(queues_enable, struct task_struct *p)
{
    p->scx.dsq_vtime = READ_ONCE(of(scx_bpf_task_cpu(p))->min_vruntime);
}

SEC("struct_ops.s/init")
s32 BPF_PROG(queues_init)
{
    for (u32 cpu = 0; cpu < cpu_count && can_loop; cpu++) {
        s32 error = scx_bpf_create_dsq(cpu, -1);
        if (error)
            return error;
    }
    return 0;
}

SEC(".struct_ops.link")
struct sched_ext_ops queues_ops = {
    .select_cpu = (void *)queues_select_cpu,
    .enqueue = (void *)queues_enqueue,
    .dispatch = (void *)queues_dispatch,
    .running = (void *)queues_running,
    .stopping = (void *)queues_stopping,
    .enable = (void *)queues_enable,
    .init = (void *)queues_init,
    .timeout_ms = 10000,
    .name = "kernel_queues",
};
