/* SPDX-License-Identifier: GPL-2.0-only */
/* What happens under the lock of the scheduler in the kernel, as ordinary functions, for tests. */
#include "host.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

/* What the calling thread does, in case that it makes the state refer to a thread that there is not. */
static __thread char doing[4096];

static void tell_and_fall(int number)
{
    ssize_t written = write(2, doing, strlen(doing));
    (void)written; /* Then nobody is told. */
    signal(number, SIG_DFL);
}

void ampsched_host_doing(const char *what);
void ampsched_host_doing(const char *what)
{
    strncpy(doing, what, sizeof(doing) - 1);
    signal(SIGSEGV, tell_and_fall);
}

/* Names a function of host.h for callers outside; its first parameter is the state. */
#define CALLABLE(type, name, parameters, ...) \
    type ampsched_host_##name parameters; \
    type ampsched_host_##name parameters \
    { \
        return name(__VA_ARGS__); \
    }

CALLABLE(u32, hand_over, (sched_t *s, u32 thread, u64 now_ns), s, thread, now_ns)
CALLABLE(bool, begin_at_once, (sched_t *s, u32 thread, u32 core, u64 now_ns), s, thread, core, now_ns)
CALLABLE(bool, take_over, (sched_t *s, u32 thread, u32 core, u64 now_ns), s, thread, core, now_ns)
CALLABLE(bool, begin_before_enqueue, (sched_t *s, u32 thread, u32 core, u64 now_ns), s, thread, core, now_ns)
CALLABLE(bool, has_got_there, (sched_t *s, u32 thread, u32 core, u64 now_ns), s, thread, core, now_ns)
CALLABLE(bool, has_no_work, (sched_t *s, u32 core), s, core)
CALLABLE(void, is_running, (sched_t *s, u32 thread, u32 core, u64 now_ns), s, thread, core, now_ns)
CALLABLE(void, give_way, (sched_t *s, u32 core, u64 now_ns), s, core, now_ns)
CALLABLE(u32, look, (sched_t *s, u32 core, u64 now_ns), s, core, now_ns)
CALLABLE(bool, is_over, (sched_t *s, u32 core, u64 now_ns), s, core, now_ns)
CALLABLE(void, look_after, (sched_t *s, bool balances, u64 now_ns), s, balances, now_ns)
CALLABLE(void, take_out, (sched_t *s, u32 thread, u32 state, u64 now_ns), s, thread, state, now_ns)
CALLABLE(void, suspend, (sched_t *s, u32 thread, u64 now_ns), s, thread, now_ns)
CALLABLE(void, relocate, (sched_t *s, u32 thread, u64 now_ns), s, thread, now_ns)
CALLABLE(bool, restrict_user, (sched_t *s, u32 thread, u64 cores), s, thread, cores)
CALLABLE(void, reweigh, (sched_t *s, u32 thread, u32 weight), s, thread, weight)
CALLABLE(u32, place, (sched_t *s, u32 thread, u32 waker, u64 now_ns), s, thread, waker, now_ns)
CALLABLE(bool, is_idle, (sched_t *s, u32 core), s, core)
CALLABLE(u32, add_thread, (sched_t *s, u32 weight, u64 cores), s, weight, cores)
CALLABLE(void, free_thread, (sched_t *s, u32 thread), s, thread)
CALLABLE(void, charge_up_to, (sched_t *s, u32 core, u64 now_ns), s, core, now_ns)
CALLABLE(void, wake_core, (sched_t *s, u32 core), s, core)
