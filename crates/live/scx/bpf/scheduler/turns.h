/* SPDX-License-Identifier: GPL-2.0-only */
/* A task's turn on a CPU: it begins, is looked at when the kernel ticks, and ends. */
#ifndef AMPSCHED_SCHEDULER_TURNS_H
#define AMPSCHED_SCHEDULER_TURNS_H

/* Whether a task that is not ours waits for this CPU: one that has just come, or one that has waited for its turn. */
static __always_inline bool others_wait(s32 cpu, u64 ran_ns)
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
    u64 now_ns = bpf_ktime_get_ns(), ran_ns = sat_sub(now_ns, thread_of(s, thread)->on_since_ns);
    s32 cpu = bpf_get_smp_processor_id();
    /* The governor schedutil changes a frequency, and obeys new limits, only when it is asked; policies that set clocks
     * do so by limits. The kernel knows no load of threads of ours (kernel/sched/ext.c, cpufreq_schedutil.c). */
    scx_bpf_cpuperf_set(cpu, SCX_CPUPERF_ONE);
    /* Frequencies are read at ticks, whatever chooses them, as by the kernel (arch_scale_freq_tick). */
    if (tracking(s) == TRACKING_BY_WORK)
        see_pace(s, core_at(cpu), scx_bpf_cpuperf_cur(cpu), now_ns);
    if (tick_ends_turn(s, thread, now_ns) || others_wait(cpu, ran_ns))
        p->scx.slice = 0;
}

/* Takes note of whether a task that is not ours runs on a core. */
static __always_inline void note_other(sched_t *s, u32 core, bool runs)
{
    WRITE_ONCE(core_of(s, core)->others_run, runs);
    record_search(s, &at(s->calls, core).pick, what_of(RECORD_OTHERS, runs, NONE, core), bpf_ktime_get_ns(), 0);
}

SEC("struct_ops/running")
void BPF_PROG(ampsched_running, struct task_struct *p)
{
    sched_t *s = shared_state();
    u32 thread = thread_of_task(p), core = core_at(scx_bpf_task_cpu(p)), execs = p->self_exec_id;
    if (thread == NONE) {
        note_other(s, core, true);
        return;
    }
    u64 now_ns = bpf_ktime_get_ns();
    thread_of(s, thread)->execs = execs;
    note_latency(p, thread_of(s, thread), now_ns);
    if (note_arrival(s, thread, core, now_ns))
        return;
    call_t *c = own_call(s);
    note_running(s, c, thread, core);
    kick_cores(s, c);
}

SEC("struct_ops/stopping")
void BPF_PROG(ampsched_stopping, struct task_struct *p, bool runnable)
{
    sched_t *s = shared_state();
    u32 thread = thread_of_task(p);
    if (thread == NONE)
        note_other(s, core_at(scx_bpf_task_cpu(p)), false);
    /* One that blocks, or is taken out, is charged in ampsched_quiescent, which follows at once. */
    if (thread == NONE || !runnable)
        return;
    if (thread_of(s, thread)->state == STATE_RUNNING)
        charge_off_cpu(s, thread, bpf_ktime_get_ns());
}

SEC("struct_ops/quiescent")
void BPF_PROG(ampsched_quiescent, struct task_struct *p, u64 deq_flags)
{
    u32 thread = thread_of_task(p);
    if (thread == NONE)
        return;
    sched_t *s = shared_state();
    call_t *c = own_call(s);
    if (deq_flags & SCX_DEQ_SLEEP)
        dequeue_thread(s, c, thread, STATE_BLOCKED);
    else
        suspend(s, c, thread);
    kick_collected(s, c);
}

#endif
