/* SPDX-License-Identifier: GPL-2.0-only */
/* The interpreter as a program that a test runs: it carries out the operations that the test has written into the
 * arena. As in the scheduler, rules are constants: for all rules at once it would be too much for the verifier. */
#define CONSTANT_RULES
#include "kernel.h"

struct replay_arguments {
    u64 count;
};

const volatile struct rules constant_rules SEC(".rodata.rules");

const volatile u32 constant_tracking SEC(".rodata.track");

const volatile u32 constant_smt SEC(".rodata.smt");

const volatile u32 constant_recording SEC(".rodata.record");

SEC("syscall")
int replay(struct replay_arguments *arguments)
{
    sched_t *s = shared_state();
    unsigned long irq_flags;
    for (u64 i = s->zero; i < arguments->count && can_loop; i += s->one) {
        struct operation __arena *op = &at(operations(), i);
        bpf_local_irq_save(&irq_flags);
        operate(s, op);
        bpf_local_irq_restore(&irq_flags);
    }
    return 0;
}
