/* Instructions of a thread, where the processor's counters are there and permitted. */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "real.h"

#define LEAST_DESCRIPTOR 700 /* above those that programs expect to get */

static volatile int is_refused; /* what one thread does not get, none does */

void open_counter(struct thread *self)
{
    self->counter = -1;
    if (is_refused) {
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
    self->counter = fcntl(low, F_DUPFD_CLOEXEC, LEAST_DESCRIPTOR);
    close(low);
}

/* Whether the descriptor is still the counter: programs close, and use again, what they have not opened. */
static int is_counter(int file)
{
    char path[48], target[48] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return readlink(path, target, sizeof target - 1) > 0 && !strcmp(target, "anon_inode:[perf_event]");
}

void close_counter(struct thread *self)
{
    uint64_t count;
    if (self->counter < 0 || !is_counter(self->counter)) {
        return;
    }
    if (real.read(self->counter, &count, sizeof count) == sizeof count) {
        self->head->instructions = count;
        self->head->has_instructions = 1;
    }
    close(self->counter);
    self->counter = -1;
}
