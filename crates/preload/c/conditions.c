/* Conditions, barriers and semaphores. */
#include "real.h"

#define TIME_IS_OVER 1

/* The mutex is released and taken inside the call. */
#define WAIT(condition, mutex, call) \
    struct thread *self = current(); \
    if (UNLIKELY(!self)) { \
        return call; \
    } \
    note(self, COND_WAIT, 0, hash(condition), hash(mutex)); \
    int error = call; \
    after(self, COND_WAKE, 0, condition, error == ETIMEDOUT ? TIME_IS_OVER : 0); \
    return error

EXPORT int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    WAIT(condition, mutex, real.pthread_cond_wait(condition, mutex));
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
    WAIT(condition, mutex, real.pthread_cond_timedwait(condition, mutex, until));
}

EXPORT int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                                  const struct timespec *until)
{
    WAIT(condition, mutex, real.pthread_cond_clockwait(condition, mutex, clock, until));
}

EXPORT int pthread_cond_signal(pthread_cond_t *condition)
{
    struct thread *self = current();
    if (LIKELY(self != NULL)) {
        note(self, SIGNAL, 0, hash(condition), 0);
    }
    return real.pthread_cond_signal(condition);
}

EXPORT int pthread_cond_broadcast(pthread_cond_t *condition)
{
    struct thread *self = current();
    if (LIKELY(self != NULL)) {
        note(self, BROADCAST, 0, hash(condition), 0);
    }
    return real.pthread_cond_broadcast(condition);
}

EXPORT int pthread_barrier_init(pthread_barrier_t *barrier, const pthread_barrierattr_t *attr, unsigned parties)
{
    struct thread *self = current();
    int error = real.pthread_barrier_init(barrier, attr, parties);
    if (self && !error) {
        note(self, BARRIER_INIT, 0, hash(barrier), parties);
    }
    return error;
}

EXPORT int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    struct thread *self = current();
    if (UNLIKELY(!self)) {
        return real.pthread_barrier_wait(barrier);
    }
    before(self);
    int result = real.pthread_barrier_wait(barrier);
    after(self, BARRIER, 0, barrier, result == PTHREAD_BARRIER_SERIAL_THREAD);
    return result;
}

/* Takes from a semaphore by a try, else by `call`, both of which set errno. A wait that ends without is a sleep. What
 * the C library would refuse, it is asked first; `begin` is what it does before its own try. */
#define TAKE(semaphore, is_possible, begin, call) \
    struct thread *self = current(); \
    if (UNLIKELY(!self)) { \
        return call; \
    } \
    int error = errno, result = -1; \
    if (LIKELY(is_possible)) { \
        begin; \
        result = real.sem_trywait(semaphore); \
        if (LIKELY(!result)) { \
            note(self, SEM_WAIT, 0, hash(semaphore), 0); \
            return result; \
        } \
        errno = error; \
    } \
    before(self); \
    result = call; \
    after(self, result ? SLEEP : SEM_WAIT, CONTENDED, semaphore, 0); \
    return result

EXPORT int sem_wait(sem_t *semaphore)
{
    TAKE(semaphore, 1, pthread_testcancel(), real.sem_wait(semaphore));
}

EXPORT int sem_timedwait(sem_t *semaphore, const struct timespec *until)
{
    TAKE(semaphore, is_moment(CLOCK_REALTIME, until), pthread_testcancel(), real.sem_timedwait(semaphore, until));
}

EXPORT int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until)
{
    TAKE(semaphore, is_moment(clock, until), (void)0, real.sem_clockwait(semaphore, clock, until));
}

EXPORT int sem_trywait(sem_t *semaphore)
{
    struct thread *self = current();
    int result = real.sem_trywait(semaphore);
    if (self) {
        note(self, result ? TRY_FAIL : SEM_WAIT, 0, hash(semaphore), 0);
    }
    return result;
}

EXPORT int sem_post(sem_t *semaphore)
{
    struct thread *self = current();
    if (LIKELY(self != NULL)) {
        note(self, SEM_POST, 0, hash(semaphore), 0);
    }
    return real.sem_post(semaphore);
}
