/* SPDX-License-Identifier: GPL-2.0-only */
/* The interpreter as a program that a test runs: it carries out the operations that the test has written into the
 * arena. */
#include "kernel.h"

struct replay_arguments {
    u64 count;
};

SEC("syscall")
int replay(struct replay_arguments *arguments)
{
    sched_t *s = shared_state();
    for (u64 i = s->zero; i < arguments->count && can_go_on; i += s->one) {
        struct operation arena *op = &at(operations(), i);
        bpf_spin_lock(&guard);
        operate(s, op);
        bpf_spin_unlock(&guard);
    }
    return 0;
}
