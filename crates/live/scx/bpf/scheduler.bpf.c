/* SPDX-License-Identifier: GPL-2.0-only */
/* A sched_ext scheduler that executes Rules and Plan: what the kernel says happens becomes calls of host.h and the interpreter.
 *
 * Waiting threads are in the interpreter's queues, not in the kernel's. One lock guards all of its state; nothing of the kernel is called
 * while it is held. Tasks that are not ours (kernel threads) go straight to their core. Without a periodic tick of its own, the scheduler
 * looks at ends of turns whenever the kernel ticks. */
#define CONSTANT_RULES
#include "sched_ext.h"

#include "host.h"

#define MAX_RT_PRIO 100 /* include/linux/sched/prio.h; nice -20 has this static priority */
#define TEXT_MAX 256

/* Queues of the kernel, one of each kind per CPU: threads that have been given that CPU, and tasks that are not ours. */
#define OURS (1ull << 16)
#define OTHERS (1ull << 17)

/* Set by the loader. src/kernel.rs has the same in Rust. */
struct settings {
    u64 look_period_ns; /* period of look_after() */
    u64 epoch_limit_ns; /* longest time without a sign of life of the policy's slow plane; 0: no limit */
    u32 cpu_count;
    u32 cpu_of_core[CORES_MAX];
    u32 core_of_cpu[CORES_MAX];
    u32 weight_of_nice[64]; /* from nice -20 to 19, the rest is not used */
    u32 blames; /* whether the policy wants to know who lets whom wait */
};
const volatile struct settings settings SEC(".rodata.settings");

const volatile struct rules constant_rules SEC(".rodata.rules");

/* Read by the loader. */
struct report {
    s64 exit_code;
    u32 exit_kind;
    u32 unused;
    char reason[TEXT_MAX];
    char message[TEXT_MAX];
};
struct report report SEC(".data.report");

/* Which thread of the interpreter a task is. */
struct slot {
    u32 thread;
    u32 ours;
    /* Address of the futex that it is about to lock, or unlock (blame.h) */
    u64 locks;
    u64 unlocks;
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct slot);
} slots SEC(".maps");

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

/* A task's thread; NONE if the task is not ours. */
inlined u32 thread_of_task(struct task_struct *p)
{
    struct slot *slot = bpf_task_storage_get(&slots, p, 0, 0);
    return slot && slot->ours ? slot->thread : NONE;
}

#include "blame.h"

inlined u32 core_at(s32 cpu)
{
    return settings.core_of_cpu[cpu & (CORES_MAX - 1)];
}

inlined s32 cpu_at(u32 core)
{
    return settings.cpu_of_core[core & (CORES_MAX - 1)];
}

/* Cores that are to be told something when the lock is free. */
struct kicks {
    u64 wake;
    u64 interrupt;
};

/* Takes the collected cores out; the lock is held. */
#define take_kicks(s, kicks) \
    do { \
        (kicks).wake = (s)->to_wake; \
        (kicks).interrupt = (s)->to_interrupt; \
        (s)->to_wake = (s)->to_interrupt = 0; \
    } while (0)

apart u32 kick(u64 cores, u64 how)
{
    u32 core = shared_state()->zero;
    for (; cores && can_go_on; core++, cores >>= 1)
        if (cores & 1)
            scx_bpf_kick_cpu(cpu_at(core), how);
    return core;
}

inlined void tell(struct kicks *kicks)
{
    if (kicks->interrupt)
        kick(kicks->interrupt, SCX_KICK_PREEMPT);
    if (kicks->wake)
        kick(kicks->wake, SCX_KICK_IDLE);
}

/* The core of the thread that wakes another one, if one of ours does. */
inlined u32 waker_core(sched_t *s, u32 waker, s32 cpu)
{
    u32 core = core_at(cpu);
    return waker != NONE && core_of(s, core)->running == waker ? core : NONE;
}

/* A thread that wakes up, or is new, is placed. That only reads the state, without the lock: what it sees may have changed until the thread
 * gets there in any case. If its core has nothing else to do, as after most wake-ups, the thread begins at once; otherwise
 * ampsched_enqueue follows. */
