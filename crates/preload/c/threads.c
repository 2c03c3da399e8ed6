/* Threads and processes: creating them and waiting for their end. */
#include "real.h"

static void end(void *self)
{
    end_thread(self);
}

/* The creating thread has made the record; the new one fills it. Its end is seen without thread-specific data, of which
 * a program may need all. */
static void *run(void *argument)
{
    struct thread *self = argument;
    void *(*routine)(void *) = self->routine;
    void *given = self->argument, *result;
    begin_thread(self, 0);
    pthread_cleanup_push(end, self);
    result = routine(given);
    pthread_cleanup_pop(1);
    return result;
}

/* The thread of main() has not been created by a wrapper. */
EXPORT void pthread_exit(void *value)
{
    struct thread *self = current();
    if (self) {
        end_thread(self);
    }
    real.pthread_exit(value);
    __builtin_unreachable();
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*routine)(void *), void *argument)
{
    struct thread *self = current();
    struct thread *made = self ? new_thread(self->number + 1) : NULL;
    if (!made) {
        return real.pthread_create(thread, attr, routine, argument);
    }
    made->routine = routine;
    made->argument = argument;
    /* Before the new thread begins; if it never does, the reader finds no such thread and drops the event. */
    note(self, CREATE, 0, made->number, 0);
    return real.pthread_create(thread, attr, run, made);
}

static int joined(struct thread *self, pthread_t thread, int error)
{
    if (self && !error) {
        note(self, JOIN, WAITED, hash((void *)(uintptr_t)thread), 0);
    }
    return error;
}

EXPORT int pthread_join(pthread_t thread, void **value)
{
    struct thread *self = current();
    if (self) {
        before(self);
    }
    return joined(self, thread, real.pthread_join(thread, value));
}

EXPORT int pthread_tryjoin_np(pthread_t thread, void **value)
{
    struct thread *self = current();
    return joined(self, thread, real.pthread_tryjoin_np(thread, value));
}

EXPORT int pthread_timedjoin_np(pthread_t thread, void **value, const struct timespec *until)
{
    struct thread *self = current();
    if (self) {
        before(self);
    }
    return joined(self, thread, real.pthread_timedjoin_np(thread, value, until));
}

/* What handlers of fork do in the child must not be written into its parent's memory. */
static pid_t fork_by(pid_t (*function)(void))
{
    struct thread *self = current(), *set_aside = self_;
    is_forking = 1;
    self_ = NO_THREAD;
    pid_t child = function();
    int error = errno;
    is_forking = 0;
    if (child == 0) {
        after_fork();
    } else {
        self_ = set_aside;
    }
    if (child > 0 && self) {
        note(self, CREATE_PROCESS, 0, (uint32_t)child, 0);
    }
    errno = error;
    return child;
}

EXPORT pid_t fork(void)
{
    current();
    return fork_by(real.fork);
}

EXPORT pid_t _Fork(void)
{
    current();
    return fork_by(real._Fork);
}

#define SPAWN(name) \
    EXPORT int name(pid_t *child, const char *path, const posix_spawn_file_actions_t *actions, \
                    const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) \
    { \
        struct thread *self = current(); \
        pid_t number = 0; \
        int error = real.name(&number, path, actions, attributes, arguments, environment); \
        if (!error && child) { \
            *child = number; \
        } \
        if (!error && self) { \
            note(self, CREATE_PROCESS, 0, (uint32_t)number, 0); \
        } \
        return error; \
    }

SPAWN(posix_spawn)
SPAWN(posix_spawnp)

static pid_t reaped(struct thread *self, pid_t child)
{
    if (self && child > 0) {
        note(self, JOIN_PROCESS, WAITED, (uint32_t)child, 0);
    }
    return child;
}

static struct thread *waiting(void)
{
    struct thread *self = current();
    if (self) {
        before(self);
    }
    return self;
}

EXPORT pid_t wait(int *status)
{
    struct thread *self = waiting();
    return reaped(self, real.wait(status));
}

EXPORT pid_t waitpid(pid_t child, int *status, int options)
{
    struct thread *self = waiting();
    return reaped(self, real.waitpid(child, status, options));
}

EXPORT pid_t wait3(int *status, int options, struct rusage *usage)
{
    struct thread *self = waiting();
    return reaped(self, real.wait3(status, options, usage));
}

EXPORT pid_t wait4(pid_t child, int *status, int options, struct rusage *usage)
{
    struct thread *self = waiting();
    return reaped(self, real.wait4(child, status, options, usage));
}

EXPORT int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    struct thread *self = waiting();
    int error = real.waitid(type, id, info, options);
    if (!error && info && !(options & WNOWAIT)) {
        reaped(self, info->si_pid);
    }
    return error;
}
