/* SPDX-License-Identifier: GPL-2.0-only */
/* A CPU asks for its next task. */
#ifndef AMPSCHED_SCHEDULER_DISPATCH_H
#define AMPSCHED_SCHEDULER_DISPATCH_H

enum sent { SENT_NONE, SENT_FROM_ELSEWHERE, SENT_AT_HOME };

/* Sends a thread that has begun on a core there, by a queue; one that is on that CPU's run queue already has arrived by
 * that. If the CPU does not look there itself, the thread is put on its run queue. The kernel ends a scheduler that
 * does so with one that cannot migrate, as while another CPU still switches away from it and executes one of these
 * programs on its behalf: such a one goes by the queue, and goes on where it is if nobody takes it (find_stranded). */
static __always_inline enum sent send_to(u32 pid, s32 cpu, bool is_pushed)
{
    struct task_struct *p = bpf_task_from_pid(pid);
    if (!p)
        return SENT_NONE;
    bool is_home = scx_bpf_task_cpu(p) == cpu, can_migrate = !p->on_cpu;
    u64 queue = is_home || (is_pushed && can_migrate) ? SCX_DSQ_LOCAL_ON | cpu : OURS | cpu;
    scx_bpf_dsq_insert(p, queue, SCX_SLICE_INF, 0);
    bpf_task_release(p);
    return is_home ? SENT_AT_HOME : SENT_FROM_ELSEWHERE;
}

static __always_inline enum sent send(u32 pid, s32 cpu)
{
    return send_to(pid, cpu, false);
}

static __always_inline enum sent send_to_stranded(u32 pid, s32 cpu)
{
    return send_to(pid, cpu, true);
}

/* Takes what was sent to this CPU. It may be that it cannot migrate at this very moment, because the CPU that it leaves
 * executes one of these programs on its behalf; then this CPU comes again. */
static __always_inline bool receive(s32 cpu)
{
    if (scx_bpf_dsq_move_to_local(OURS | cpu))
        return true;
    if (scx_bpf_dsq_nr_queued(OURS | cpu) > 0)
        scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
    return false;
}

/* Takes a task that is not ours, if one waits here. The next one has waited from now on. */
static __always_inline bool receive_other(core_t *core, s32 cpu, u64 now_ns)
{
    if (READ_ONCE(core->others_due_ns) == NEVER)
        return false;
    /* A task that arrives meanwhile is seen here, or sets this again afterwards. */
    WRITE_ONCE(core->others_due_ns, NEVER);
    bool received = scx_bpf_dsq_move_to_local(OTHERS | cpu);
    if (scx_bpf_dsq_nr_queued(OTHERS | cpu) > 0)
        WRITE_ONCE(core->others_due_ns, now_ns + SCX_SLICE_DFL);
    return received;
}

/* What was on its way to a CPU, or waits for its turn there, goes on where the kernel has it. */
static __always_inline void release_all(u64 queue)
{
    struct bpf_iter_scx_dsq all;
    struct task_struct *p;
    bpf_iter_scx_dsq_new(&all, queue, 0);
    while ((p = bpf_iter_scx_dsq_next(&all)))
        scx_bpf_dsq_move(&all, p, SCX_DSQ_LOCAL_ON | scx_bpf_task_cpu(p), 0);
    bpf_iter_scx_dsq_destroy(&all);
}

/* Does what a CPU cannot do that is about to go offline, or has (session.h: find_stranded): the kernel does not ask it
 * what to run. */
static __always_inline void help_stranded(sched_t *s, call_t *c)
{
    u32 core = READ_ONCE(s->stranded);
    if (core == NONE)
        return;
    WRITE_ONCE(s->stranded, NONE);
    s32 cpu = cpu_at(core);
    release_all(OURS | cpu);
    release_all(OTHERS | cpu);
    u32 thread = pick_for(s, c, core);
    kick_cores(s, c);
    if (thread != NONE && send_to_stranded(thread_of(s, thread)->pid, cpu) == SENT_NONE) {
        abort_start(s, c, core, thread);
        kick_collected(s, c);
    }
}

/* A CPU takes what was sent to it, or a task that is not ours; if no other task waits, such a task goes on there. */
static __always_inline void fetch(s32 cpu, struct task_struct *prev, u32 prev_thread)
{
    if (receive(cpu) || scx_bpf_dsq_move_to_local(OTHERS | cpu))
        return;
    if (prev && prev_thread == NONE && prev->scx.flags & SCX_TASK_QUEUED && thread_of_task(prev) == NONE)
        prev->scx.slice = SCX_SLICE_DFL;
}

SEC("struct_ops/dispatch")
void BPF_PROG(ampsched_dispatch, s32 cpu, struct task_struct *prev)
{
    sched_t *s = shared_state();
    u32 core = core_at(cpu);
    core_t *own = core_of(s, core);
    call_t *c = own_call(s);
    u32 prev_thread = prev && prev->scx.flags & SCX_TASK_QUEUED ? thread_of_task(prev) : NONE;
    /* One that is about to end goes on. The kernel would not give it back to us but put it on the local queue, and the
     * CPU, which has chosen to idle by then, would not look there before something else wakes it. */
    if (prev_thread != NONE && prev && prev->flags & PF_EXITING) {
        prev->scx.slice = SCX_SLICE_INF;
        continue_exiting(s, c, prev_thread, core);
        kick_cores(s, c);
        return;
    }
    if (!is_ours(cpu))
        return;
    help_stranded(s, c);
    /* Behind one of ours that goes on comes one of the others, if any waits; behind those that block before their time
     * is used up, after as long as that would take. */
    if ((prev_thread != NONE || c->now_ns >= READ_ONCE(own->others_due_ns)) && receive_other(own, cpu, c->now_ns))
        return;
    if (prev_thread == NONE && has_no_work(s, core))
        return fetch(cpu, prev, prev_thread);
    u32 thread = pick_next(s, c, core, prev_thread);
    kick_cores(s, c);
    if (thread == prev_thread && thread != NONE) {
        /* A thread that was on the way here when the plan sent it elsewhere comes first: it leaves as soon as it runs.
         */
        if (!receive(cpu) && prev)
            prev->scx.slice = SCX_SLICE_INF;
        return;
    }
    enum sent sent = thread != NONE ? send(thread_of(s, thread)->pid, cpu) : SENT_NONE;
    if (sent == SENT_AT_HOME)
        return;
    if (sent == SENT_NONE && thread != NONE) {
        abort_start(s, c, core, thread);
        kick_collected(s, c);
    }
    fetch(cpu, prev, prev_thread);
}

#endif
