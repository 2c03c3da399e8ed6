/* Instructions of a thread, where the processor's counters are there and permitted. */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

#include "real.h"

#define LEAST_DESCRIPTOR 700 /* above those that programs expect to get */

static volatile int is_refused; /* what one thread does not get, none does */

void open_counter(struct thread *self)
{
    self->counter = -1;
    if (is_refused || is_sandboxed) {
        return;
    }
    struct perf_event_attr wanted = {
        .type = PERF_TYPE_HARDWARE,
        .size = sizeof wanted,
        .config = PERF_COUNT_HW_INSTRUCTIONS,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    int low = (int)real.syscall(SYS_perf_event_open, &wanted, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (low < 0) {
        is_refused = 1;
        return;
    }
    self->counter = (int)real.syscall(SYS_fcntl, low, F_DUPFD_CLOEXEC, LEAST_DESCRIPTOR);
    real.syscall(SYS_close, low);
    if (real.syscall(SYS_ioctl, self->counter, PERF_EVENT_IOC_ID, &self->counter_id)) {
        self->counter_id = 0;
    }
}

/* Whether the descriptor is still the counter: programs close, and use again, what they have not opened. */
static int is_counter(const struct thread *self)
{
    uint64_t id = 0;
    return real.syscall(SYS_ioctl, self->counter, PERF_EVENT_IOC_ID, &id) == 0 && id == self->counter_id;
}

/* By system calls as such: the C library's functions may be the end of a thread that is cancelled. */
void close_counter(struct thread *self)
{
    uint64_t count;
    if (self->counter < 0 || is_sandboxed || !is_counter(self)) {
        return;
    }
    if (real.syscall(SYS_read, self->counter, &count, sizeof count) == sizeof count) {
        self->head->instructions = count;
        self->head->has_instructions = 1;
    }
    real.syscall(SYS_close, self->counter);
    self->counter = -1;
}
