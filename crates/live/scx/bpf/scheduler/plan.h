/* SPDX-License-Identifier: GPL-2.0-only */
/* Changes of the plan, which the policy's slow plane makes in user space. */
#ifndef AMPSCHED_SCHEDULER_PLAN_H
#define AMPSCHED_SCHEDULER_PLAN_H

struct apply_arguments {
    u64 count;
};

/* Carries out a change of the plan, or takes note of the pace of a core. */
static __always_inline void apply_one(sched_t *s, call_t *c, struct operation __arena *op)
{
    if (op->kind == OP_PACE)
        change_pace(s, op->core, op->a, op->b, c->now_ns);
    else
        change_plan(s, c, op);
}

/* Carries out changes of the plan that the loader has written into the arena, as if at one moment. Changes for a thread
 * that has ended are left out. */
SEC("syscall")
int apply(struct apply_arguments *arguments)
{
    sched_t *s = shared_state();
    call_t *c = call_of(s, CALL_OF_PLAN, bpf_ktime_get_ns());
    unsigned long irq_flags;
    for (u64 i = s->zero; i < arguments->count && can_loop; i += s->one) {
        struct operation __arena *op = &at(operations(), i);
        bpf_local_irq_save(&irq_flags);
        apply_one(s, c, op);
        bpf_local_irq_restore(&irq_flags);
    }
    /* Cores are kicked only when the whole plan is in force. */
    kick_cores(s, c);
    return 0;
}

#endif
