/* SPDX-License-Identifier: GPL-2.0-only */
/* What scheduler.bpf.c does with its threads, as programs that a kernel without sched_ext verifies, too: a test loads
 * them with the rules of each policy, and runs none. */
#define CONSTANT_RULES
#include "kernel.h"

#include "hotplug.h"
#include "room.h"

const volatile struct rules constant_rules SEC(".rodata.rules");

const volatile u32 constant_tracking SEC(".rodata.track");

const volatile u32 constant_recording SEC(".rodata.record");

struct arguments {
    u64 now_ns;
    u32 thread;
    u32 core;
    u32 some;
};

/* Calls by somebody who does not come from a CPU with interrupts off. */
#define UNINTERRUPTED(calls) \
    { \
        unsigned long before; \
        bpf_local_irq_save(&before); \
        calls; \
        bpf_local_irq_restore(&before); \
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
    collect(s, c);
})

VERIFIED(enqueue_task, {
    c->here = core;
    c->here_idles = some;
    core = hand_over(s, c, thread);
    collect(s, c);
})

VERIFIED(dispatch, {
    some = has_no_work(s, core);
    goes_on(s, c, thread, core);
    thread = look(s, c, core, thread);
    collect(s, c);
    give_up(s, c, core, thread);
})

VERIFIED(tick, {
    if (tracking(s) == TRACKING_BY_WORK)
        see_pace(s, core, some, now_ns);
    some = is_over(s, thread, now_ns);
})

VERIFIED(running, {
    is_running(s, c, thread, core);
    collect(s, c);
})

VERIFIED(stopping, lose_cpu(s, thread, now_ns))

VERIFIED(quiescent, {
    if (some)
        take_out(s, c, thread, STATE_BLOCKED);
    else
        suspend(s, c, thread);
})

VERIFIED(set_weight, weigh(s, thread, some))

VERIFIED(set_cpumask, {
    restrict_to(s, c, thread, &c->cores);
    collect(s, c);
})

VERIFIED(hotplug, {
    UNINTERRUPTED(change_core(s, core, some));
    UNINTERRUPTED(follow_cores(s, c, thread));
    collect(s, c);
})

VERIFIED(init_task, some = make_room(s))

VERIFIED(enable, thread = welcome(s, some, &c->cores))

VERIFIED(disable, bid_farewell(s, c, thread))

VERIFIED(on_look, UNINTERRUPTED(look_after(s, c, some)))

VERIFIED(apply, {
    struct operation arena *op = &at(operations(), some);
    UNINTERRUPTED({
        if (op->kind == OP_PACE)
            change_pace(s, op->core, op->a, op->b, now_ns);
        else
            change_plan(s, c, op);
    })
    collect(s, c);
})