SEC("struct_ops/select_cpu")
s32 BPF_PROG(ampsched_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
    u32 thread = thread_of_task(p), waker = thread_of_task(bpf_get_current_task_btf());
    if (thread == NONE)
        return prev_cpu;
    if (settings.blames)
        blame_for_pi(bpf_get_current_task_btf(), p);
    sched_t *s = shared_state();
    struct kicks kicks;
    u64 now_ns = bpf_ktime_get_ns();
    thread_t *own = thread_of(s, thread);
    if (own->held)
        return prev_cpu;
    u32 core = place(s, thread, waker_core(s, waker, bpf_get_smp_processor_id()));
    own->chosen = core;
    if (core == NONE)
        return prev_cpu;
    s32 cpu = cpu_at(core);
    if (!is_idle(s, core) || !scx_bpf_test_and_clear_cpu_idle(cpu))
        return cpu;
    bpf_spin_lock(&lock);
    bool begins = begin_before_enqueue(s, thread, core, now_ns);
    take_kicks(s, kicks);
    bpf_spin_unlock(&lock);
    tell(&kicks);
    if (begins)
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, 0);
    return cpu;
}

/* A task that is not ours: at once to its core, where it interrupts what runs; if it has used up its time, behind one of ours. */
inlined void enqueue_other(struct task_struct *p, u64 enq_flags)
{
    s32 cpu = scx_bpf_task_cpu(p);
    if (enq_flags & SCX_ENQ_WAKEUP) {
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags | SCX_ENQ_PREEMPT);
        return;
    }
    scx_bpf_dsq_insert(p, OTHERS | cpu, SCX_SLICE_DFL, enq_flags);
    scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

SEC("struct_ops/enqueue")
void BPF_PROG(ampsched_enqueue, struct task_struct *p, u64 enq_flags)
{
    u32 thread = thread_of_task(p);
    if (thread == NONE)
        return enqueue_other(p, enq_flags);
    sched_t *s = shared_state();
    struct kicks kicks;
    s32 cpu = scx_bpf_task_cpu(p);
    bool is_idle = enq_flags & SCX_ENQ_WAKEUP && scx_bpf_test_and_clear_cpu_idle(cpu), begins = false;
    u64 now_ns = bpf_ktime_get_ns();
    bpf_spin_lock(&lock);
    u32 core = hand_over(s, thread, now_ns);
    if (core == NONE)
        begins = is_idle ? begin_at_once(s, thread, core_at(cpu), now_ns) : take_over(s, thread, core_at(cpu), now_ns);
    take_kicks(s, kicks);
    bpf_spin_unlock(&lock);
    if (begins) {
        /* It is on that CPU's run queue already and has not to migrate. */
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags | (is_idle ? 0 : SCX_ENQ_PREEMPT));
    } else if (core != NONE) {
        scx_bpf_dsq_insert(p, OURS | cpu_at(core), SCX_SLICE_INF, enq_flags);
        scx_bpf_kick_cpu(cpu_at(core), SCX_KICK_IDLE);
    }
    tell(&kicks);
}

SEC("struct_ops/dequeue")
void BPF_PROG(ampsched_dequeue, struct task_struct *p, u64 deq_flags)
{
    u32 thread = thread_of_task(p);
    if (thread == NONE)
        return;
    sched_t *s = shared_state();
    u64 now_ns = bpf_ktime_get_ns();
    bpf_spin_lock(&lock);
    suspend(s, thread, now_ns);
    bpf_spin_unlock(&lock);
}

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

/* Takes what was sent to this CPU. It may be that it cannot migrate at this very moment, because the CPU that it leaves executes one of
 * these programs on its behalf; then this CPU comes again. */
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
        thread_of(s, thread)->on_cpu = true;
    take_kicks(s, kicks);
    bpf_spin_unlock(&lock);
    tell(&kicks);
    if (thread == before && thread != NONE) {
        if (prev)
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

/* Whether a task that is not ours waits for this CPU: one that has just come, or one that has waited for its turn. */
inlined bool others_wait(s32 cpu, u64 ran_ns)
{
    return scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL) > 0 || (ran_ns >= SCX_SLICE_DFL && scx_bpf_dsq_nr_queued(OTHERS | cpu) > 0);
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
    bpf_spin_lock(&lock);
    thread_t *own = thread_of(s, thread);
    if (own->state == STATE_RUNNING) {
        over = is_over(s, own->core, now_ns);
        since_ns = own->on_since_ns;
    }
    bpf_spin_unlock(&lock);
    if (over || others_wait(bpf_get_smp_processor_id(), less(now_ns, since_ns)))
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
    own->on_cpu = false;
    bpf_spin_unlock(&lock);
}

