/* SPDX-License-Identifier: GPL-2.0-only */
/* The scheduler begins, looks after itself by a timer, and ends. */
#ifndef AMPSCHED_SCHEDULER_SESSION_H
#define AMPSCHED_SCHEDULER_SESSION_H

struct bpf_timer {
    u64 opaque[2];
} __attribute__((aligned(8)));

struct look {
    struct bpf_timer timer;
    u64 balance_due_ns;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct look);
} looks SEC(".maps");

/* A sign of life of the slow plane is overdue. Before the first one the scheduler is being enabled. */
inlined bool is_stuck(u64 now_ns)
{
    u64 alive_ns = shared_state()->alive_ns;
    return settings.epoch_limit_ns > 0 && alive_ns > 0 && less(now_ns, alive_ns) > settings.epoch_limit_ns;
}

/* The next look, at a whole multiple of the period: the moments do not drift, and do not depend on when the scheduler
 * was loaded. Ticks of all CPUs fall on multiples of theirs, too (kernel/time/tick-sched.c). */
inlined s32 begin_look(struct look *look, u64 now_ns)
{
    u64 period_ns = settings.look_period_ns;
    return bpf_timer_start(&look->timer, (now_ns / period_ns + 1) * period_ns, BPF_F_TIMER_ABS);
}

/* After how many looks in a row at which a core had to look somebody else looks for it (ours): the kernel's ticks are
 * no rarer than looks. */
#define UNHEARD_MAX 4

inlined bool is_kernel_idle(s32 cpu)
{
    const struct cpumask *idle = scx_bpf_get_idle_cpumask();
    bool is_idle = bpf_cpumask_test_cpu(cpu, idle);
    scx_bpf_put_idle_cpumask(idle);
    return is_idle;
}

/* Whether a core has to look, as it has been told so or something is on its way there, but does nothing. */
inlined bool is_unheard(sched_t *s, u32 core)
{
    core_t *own = core_of(s, core);
    s32 cpu = cpu_at(core);
    u32 running = get(own->running);
    bool is_online = has(&s->online, core);
    bool runs = get(own->others_run) || (running != NONE && thread_of(s, running)->charged_ns != OFF_CPU);
    bool has_to = !(is_online && runs) && (get(own->looks) || scx_bpf_dsq_nr_queued(OURS | cpu) > 0 ||
                                           scx_bpf_dsq_nr_queued(OTHERS | cpu) > 0);
    if (is_online && !has_to)
        put(own->unheard, 0);
    return has_to;
}

/* Whether it is time that somebody else looks for a core that has to. One that is online looks when it has time, but
 * whom it does not take although it was sent there goes on elsewhere: a CPU that is about to go offline may ask what to
 * run and take nobody, and it goes only when all that were interrupted while they read what RCU guards have gone on. */
inlined bool is_stranded(sched_t *s, u32 core)
{
    s32 cpu = cpu_at(core);
    return !has(&s->online, core) || (get(core_of(s, core)->unheard) > UNHEARD_MAX &&
                                      (is_kernel_idle(cpu) || scx_bpf_dsq_nr_queued(OURS | cpu) > 0));
}

/* Before the kernel says that a CPU goes offline, and until a moment after it says that it is back, it does not ask it
 * what to run, and interrupts that tell it to look are lost. It is told again; in the end, and if it is offline,
 * somebody else looks for it. */
inlined void find_stranded(sched_t *s)
{
    u32 stranded = unknown(s, NONE), helper = unknown(s, NONE);
    for (u32 core = s->zero; core < s->core_count && can_go_on; core += s->one) {
        core_t *own = core_of(s, core);
        if (!is_unheard(s, core)) {
            if (has(&s->online, core))
                helper = unknown(s, core);
            continue;
        }
        put(own->unheard, get(own->unheard) + 1);
        if (!is_stranded(s, core))
            scx_bpf_kick_cpu(cpu_at(core), SCX_KICK_IDLE);
        else if (stranded == NONE || get(own->unheard) > get(core_of(s, stranded)->unheard))
            stranded = unknown(s, core);
    }
    if (stranded == NONE || helper == NONE)
        return;
    /* The next time it is another one's turn. */
    put(core_of(s, stranded)->unheard, UNHEARD_MAX);
    put(s->stranded, stranded);
    scx_bpf_kick_cpu(cpu_at(helper), SCX_KICK_PREEMPT);
}

static int on_look(void *map, int *key, struct look *look)
{
    sched_t *s = shared_state();
    u64 now_ns = bpf_ktime_get_ns(), period_ns = s->rules.balance.period_ns;
    call_t *c = call_of(s, CALL_OF_LOOK, now_ns);
    unsigned long before;
    bool balances = period_ns > 0 && now_ns >= look->balance_due_ns;
    if (balances)
        look->balance_due_ns = now_ns / settings.look_period_ns * settings.look_period_ns + period_ns;
    bpf_local_irq_save(&before);
    look_after(s, c, balances);
    bpf_local_irq_restore(&before);
    tell_named(s, c);
    find_stranded(s);
    if (s->stuck) {
        static char text[] = "%llu CPUs or more have waited in vain for a lock";
        unsigned long long arguments[] = { s->stuck };
        scx_bpf_error_bstr(text, arguments, sizeof(arguments));
    }
    if (is_stuck(now_ns)) {
        static char text[] = "the policy has not given a sign of life for %llu ms";
        unsigned long long arguments[] = { less(now_ns, shared_state()->alive_ns) / 1000000 };
        scx_bpf_error_bstr(text, arguments, sizeof(arguments));
    }
    begin_look(look, now_ns);
    return 0;
}

SEC("struct_ops.s/init")
s32 BPF_PROG(ampsched_init)
{
    u32 zero = 0;
    sched_t *s = shared_state();
    for (u32 core = s->zero; core < s->core_count && can_go_on; core += s->one) {
        s32 cpu = cpu_at(core);
        s32 error = scx_bpf_create_dsq(OURS | cpu, -1);
        if (!error)
            error = scx_bpf_create_dsq(OTHERS | cpu, -1);
        if (error)
            return error;
    }
    struct look *look = bpf_map_lookup_elem(&looks, &zero);
    if (!look)
        return -2; /* ENOENT */
    bpf_timer_init(&look->timer, &looks, CLOCK_MONOTONIC);
    bpf_timer_set_callback(&look->timer, on_look);
    return begin_look(look, bpf_ktime_get_ns());
}

SEC("struct_ops/exit")
void BPF_PROG(ampsched_exit, struct scx_exit_info *info)
{
    bpf_probe_read_kernel_str(report.reason, TEXT_MAX, info->reason);
    bpf_probe_read_kernel_str(report.message, TEXT_MAX, info->msg);
    report.exit_code = info->exit_code;
    report.exit_kind = info->kind;
}

#endif
