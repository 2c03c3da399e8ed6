/* A sandbox that the program builds for itself (seccomp) may kill it for a system call that it does not make itself.
 * From then on the recorder makes none: CPU time is told by ticks. */
#include <stdarg.h>
#include <sys/prctl.h>

#include "real.h"

int is_sandboxed;

/* For the whole process, though a sandbox may be that of a thread. */
void notice_sandbox(void)
{
    is_sandboxed = 1;
    if (control) {
        control->process[process_number].is_sandboxed = 1;
    }
}

EXPORT int prctl(int option, ...)
{
    va_list list;
    unsigned long given[4];
    va_start(list, option);
    for (int index = 0; index < 4; index++) {
        given[index] = va_arg(list, unsigned long);
    }
    va_end(list);
    resolve_once();
    if (option == PR_SET_SECCOMP) {
        notice_sandbox();
    }
    return real.prctl(option, given[0], given[1], given[2], given[3]);
}