SEC("struct_ops/quiescent")
void BPF_PROG(ampsched_quiescent, struct task_struct *p, u64 deq_flags)
{
    u32 thread = thread_of_task(p);
    if (thread == NONE)
        return;
    sched_t *s = shared_state();
    u64 now_ns = bpf_ktime_get_ns();
    bpf_spin_lock(&lock);
    if (deq_flags & SCX_DEQ_SLEEP)
        take_out(s, thread, STATE_BLOCKED, now_ns);
    else
        suspend(s, thread, now_ns);
    bpf_spin_unlock(&lock);
}

inlined u32 weight_of(struct task_struct *p)
{
    return settings.weight_of_nice[(p->static_prio - MAX_RT_PRIO) & 63];
}

SEC("struct_ops/set_weight")
void BPF_PROG(ampsched_set_weight, struct task_struct *p, u32 weight)
{
    u32 thread = thread_of_task(p), own = weight_of(p);
    if (thread == NONE)
        return;
    sched_t *s = shared_state();
    bpf_spin_lock(&lock);
    reweigh(s, thread, own);
    bpf_spin_unlock(&lock);
}

/* The cores in a set of CPUs. */
apart u64 cores_in(const struct cpumask *cpumask)
{
    u64 cores = 0;
    for (u32 cpu = shared_state()->zero; cpu < settings.cpu_count && can_go_on; cpu++)
        if (bpf_cpumask_test_cpu(cpu, cpumask))
            cores |= bit(core_at(cpu));
    return cores;
}

SEC("struct_ops/set_cpumask")
void BPF_PROG(ampsched_set_cpumask, struct task_struct *p, const struct cpumask *cpumask)
{
    u32 thread = thread_of_task(p);
    if (thread == NONE)
        return;
    sched_t *s = shared_state();
    struct kicks kicks;
    u64 cores = cores_in(cpumask), now_ns = bpf_ktime_get_ns();
    bpf_spin_lock(&lock);
    if (restrict_user(s, thread, cores))
        relocate(s, thread, now_ns);
    take_kicks(s, kicks);
    bpf_spin_unlock(&lock);
    tell(&kicks);
}

SEC("struct_ops/init_task")
s32 BPF_PROG(ampsched_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
    /* Only room: threads are known from the moment on in which they are ours. */
    return bpf_task_storage_get(&slots, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE) ? 0 : -12 /* ENOMEM */;
}

SEC("struct_ops/enable")
void BPF_PROG(ampsched_enable, struct task_struct *p)
{
    struct slot *slot = bpf_task_storage_get(&slots, p, 0, 0);
    if (!slot || p->flags & PF_KTHREAD)
        return;
    sched_t *s = shared_state();
    u32 weight = weight_of(p), thread, pid = p->pid, process = p->tgid;
    u64 cores = cores_in(p->cpus_ptr), now_ns = bpf_ktime_get_ns();
    bpf_spin_lock(&lock);
    thread = add_thread(s, weight, cores);
    if (thread != NONE) {
        thread_of(s, thread)->pid = pid;
        thread_of(s, thread)->process = process;
        thread_of(s, thread)->since_ns = now_ns;
    }
    bpf_spin_unlock(&lock);
    slot->thread = thread;
    slot->ours = thread != NONE;
    if (thread == NONE) {
        static char text[] = "more threads than the %llu for which there is room";
        unsigned long long arguments[] = { s->threads_max };
        scx_bpf_error_bstr(text, arguments, sizeof(arguments));
    }
}

