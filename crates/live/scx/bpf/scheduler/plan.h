/* SPDX-License-Identifier: GPL-2.0-only */
/* Changes of the plan, which the policy's slow plane makes in user space. */
#ifndef AMPSCHED_SCHEDULER_PLAN_H
#define AMPSCHED_SCHEDULER_PLAN_H

struct apply_arguments {
    u64 count;
};

/* Carries out a change of the plan, or tells at what pace a core runs. A change for a thread that has ended is left
 * out. */
inlined void apply_one(sched_t *s, struct operation arena *op, u64 now_ns)
{
    thread_t *own = thread_of(s, op->thread);
    if (op->kind == OP_PACE)
        set_pace(s, op->core & (CORES_MAX - 1), op->a, op->b, now_ns);
    else if (own->in_use && own->generation == op->generation && change(s, op))
        relocate(s, op->thread, now_ns);
}

/* Carries out changes of the plan that the loader has written into the arena, as if at one moment. */
SEC("syscall")
int apply(struct apply_arguments *arguments)
{
    sched_t *s = shared_state();
    struct kicks kicks;
    u64 now_ns = bpf_ktime_get_ns();
    for (u64 i = s->zero; i < arguments->count && can_go_on; i += s->one) {
        struct operation arena *op = &at(operations(), i);
        bpf_spin_lock(&lock);
        apply_one(s, op, now_ns);
        bpf_spin_unlock(&lock);
    }
    /* Nobody looks before all is as the plan says. */
    bpf_spin_lock(&lock);
    take_kicks(s, kicks);
    bpf_spin_unlock(&lock);
    tell(&kicks);
    return 0;
}

#endif
