/* SPDX-License-Identifier: GPL-2.0-only */
/* The scheduler begins, looks after itself by a timer, and ends. */
#ifndef AMPSCHED_SCHEDULER_SESSION_H
#define AMPSCHED_SCHEDULER_SESSION_H

struct bpf_timer {
    u64 opaque[2];
} __attribute__((aligned(8)));

struct periodic {
    struct bpf_timer timer;
    u64 balance_due_ns;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct periodic);
} timers SEC(".maps");

/* A sign of life of the slow plane is overdue. Before the first one the scheduler is being enabled. */
static __always_inline bool is_stuck(u64 now_ns)
{
    u64 alive_ns = shared_state()->alive_ns;
    return settings.epoch_limit_ns > 0 && alive_ns > 0 && sat_sub(now_ns, alive_ns) > settings.epoch_limit_ns;
}

/* The next look, at a whole multiple of the period: the moments do not drift, and do not depend on when the scheduler
 * was loaded. Ticks of all CPUs fall on multiples of theirs, too (kernel/time/tick-sched.c). */
static __always_inline s32 arm_timer(struct periodic *periodic, u64 now_ns)
{
    u64 period_ns = settings.timer_period_ns;
    return bpf_timer_start(&periodic->timer, (now_ns / period_ns + 1) * period_ns, BPF_F_TIMER_ABS);
}

/* After how many timer periods in a row in which a core did not react to a kick another core looks for it (ours): the
 * kernel's ticks are no rarer than looks. */
#define UNANSWERED_MAX 4

static __always_inline bool is_kernel_idle(s32 cpu)
{
    const struct cpumask *idle = scx_bpf_get_idle_cpumask();
    bool is_idle = bpf_cpumask_test_cpu(cpu, idle);
    scx_bpf_put_idle_cpumask(idle);
    return is_idle;
}

/* Whether a core was kicked, or something is on its way there, but it has not reacted. */
static __always_inline bool is_unanswered(sched_t *s, u32 core)
{
    core_t *own = core_of(s, core);
    s32 cpu = cpu_at(core);
    u32 running = READ_ONCE(own->running);
    bool is_online = has(&s->online, core);
    bool runs = READ_ONCE(own->others_run) || (running != NONE && thread_of(s, running)->charged_ns != OFF_CPU);
    bool has_to = !(is_online && runs) && (READ_ONCE(own->need_resched) || scx_bpf_dsq_nr_queued(OURS | cpu) > 0 ||
                                           scx_bpf_dsq_nr_queued(OTHERS | cpu) > 0);
    if (is_online && !has_to)
        WRITE_ONCE(own->unanswered, 0);
    return has_to;
}

/* Whether it is time that another core looks for one that does not react. One that is online looks when it has time,
 * but a thread that was sent there and that it does not take goes on elsewhere: a CPU that is about to go offline may
 * ask what to run and take nothing, and it goes only when all that were interrupted while they read what RCU guards
 * have gone on. */
static __always_inline bool is_stranded(sched_t *s, u32 core)
{
    s32 cpu = cpu_at(core);
    return !has(&s->online, core) || (READ_ONCE(core_of(s, core)->unanswered) > UNANSWERED_MAX &&
                                      (is_kernel_idle(cpu) || scx_bpf_dsq_nr_queued(OURS | cpu) > 0));
}

/* Before the kernel says that a CPU goes offline, and until a moment after it says that it is back, it does not ask it
 * what to run, and interrupts that tell it to look are lost. It is kicked again; in the end, and if it is offline,
 * another core looks for it. */
static __always_inline void find_stranded(sched_t *s)
{
    u32 stranded = opaque(s, NONE), helper = opaque(s, NONE);
    for (u32 core = s->zero; core < s->core_count && can_loop; core += s->one) {
        core_t *own = core_of(s, core);
        if (!is_unanswered(s, core)) {
            if (has(&s->online, core))
                helper = opaque(s, core);
            continue;
        }
        WRITE_ONCE(own->unanswered, READ_ONCE(own->unanswered) + 1);
        if (!is_stranded(s, core))
            scx_bpf_kick_cpu(cpu_at(core), SCX_KICK_IDLE);
        else if (stranded == NONE || READ_ONCE(own->unanswered) > READ_ONCE(core_of(s, stranded)->unanswered))
            stranded = opaque(s, core);
    }
    if (stranded == NONE || helper == NONE)
        return;
    /* The next time it is another one's turn. */
    WRITE_ONCE(core_of(s, stranded)->unanswered, UNANSWERED_MAX);
    WRITE_ONCE(s->stranded, stranded);
    scx_bpf_kick_cpu(cpu_at(helper), SCX_KICK_PREEMPT);
}

static int on_timer(void *map, int *key, struct periodic *periodic)
{
    sched_t *s = shared_state();
    u64 now_ns = bpf_ktime_get_ns(), period_ns = s->rules.balance.period_ns;
    call_t *c = call_of(s, CALL_OF_TIMER, now_ns);
    unsigned long irq_flags;
    bool balances = period_ns > 0 && now_ns >= periodic->balance_due_ns;
    if (balances)
        periodic->balance_due_ns = now_ns / settings.timer_period_ns * settings.timer_period_ns + period_ns;
    bpf_local_irq_save(&irq_flags);
    run_periodic(s, c, balances);
    bpf_local_irq_restore(&irq_flags);
    kick_collected(s, c);
    find_stranded(s);
    if (s->stuck) {
        static char text[] = "%llu CPUs or more have waited in vain for a lock";
        unsigned long long arguments[] = {s->stuck};
        scx_bpf_error_bstr(text, arguments, sizeof(arguments));
    }
    if (is_stuck(now_ns)) {
        static char text[] = "the policy has not given a sign of life for %llu ms";
        unsigned long long arguments[] = {sat_sub(now_ns, shared_state()->alive_ns) / 1000000};
        scx_bpf_error_bstr(text, arguments, sizeof(arguments));
    }
    arm_timer(periodic, now_ns);
    return 0;
}

SEC("struct_ops.s/init")
s32 BPF_PROG(ampsched_init)
{
    u32 zero = 0;
    sched_t *s = shared_state();
    for (u32 core = s->zero; core < s->core_count && can_loop; core += s->one) {
        s32 cpu = cpu_at(core);
        s32 error = scx_bpf_create_dsq(OURS | cpu, -1);
        if (!error)
            error = scx_bpf_create_dsq(OTHERS | cpu, -1);
        if (error)
            return error;
    }
    struct periodic *periodic = bpf_map_lookup_elem(&timers, &zero);
    if (!periodic)
        return -2; /* ENOENT */
    bpf_timer_init(&periodic->timer, &timers, CLOCK_MONOTONIC);
    bpf_timer_set_callback(&periodic->timer, on_timer);
    return arm_timer(periodic, bpf_ktime_get_ns());
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
