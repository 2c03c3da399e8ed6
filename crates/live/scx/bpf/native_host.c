/* SPDX-License-Identifier: GPL-2.0-only */
/* What the scheduler in the kernel does when it is called, as ordinary functions, for tests. */
#include "hotplug.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

/* What the calling thread does, in case that it makes the state refer to a thread that there is not. */
static __thread char doing[4096];

static void tell_and_fall(int number)
{
    ssize_t written = write(2, doing, strlen(doing));
    (void)written; /* There is no other way to report. */
    signal(number, SIG_DFL);
}

void ampsched_host_doing(const char *what);
void ampsched_host_doing(const char *what)
{
    strncpy(doing, what, sizeof(doing) - 1);
    signal(SIGSEGV, tell_and_fall);
}

/* Names a function of calls.h for callers outside; its first parameter is the state. */
#define CALLABLE(type, name, parameters, ...) \
    type ampsched_host_##name parameters; \
    type ampsched_host_##name parameters \
    { \
        return name(__VA_ARGS__); \
    }

CALLABLE(call_t *, call_of, (sched_t * s, u32 core, u64 now_ns), s, core, now_ns)
CALLABLE(void, collect_kicks, (sched_t * s, call_t *c), s, c)
CALLABLE(u32, hand_over, (sched_t * s, call_t *c, u32 thread), s, c, thread)
CALLABLE(u32, wake_up, (sched_t * s, call_t *c, u32 thread, u32 waker), s, c, thread, waker)
CALLABLE(bool, note_arrival, (sched_t * s, u32 thread, u32 core, u64 now_ns), s, thread, core, now_ns)
CALLABLE(bool, has_no_work, (sched_t * s, u32 core), s, core)
CALLABLE(void, note_running, (sched_t * s, call_t *c, u32 thread, u32 core), s, c, thread, core)
CALLABLE(void, continue_exiting, (sched_t * s, call_t *c, u32 thread, u32 core), s, c, thread, core)
CALLABLE(u32, pick_next, (sched_t * s, call_t *c, u32 core, u32 prev), s, c, core, prev)
CALLABLE(void, abort_start, (sched_t * s, call_t *c, u32 core, u32 thread), s, c, core, thread)
CALLABLE(bool, tick_ends_turn, (sched_t * s, u32 thread, u64 now_ns), s, thread, now_ns)
CALLABLE(void, charge_off_cpu, (sched_t * s, u32 thread, u64 now_ns), s, thread, now_ns)
CALLABLE(void, run_periodic, (sched_t * s, call_t *c, bool balances), s, c, balances)
CALLABLE(void, dequeue_thread, (sched_t * s, call_t *c, u32 thread, u32 state), s, c, thread, state)
CALLABLE(void, suspend, (sched_t * s, call_t *c, u32 thread), s, c, thread)
CALLABLE(void, change_plan, (sched_t * s, call_t *c, struct operation *op), s, c, op)
CALLABLE(void, restrict_to, (sched_t * s, call_t *c, u32 thread, set_t *cores), s, c, thread, cores)
CALLABLE(void, change_weight, (sched_t * s, u32 thread, u32 weight), s, thread, weight)
CALLABLE(u32, init_thread, (sched_t * s, u32 weight, set_t *cores), s, weight, cores)
CALLABLE(void, exit_thread, (sched_t * s, call_t *c, u32 thread), s, c, thread)
CALLABLE(void, change_core, (sched_t * s, u32 core, bool comes), s, core, comes)
CALLABLE(u32, pick_for, (sched_t * s, call_t *c, u32 core), s, c, core)
CALLABLE(void, follow_cores, (sched_t * s, call_t *c, u32 thread), s, c, thread)
