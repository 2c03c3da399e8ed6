/* SPDX-License-Identifier: GPL-2.0-only */
/* What scheduler.bpf.c does under its lock, as programs that a kernel without sched_ext verifies, too: a test loads
 * them with the rules of each policy, and runs none. */
#define CONSTANT_RULES
#include "kernel.h"

#include "host.h"

const volatile struct rules constant_rules SEC(".rodata.rules");

const volatile u32 constant_tracking SEC(".rodata.track");

struct arguments {
    u64 now_ns;
    u64 cores;
    u32 thread;
    u32 core;
    u32 some;
};

/* A program, named after the one in scheduler/ whose calls it has. */
#define VERIFIED(name, calls) \
    SEC("syscall") \
    int name(struct arguments *given) \
    { \
        sched_t *s = shared_state(); \
        u64 now_ns = given->now_ns; \
        u32 thread = given->thread, core = given->core, some = given->some; \
        calls; \
        return thread + core + some + (now_ns > 0); \
    }

#define LOCKED(calls) \
    bpf_spin_lock(&lock); \
    calls; \
    bpf_spin_unlock(&lock)

VERIFIED(select_cpu, {
    core = place(s, thread, core, now_ns);
    if (is_idle(s, core)) {
        LOCKED(some = begin_before_enqueue(s, thread, core, now_ns));
    }
})

VERIFIED(enqueue_task, {
    LOCKED({
        if (hand_over(s, thread, now_ns) == NONE)
            some = some ? begin_at_once(s, thread, core, now_ns) : take_over(s, thread, core, now_ns);
    });
})

VERIFIED(dispatch, {
    LOCKED({
        if (core_of(s, core)->running == thread)
            give_way(s, core, now_ns);
        if (core_of(s, core)->running == NONE)
            thread = look(s, core, now_ns);
    });
    LOCKED({
        if (core_of(s, core)->running == thread)
            suspend(s, thread, now_ns);
        wake_core(s, core);
    });
})

VERIFIED(tick, {
    LOCKED({
        if (tracking(s) == TRACKING_BY_WORK)
            follow_pace(s, core, some, now_ns);
        some = is_over(s, core, now_ns);
    });
})

VERIFIED(running, LOCKED(is_running(s, thread, core, now_ns)))

VERIFIED(stopping, LOCKED(charge_up_to(s, core, now_ns)))

VERIFIED(quiescent, {
    LOCKED({
        if (some)
            take_out(s, thread, STATE_BLOCKED, now_ns);
        else
            suspend(s, thread, now_ns);
    });
})

VERIFIED(set_cpumask, {
    LOCKED({
        if (restrict_user(s, thread, given->cores))
            relocate(s, thread, now_ns);
    });
})

VERIFIED(forget_task, {
    LOCKED({
        take_out(s, thread, STATE_EXITED, now_ns);
        free_thread(s, thread);
    });
})

VERIFIED(on_look, LOCKED(look_after(s, some, now_ns)))

VERIFIED(apply, {
    struct operation arena *op = &at(operations(), some);
    LOCKED({
        if (op->kind == OP_PACE)
            set_pace(s, op->core, op->a, op->b, now_ns);
        else if (change(s, op))
            relocate(s, op->thread, now_ns);
    });
})
