/* Locks: mutexes, locks for readers and writers, spin locks. A lock is tried first; only if that fails, it blocks. */
#include "real.h"

/* `error` is that of the call that took the lock, or could not. */
static int took(struct thread *self, unsigned kind, unsigned flags, void *lock, int error)
{
    if (LIKELY(!error || error == EOWNERDEAD)) {
        note(self, kind, flags, hash(lock), 0);
    } else if (error == ETIMEDOUT) {
        note(self, TRY_FAIL, flags, hash(lock), 0);
    }
    return error;
}

/* Takes a lock by `try`, else by `call`. */
#define TAKE(kind, lock, try, call) \
    struct thread *self = current(); \
    if (UNLIKELY(!self)) { \
        return call; \
    } \
    int error = try; \
    if (LIKELY(error != EBUSY)) { \
        return took(self, kind, 0, (void *)lock, error == EDEADLK || error == EAGAIN ? call : error); \
    } \
    before(self); \
    error = call; \
    return took(self, kind, CONTENDED | WAITED, (void *)lock, error)

EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    TAKE(LOCK, mutex, real.pthread_mutex_trylock(mutex), real.pthread_mutex_lock(mutex));
}

/* What the C library would refuse, it is asked first: a try does not look at it. */
#define TAKE_UNTIL(kind, lock, clock, until, try, call) TAKE(kind, lock, is_moment(clock, until) ? try : EBUSY, call)

EXPORT int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
    TAKE_UNTIL(LOCK, mutex, CLOCK_REALTIME, until, real.pthread_mutex_trylock(mutex),
               real.pthread_mutex_timedlock(mutex, until));
}

EXPORT int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until)
{
    TAKE_UNTIL(LOCK, mutex, clock, until, real.pthread_mutex_trylock(mutex),
               real.pthread_mutex_clocklock(mutex, clock, until));
}

EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    struct thread *self = current();
    int error = real.pthread_mutex_trylock(mutex);
    if (LIKELY(self != NULL)) {
        if (error == EBUSY) {
            note(self, TRY_FAIL, 0, hash(mutex), 0);
        } else if (!error || error == EOWNERDEAD) {
            note(self, LOCK, 0, hash(mutex), BY_TRYLOCK);
        }
    }
    return error;
}

EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    struct thread *self = current();
    if (LIKELY(self != NULL)) {
        note(self, UNLOCK, 0, hash(mutex), 0);
    }
    return real.pthread_mutex_unlock(mutex);
}

EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    TAKE(READ_LOCK, lock, real.pthread_rwlock_tryrdlock(lock), real.pthread_rwlock_rdlock(lock));
}

EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *until)
{
    TAKE_UNTIL(READ_LOCK, lock, CLOCK_REALTIME, until, real.pthread_rwlock_tryrdlock(lock),
               real.pthread_rwlock_timedrdlock(lock, until));
}

EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *until)
{
    TAKE_UNTIL(READ_LOCK, lock, clock, until, real.pthread_rwlock_tryrdlock(lock),
               real.pthread_rwlock_clockrdlock(lock, clock, until));
}

EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    TAKE(WRITE_LOCK, lock, real.pthread_rwlock_trywrlock(lock), real.pthread_rwlock_wrlock(lock));
}

EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *until)
{
    TAKE_UNTIL(WRITE_LOCK, lock, CLOCK_REALTIME, until, real.pthread_rwlock_trywrlock(lock),
               real.pthread_rwlock_timedwrlock(lock, until));
}

EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *until)
{
    TAKE_UNTIL(WRITE_LOCK, lock, clock, until, real.pthread_rwlock_trywrlock(lock),
               real.pthread_rwlock_clockwrlock(lock, clock, until));
}

static int tried(struct thread *self, unsigned kind, void *lock, int error)
{
    if (self && (!error || error == EBUSY)) {
        note(self, error ? TRY_FAIL : kind, 0, hash(lock), error ? 0 : BY_TRYLOCK);
    }
    return error;
}

EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock)
{
    struct thread *self = current();
    return tried(self, READ_LOCK, lock, real.pthread_rwlock_tryrdlock(lock));
}

EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *lock)
{
    struct thread *self = current();
    return tried(self, WRITE_LOCK, lock, real.pthread_rwlock_trywrlock(lock));
}

EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    struct thread *self = current();
    if (LIKELY(self != NULL)) {
        note(self, RW_UNLOCK, 0, hash(lock), 0);
    }
    return real.pthread_rwlock_unlock(lock);
}

EXPORT int pthread_spin_lock(pthread_spinlock_t *lock)
{
    struct thread *self = current();
    if (UNLIKELY(!self)) {
        return real.pthread_spin_lock(lock);
    }
    unsigned flags = 0;
    int error = real.pthread_spin_trylock(lock);
    if (error == EBUSY) {
        flags = CONTENDED;
        error = real.pthread_spin_lock(lock);
    }
    return took(self, SPIN_LOCK, flags, (void *)(uintptr_t)lock, error);
}

EXPORT int pthread_spin_trylock(pthread_spinlock_t *lock)
{
    struct thread *self = current();
    return tried(self, SPIN_LOCK, (void *)(uintptr_t)lock, real.pthread_spin_trylock(lock));
}

EXPORT int pthread_spin_unlock(pthread_spinlock_t *lock)
{
    struct thread *self = current();
    if (LIKELY(self != NULL)) {
        note(self, SPIN_UNLOCK, 0, hash((void *)(uintptr_t)lock), 0);
    }
    return real.pthread_spin_unlock(lock);
}
