/* SPDX-License-Identifier: GPL-2.0-only */
/* CPUs go offline and come back. As these programs are there, the kernel keeps the scheduler. */
#ifndef AMPSCHED_SCHEDULER_HOTPLUG_H
#define AMPSCHED_SCHEDULER_HOTPLUG_H

/* A core has come, or goes. Interrupts are off for a thread at a time. */
static __always_inline void hotplug(sched_t *s, u32 core, bool online)
{
    unsigned long irq_flags;
    bpf_local_irq_save(&irq_flags);
    change_core(s, core, online);
    bpf_local_irq_restore(&irq_flags);
    for (u32 thread = s->zero; thread < READ_ONCE(s->thread_count) && can_loop; thread += s->one) {
        bpf_local_irq_save(&irq_flags);
        call_t *c = own_call(s);
        follow_cores(s, c, thread);
        kick_cores(s, c);
        bpf_local_irq_restore(&irq_flags);
    }
}

/* By now the kernel no longer asks that CPU what to run: what it picks is taken away from it, and what it does not pick
 * itself others have to give to it (help_stranded). */
SEC("struct_ops/cpu_offline")
void BPF_PROG(ampsched_cpu_offline, s32 cpu)
{
    hotplug(shared_state(), core_at(cpu), false);
}

SEC("struct_ops/cpu_online")
void BPF_PROG(ampsched_cpu_online, s32 cpu)
{
    if (is_ours(cpu))
        return hotplug(shared_state(), core_at(cpu), true);
    static char text[] = "CPU %llu has come online and is in no class; name it with --big, --middle or --little";
    unsigned long long arguments[] = {cpu};
    scx_bpf_exit_bstr(0, text, arguments, sizeof(arguments));
}

#endif
