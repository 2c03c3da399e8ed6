/* Sleeping, yielding, and futexes that the program uses itself. */
#include <linux/futex.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "real.h"

/* A call that sleeps. */
#define PAUSE(type, kind, aux, call) \
    struct thread *self = current(); \
    if (UNLIKELY(!self)) { \
        return call; \
    } \
    before(self); \
    type result = call; \
    after(self, kind, 0, NULL, aux); \
    return result

EXPORT int nanosleep(const struct timespec *wanted, struct timespec *rest)
{
    PAUSE(int, SLEEP, SLEEP_FOR, real.nanosleep(wanted, rest));
}

EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted, struct timespec *rest)
{
    PAUSE(int, SLEEP, (flags & TIMER_ABSTIME) ? SLEEP_UNTIL : SLEEP_FOR,
          real.clock_nanosleep(clock, flags, wanted, rest));
}

EXPORT int usleep(useconds_t us)
{
    PAUSE(int, SLEEP, SLEEP_FOR, real.usleep(us));
}

EXPORT unsigned sleep(unsigned seconds)
{
    PAUSE(unsigned, SLEEP, SLEEP_FOR, real.sleep(seconds));
}

EXPORT int sched_yield(void)
{
    PAUSE(int, YIELD, 0, real.sched_yield());
}

static long futex(struct thread *self, const long given[6])
{
    long command = given[1] & ~(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
    int waits = command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;
    before(self);
    uint64_t begin = ticks();
    long result = real.syscall(SYS_futex, given[0], given[1], given[2], given[3], given[4], given[5]);
    const void *address = (const void *)given[0];
    if (waits) {
        after(self, FUTEX_WAIT_EVENT, 0, address, result < 0 ? (uint32_t)errno : 0);
    } else if (command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET) {
        /* Who was woken may have gone on since. */
        note_at(self, begin, FUTEX_WAKE_EVENT, hash(address), result > 0 ? (uint32_t)result : 0);
    }
    return result;
}

EXPORT long syscall(long number, ...)
{
    va_list list;
    long given[6];
    va_start(list, number);
    for (int index = 0; index < 6; index++) {
        given[index] = va_arg(list, long);
    }
    va_end(list);
    struct thread *self = current();
    if (number == SYS_futex && self) {
        return futex(self, given);
    }
    if (UNLIKELY(number == SYS_seccomp || (number == SYS_prctl && given[0] == PR_SET_SECCOMP))) {
        notice_sandbox();
    }
    return real.syscall(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}
