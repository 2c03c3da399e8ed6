/* SPDX-License-Identifier: GPL-2.0-only */
/* A task's turn on a CPU: it begins, is looked at when the kernel ticks, and ends. */
#ifndef AMPSCHED_SCHEDULER_TURNS_H
#define AMPSCHED_SCHEDULER_TURNS_H

/* Whether a task that is not ours waits for this CPU: one that has just come, or one that has waited for its turn. */
inlined bool others_wait(s32 cpu, u64 ran_ns)
{
    return scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL) > 0 ||
           (ran_ns >= SCX_SLICE_DFL && scx_bpf_dsq_nr_queued(OTHERS | cpu) > 0);
}

SEC("struct_ops/tick")
void BPF_PROG(ampsched_tick, struct task_struct *p)
{
    u32 thread = thread_of_task(p);
    if (thread == NONE)
        return;
    sched_t *s = shared_state();
    bool over = false;
    u64 now_ns = bpf_ktime_get_ns(), since_ns = now_ns;
    /* Whoever chooses frequencies, they are seen at ticks, as by the kernel (arch_scale_freq_tick). */
    s32 cpu = bpf_get_smp_processor_id();
    u64 pace = tracking(s) == TRACKING_BY_WORK ? scx_bpf_cpuperf_cur(cpu) : 0;
    bpf_spin_lock(&lock);
    thread_t *own = thread_of(s, thread);
    if (tracking(s) == TRACKING_BY_WORK)
        follow_pace(s, core_at(cpu), pace, now_ns);
    if (own->comes) {
        over = true;
    } else if (own->state == STATE_RUNNING) {
        over = is_over(s, own->core, now_ns);
        since_ns = own->on_since_ns;
    }
    bpf_spin_unlock(&lock);
    if (over || others_wait(cpu, less(now_ns, since_ns)))
        p->scx.slice = 0;
}

SEC("struct_ops/running")
void BPF_PROG(ampsched_running, struct task_struct *p)
{
    u32 thread = thread_of_task(p);
    if (thread == NONE)
        return;
    sched_t *s = shared_state();
    struct kicks kicks;
    u32 core = core_at(scx_bpf_task_cpu(p)), execs = p->self_exec_id;
    u64 now_ns = bpf_ktime_get_ns();
    thread_of(s, thread)->execs = execs;
    if (has_got_there(s, thread, core, now_ns))
        return;
    bpf_spin_lock(&lock);
    is_running(s, thread, core, now_ns);
    take_kicks(s, kicks);
    bpf_spin_unlock(&lock);
    tell(&kicks);
}

SEC("struct_ops/stopping")
void BPF_PROG(ampsched_stopping, struct task_struct *p, bool runnable)
{
    /* One that blocks, or is taken out, is charged in ampsched_quiescent, which follows at once. */
    u32 thread = runnable ? thread_of_task(p) : NONE;
    if (thread == NONE)
        return;
    sched_t *s = shared_state();
    thread_t *own = thread_of(s, thread);
    /* One that has given way has been charged. */
    if (own->state != STATE_RUNNING)
        return;
    u64 now_ns = bpf_ktime_get_ns();
    bpf_spin_lock(&lock);
    charge_up_to(s, own->core, now_ns);
    own->charged_ns = OFF_CPU;
    bpf_spin_unlock(&lock);
}

SEC("struct_ops/quiescent")
void BPF_PROG(ampsched_quiescent, struct task_struct *p, u64 deq_flags)
{
    u32 thread = thread_of_task(p);
    if (thread == NONE)
        return;
    sched_t *s = shared_state();
    struct kicks kicks;
    u64 now_ns = bpf_ktime_get_ns();
    bpf_spin_lock(&lock);
    if (deq_flags & SCX_DEQ_SLEEP)
        take_out(s, thread, STATE_BLOCKED, now_ns);
    else
        suspend(s, thread, now_ns);
    take_kicks(s, kicks);
    bpf_spin_unlock(&lock);
    tell(&kicks);
}

#endif
