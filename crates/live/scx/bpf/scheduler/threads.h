/* SPDX-License-Identifier: GPL-2.0-only */
/* Threads of the interpreter come, change and go with their tasks. */
#ifndef AMPSCHED_SCHEDULER_THREADS_H
#define AMPSCHED_SCHEDULER_THREADS_H

#include "../slots.h"

#define MAX_RT_PRIO 100 /* include/linux/sched/prio.h; nice -20 has this static priority */

static __always_inline u32 weight_of(struct task_struct *p)
{
    return settings.weight_of_nice[(p->static_prio - MAX_RT_PRIO) & 63];
}

SEC("struct_ops/set_weight")
void BPF_PROG(ampsched_set_weight, struct task_struct *p, u32 weight)
{
    u32 thread = thread_of_task(p), own = weight_of(p);
    if (thread == NONE)
        return;
    change_weight(shared_state(), thread, own);
}

/* Notes the cores of a set of CPUs in a call. */
static __noinline void note_cores(sched_t *s, call_t *c, const struct cpumask *cpumask)
{
    empty(s, &c->cores);
    for (u32 core = s->zero; core < s->core_count && can_loop; core += s->one)
        if (bpf_cpumask_test_cpu(cpu_at(core), cpumask))
            include(&c->cores, core);
}

SEC("struct_ops/set_cpumask")
void BPF_PROG(ampsched_set_cpumask, struct task_struct *p, const struct cpumask *cpumask)
{
    u32 thread = thread_of_task(p);
    if (thread == NONE)
        return;
    sched_t *s = shared_state();
    call_t *c = own_call(s);
    note_cores(s, c, cpumask);
    restrict_to(s, c, thread, &c->cores);
    kick_cores(s, c);
}

/* Whether a task may become a thread. */
static __always_inline bool may_be_ours(struct task_struct *p)
{
    return !(p->flags & PF_KTHREAD);
}

SEC("struct_ops.s/init_task")
s32 BPF_PROG(ampsched_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
    /* Threads are known from the moment on in which they are ours; another scheduler may have left its own. */
    note_thread(p, NONE);
    s32 error = settings.blames ? alloc_pi_call(p) : 0;
    if (!error && may_be_ours(p) && !reserve_slot(shared_state())) {
        static char text[] = "more threads than memory allows: there is room for %llu";
        unsigned long long arguments[] = {shared_state()->slots};
        scx_bpf_error_bstr(text, arguments, sizeof(arguments));
    }
    return error;
}

SEC("struct_ops/exit_task")
void BPF_PROG(ampsched_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
    if (may_be_ours(p))
        release_slot();
}

SEC("struct_ops/enable")
void BPF_PROG(ampsched_enable, struct task_struct *p)
{
    u32 process = p->tgid;
    if (!may_be_ours(p) || process == settings.session)
        return;
    sched_t *s = shared_state();
    call_t *c = own_call(s);
    note_cores(s, c, p->cpus_ptr);
    u32 thread = init_thread(s, weight_of(p), &c->cores);
    if (thread != NONE) {
        thread_of(s, thread)->pid = p->pid;
        thread_of(s, thread)->process = process;
        thread_of(s, thread)->since_ns = bpf_ktime_get_ns();
    }
    note_thread(p, thread);
    if (thread == NONE) {
        static char text[] = "more threads than the %llu that the kernel allowed at first";
        unsigned long long arguments[] = {s->threads_max};
        scx_bpf_error_bstr(text, arguments, sizeof(arguments));
    }
}

SEC("struct_ops/disable")
void BPF_PROG(ampsched_disable, struct task_struct *p)
{
    forget(p);
}

#endif
