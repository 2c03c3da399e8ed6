/* A handler of signals may leave the recorder behind that it has interrupted: by a jump. */
#include "real.h"

/* What was being noted is dropped, as it is where the program ends meanwhile. */
static void leave_recorder(void)
{
    resolve_once();
    struct thread *self = self_;
    if ((uintptr_t)self > (uintptr_t)NO_THREAD && self->is_busy == 1) {
        self->is_busy = 0;
    }
}

#define JUMP(name) \
    EXPORT void name(struct __jmp_buf_tag *to, int value) \
    { \
        leave_recorder(); \
        real.name(to, value); \
        __builtin_unreachable(); \
    }

JUMP(longjmp)
JUMP(_longjmp)
JUMP(siglongjmp)
JUMP(__longjmp_chk)
