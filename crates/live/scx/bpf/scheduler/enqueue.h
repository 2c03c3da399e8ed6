/* SPDX-License-Identifier: GPL-2.0-only */
/* A task becomes runnable: where it goes, and in which queue it waits. */
#ifndef AMPSCHED_SCHEDULER_ENQUEUE_H
#define AMPSCHED_SCHEDULER_ENQUEUE_H

/* A thread that wakes up, or is new, is placed. If its core has nothing else to do, as after most wake-ups, the
 * thread begins at once; otherwise ampsched_enqueue follows. */
SEC("struct_ops/select_cpu")
s32 BPF_PROG(ampsched_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
    u32 thread = thread_of_task(p), waker = thread_of_task(bpf_get_current_task_btf());
    if (thread == NONE)
        return prev_cpu;
    if (settings.blames)
        blame_for_pi(bpf_get_current_task_btf(), p);
    sched_t *s = shared_state();
    call_t *c = own_call(s);
    u32 core = wake_up(s, c, thread, waker_core(s, waker, bpf_get_smp_processor_id()));
    if (core == NONE)
        return prev_cpu;
    bool begins = c->started;
    kick_cores(s, c);
    if (begins)
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, 0);
    return cpu_at(core);
}

/* A task that is not ours: at once to its core, where it interrupts what runs; if it has used up its time, behind one
 * of ours. */
static __always_inline void enqueue_other(struct task_struct *p, u64 enq_flags)
{
    s32 cpu = scx_bpf_task_cpu(p);
    /* A CPU that is in no class has no queues; the scheduler is about to end. */
    if (enq_flags & SCX_ENQ_WAKEUP || !is_ours(cpu)) {
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags | SCX_ENQ_PREEMPT);
        return;
    }
    core_t *core = core_of(shared_state(), core_at(cpu));
    scx_bpf_dsq_insert(p, OTHERS | cpu, SCX_SLICE_DFL, enq_flags);
    WRITE_ONCE(core->others_due_ns, min(READ_ONCE(core->others_due_ns), bpf_ktime_get_ns() + SCX_SLICE_DFL));
    scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

SEC("struct_ops/enqueue")
void BPF_PROG(ampsched_enqueue, struct task_struct *p, u64 enq_flags)
{
    /* A task that has ended may have no number any more, by which a CPU would find it. */
    if (p->exit_state)
        forget(p);
    u32 thread = thread_of_task(p);
    if (thread == NONE)
        return enqueue_other(p, enq_flags);
    sched_t *s = shared_state();
    /* A thread that has executed a program has its process's number, whatever its own was. */
    thread_of(s, thread)->pid = p->pid;
    s32 cpu = scx_bpf_task_cpu(p);
    bool is_idle = enq_flags & SCX_ENQ_WAKEUP && scx_bpf_test_and_clear_cpu_idle(cpu);
    call_t *c = own_call(s);
    c->here = core_at(cpu);
    c->here_idles = is_idle;
    u32 core = hand_over(s, c, thread);
    if (c->started) {
        /* It is on that CPU's run queue already and has not to migrate. */
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags | (is_idle ? 0 : SCX_ENQ_PREEMPT));
    } else if (core != NONE) {
        scx_bpf_dsq_insert(p, OURS | cpu_at(core), SCX_SLICE_INF, enq_flags);
        scx_bpf_kick_cpu(cpu_at(core), SCX_KICK_IDLE);
    }
    kick_cores(s, c);
}

/* The kernel takes a task out that waits here. From Linux 7.1 on it also calls this, without a flag, for a thread that
 * goes to a CPU's own queue, where it was sent. */
SEC("struct_ops/dequeue")
void BPF_PROG(ampsched_dequeue, struct task_struct *p, u64 deq_flags)
{
    u32 thread = thread_of_task(p);
    if (thread == NONE || !deq_flags)
        return;
    sched_t *s = shared_state();
    call_t *c = own_call(s);
    suspend(s, c, thread);
    kick_collected(s, c);
}

#endif
