/* SPDX-License-Identifier: GPL-2.0-only */
/* What scheduler.bpf.c does with its threads, as programs that a kernel without sched_ext verifies, too: a test loads
 * them with the rules of each policy, and runs none. */
#define CONSTANT_RULES
#include "kernel.h"

#include "hotplug.h"
#include "slots.h"

const volatile struct rules constant_rules SEC(".rodata.rules");

const volatile u32 constant_tracking SEC(".rodata.track");

const volatile u32 constant_smt SEC(".rodata.smt");

const volatile u32 constant_recording SEC(".rodata.record");

struct arguments {
    u64 now_ns;
    u32 thread;
    u32 core;
    u32 some;
};

/* Calls from contexts in which interrupts are on. */
#define UNINTERRUPTED(calls) \
    { \
        unsigned long irq_flags; \
        bpf_local_irq_save(&irq_flags); \
        calls; \
        bpf_local_irq_restore(&irq_flags); \
    }

/* A program, named after the one in scheduler/ whose calls it has. */
#define VERIFIED(name, calls) \
    SEC("syscall") \
    int name(struct arguments *given) \
    { \
        sched_t *s = shared_state(); \
        u64 now_ns = given->now_ns; \
        u32 thread = given->thread, core = given->core, some = given->some; \
        call_t *c = call_of(s, core, now_ns); \
        (void)c; \
        calls; \
        return thread + core + some; \
    }

VERIFIED(select_cpu, {
    core = wake_up(s, c, thread, core);
    collect_kicks(s, c);
})

VERIFIED(enqueue_task, {
    c->here = core;
    c->here_idles = some;
    core = hand_over(s, c, thread);
    collect_kicks(s, c);
})

VERIFIED(dispatch, {
    some = has_no_work(s, core);
    continue_exiting(s, c, thread, core);
    thread = pick_next(s, c, core, thread);
    collect_kicks(s, c);
    abort_start(s, c, core, thread);
})

VERIFIED(tick, {
    if (tracking(s) == TRACKING_BY_WORK)
        see_pace(s, core, some, now_ns);
    some = tick_ends_turn(s, thread, now_ns);
})

VERIFIED(running, {
    note_running(s, c, thread, core);
    collect_kicks(s, c);
})

VERIFIED(stopping, charge_off_cpu(s, thread, now_ns))

VERIFIED(quiescent, {
    if (some)
        dequeue_thread(s, c, thread, STATE_BLOCKED);
    else
        suspend(s, c, thread);
})

VERIFIED(set_weight, change_weight(s, thread, some))

VERIFIED(set_cpumask, {
    restrict_to(s, c, thread, &c->cores);
    collect_kicks(s, c);
})

VERIFIED(hotplug, {
    UNINTERRUPTED(change_core(s, core, some));
    UNINTERRUPTED(follow_cores(s, c, thread));
    collect_kicks(s, c);
})

VERIFIED(init_task, some = reserve_slot(s))

VERIFIED(enable, thread = init_thread(s, some, &c->cores))

VERIFIED(disable, exit_thread(s, c, thread))

VERIFIED(on_timer, UNINTERRUPTED(run_periodic(s, c, some)))

VERIFIED(apply, {
    struct operation __arena *op = &at(operations(), some);
    UNINTERRUPTED({
        if (op->kind == OP_PACE)
            change_pace(s, op->core, op->a, op->b, now_ns);
        else
            change_plan(s, c, op);
    })
    collect_kicks(s, c);
})