SEC("struct_ops/disable")
void BPF_PROG(ampsched_disable, struct task_struct *p)
{
    struct slot *slot = bpf_task_storage_get(&slots, p, 0, 0);
    if (!slot || !slot->ours)
        return;
    sched_t *s = shared_state();
    u32 thread = slot->thread;
    u64 now_ns = bpf_ktime_get_ns();
    slot->ours = false;
    bpf_spin_lock(&lock);
    take_out(s, thread, STATE_EXITED, now_ns);
    free_thread(s, thread);
    bpf_spin_unlock(&lock);
}

/* A sign of life of the slow plane is overdue. Before the first one the scheduler is being enabled. */
inlined bool is_stuck(u64 now_ns)
{
    u64 alive_ns = shared_state()->alive_ns;
    return settings.epoch_limit_ns > 0 && alive_ns > 0 && less(now_ns, alive_ns) > settings.epoch_limit_ns;
}

static int on_look(void *map, int *key, struct look *look)
{
    sched_t *s = shared_state();
    struct kicks kicks;
    u64 now_ns = bpf_ktime_get_ns(), period_ns = s->rules.balance.period_ns;
    bool balances = period_ns > 0 && now_ns >= look->balance_due_ns;
    if (balances)
        look->balance_due_ns = now_ns + period_ns;
    bpf_spin_lock(&lock);
    look_after(s, balances, now_ns);
    take_kicks(s, kicks);
    bpf_spin_unlock(&lock);
    tell(&kicks);
    if (is_stuck(now_ns)) {
        static char text[] = "the policy has not given a sign of life for %llu ms";
        unsigned long long arguments[] = { less(now_ns, shared_state()->alive_ns) / 1000000 };
        scx_bpf_error_bstr(text, arguments, sizeof(arguments));
    }
    bpf_timer_start(&look->timer, settings.look_period_ns, 0);
    return 0;
}

SEC("struct_ops.s/init")
s32 BPF_PROG(ampsched_init)
{
    u32 zero = 0;
    for (u32 cpu = shared_state()->zero; cpu < settings.cpu_count && can_go_on; cpu++) {
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
    return bpf_timer_start(&look->timer, settings.look_period_ns, 0);
}

SEC("struct_ops/exit")
void BPF_PROG(ampsched_exit, struct scx_exit_info *info)
{
    bpf_probe_read_kernel_str(report.reason, TEXT_MAX, info->reason);
    bpf_probe_read_kernel_str(report.message, TEXT_MAX, info->msg);
    report.exit_code = info->exit_code;
    report.exit_kind = info->kind;
}

struct apply_arguments {
    u64 count;
};

/* Carries out changes of the plan that the loader has written into the arena. Changes for a thread that has ended are left out. */
SEC("syscall")
int apply(struct apply_arguments *arguments)
{
    sched_t *s = shared_state();
    struct kicks kicks;
    u64 now_ns = bpf_ktime_get_ns();
    for (u64 i = s->zero; i < arguments->count && can_go_on; i++) {
        struct operation arena *op = &at(operations(), i);
        bpf_spin_lock(&lock);
        thread_t *own = thread_of(s, op->thread);
        if (own->in_use && own->generation == op->generation && change(s, op))
            relocate(s, op->thread, now_ns);
        take_kicks(s, kicks);
        bpf_spin_unlock(&lock);
        tell(&kicks);
    }
    return 0;
}

SEC(".struct_ops.link")
struct sched_ext_ops ampsched_ops = {
    .select_cpu = (void *)ampsched_select_cpu,
    .enqueue = (void *)ampsched_enqueue,
    .dequeue = (void *)ampsched_dequeue,
    .dispatch = (void *)ampsched_dispatch,
    .tick = (void *)ampsched_tick,
    .running = (void *)ampsched_running,
    .stopping = (void *)ampsched_stopping,
    .quiescent = (void *)ampsched_quiescent,
    .set_weight = (void *)ampsched_set_weight,
    .set_cpumask = (void *)ampsched_set_cpumask,
    .init_task = (void *)ampsched_init_task,
    .enable = (void *)ampsched_enable,
    .disable = (void *)ampsched_disable,
    .init = (void *)ampsched_init,
    .exit = (void *)ampsched_exit,
    .flags = SCX_OPS_ENQ_LAST,
    .timeout_ms = 10000,
    .name = "ampsched",
};
