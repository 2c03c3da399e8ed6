/* SPDX-License-Identifier: GPL-2.0-only */
/* A CPU asks for its next task. */
#ifndef AMPSCHED_SCHEDULER_DISPATCH_H
#define AMPSCHED_SCHEDULER_DISPATCH_H

/* Sends a thread that has begun on a core there. Returns whether it could be found. */
inlined bool send(u32 pid, s32 cpu)
{
    struct task_struct *p = bpf_task_from_pid(pid);
    if (!p)
        return false;
    scx_bpf_dsq_insert(p, OURS | cpu, SCX_SLICE_INF, 0);
    bpf_task_release(p);
    return true;
}

/* Takes what was sent to this CPU. It may be that it cannot migrate at this very moment, because the CPU that it leaves
 * executes one of these programs on its behalf; then this CPU comes again. */
inlined bool receive(s32 cpu)
{
    if (scx_bpf_dsq_move_to_local(OURS | cpu))
        return true;
    if (scx_bpf_dsq_nr_queued(OURS | cpu) > 0)
        scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
    return false;
}

/* A CPU takes what was sent to it, or a task that is not ours; if nobody wants it, such a task goes on there. */
inlined void fetch(s32 cpu, struct task_struct *prev, u32 before)
{
    if (receive(cpu) || scx_bpf_dsq_move_to_local(OTHERS | cpu))
        return;
    if (prev && before == NONE && prev->scx.flags & SCX_TASK_QUEUED && thread_of_task(prev) == NONE)
        prev->scx.slice = SCX_SLICE_DFL;
}

SEC("struct_ops/dispatch")
void BPF_PROG(ampsched_dispatch, s32 cpu, struct task_struct *prev)
{
    sched_t *s = shared_state();
    struct kicks kicks;
    u32 core = core_at(cpu), thread = NONE, pid = 0;
    u32 before = prev && prev->scx.flags & SCX_TASK_QUEUED ? thread_of_task(prev) : NONE;
    u64 now_ns = bpf_ktime_get_ns();
    /* One that is about to end goes on. The kernel would not give it back to us but put it on the local queue, and the
     * CPU, which has chosen to idle by then, would not look there before something else wakes it. */
    if (before != NONE && prev && prev->flags & PF_EXITING) {
        prev->scx.slice = SCX_SLICE_INF;
        return;
    }
    /* Behind one of ours comes one of the others, if any waits. */
    if (before != NONE && scx_bpf_dsq_move_to_local(OTHERS | cpu))
        return;
    if (before == NONE && has_no_work(s, core))
        return fetch(cpu, prev, before);
    bpf_spin_lock(&lock);
    if (before != NONE && core_of(s, core)->running == before)
        give_way(s, core, now_ns);
    /* Otherwise a thread is on its way here. */
    if (core_of(s, core)->running == NONE)
        thread = look(s, core, now_ns);
    if (thread != NONE)
        pid = thread_of(s, thread)->pid;
    if (thread == before && thread != NONE)
        thread_of(s, thread)->charged_ns = now_ns;
    take_kicks(s, kicks);
    bpf_spin_unlock(&lock);
    tell(&kicks);
    if (thread == before && thread != NONE) {
        /* Who was on the way here when the plan sent it elsewhere comes first: it leaves as soon as it runs. */
        if (!receive(cpu) && prev)
            prev->scx.slice = SCX_SLICE_INF;
        return;
    }
    if (thread != NONE && !send(pid, cpu)) {
        /* It is about to disappear. */
        bpf_spin_lock(&lock);
        if (core_of(s, core)->running == thread)
            suspend(s, thread, now_ns);
        wake_core(s, core);
        take_kicks(s, kicks);
        bpf_spin_unlock(&lock);
        tell(&kicks);
    }
    fetch(cpu, prev, before);
}

#endif
