/* The functions behind the wrappers. */
#ifndef AMPSCHED_REAL_H
#define AMPSCHED_REAL_H

#include <poll.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recorder.h"

struct __jmp_buf_tag;

/* Functions of the C library that are always there: result, name, parameters. */
#define LIBC_FUNCTIONS(X) \
    X(int, pthread_create, (pthread_t *, const pthread_attr_t *, void *(*)(void *), void *)) \
    X(void, pthread_exit, (void *)) \
    X(int, pthread_join, (pthread_t, void **)) \
    X(int, pthread_tryjoin_np, (pthread_t, void **)) \
    X(int, pthread_timedjoin_np, (pthread_t, void **, const struct timespec *)) \
    X(int, pthread_mutex_lock, (pthread_mutex_t *)) \
    X(int, pthread_mutex_trylock, (pthread_mutex_t *)) \
    X(int, pthread_mutex_timedlock, (pthread_mutex_t *, const struct timespec *)) \
    X(int, pthread_mutex_clocklock, (pthread_mutex_t *, clockid_t, const struct timespec *)) \
    X(int, pthread_mutex_unlock, (pthread_mutex_t *)) \
    X(int, pthread_rwlock_rdlock, (pthread_rwlock_t *)) \
    X(int, pthread_rwlock_wrlock, (pthread_rwlock_t *)) \
    X(int, pthread_rwlock_tryrdlock, (pthread_rwlock_t *)) \
    X(int, pthread_rwlock_trywrlock, (pthread_rwlock_t *)) \
    X(int, pthread_rwlock_timedrdlock, (pthread_rwlock_t *, const struct timespec *)) \
    X(int, pthread_rwlock_timedwrlock, (pthread_rwlock_t *, const struct timespec *)) \
    X(int, pthread_rwlock_clockrdlock, (pthread_rwlock_t *, clockid_t, const struct timespec *)) \
    X(int, pthread_rwlock_clockwrlock, (pthread_rwlock_t *, clockid_t, const struct timespec *)) \
    X(int, pthread_rwlock_unlock, (pthread_rwlock_t *)) \
    X(int, pthread_spin_lock, (pthread_spinlock_t *)) \
    X(int, pthread_spin_trylock, (pthread_spinlock_t *)) \
    X(int, pthread_spin_unlock, (pthread_spinlock_t *)) \
    X(int, pthread_cond_wait, (pthread_cond_t *, pthread_mutex_t *)) \
    X(int, pthread_cond_timedwait, (pthread_cond_t *, pthread_mutex_t *, const struct timespec *)) \
    X(int, pthread_cond_clockwait, (pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *)) \
    X(int, pthread_cond_signal, (pthread_cond_t *)) \
    X(int, pthread_cond_broadcast, (pthread_cond_t *)) \
    X(int, pthread_barrier_init, (pthread_barrier_t *, const pthread_barrierattr_t *, unsigned)) \
    X(int, pthread_barrier_wait, (pthread_barrier_t *)) \
    X(int, sem_wait, (sem_t *)) \
    X(int, sem_trywait, (sem_t *)) \
    X(int, sem_timedwait, (sem_t *, const struct timespec *)) \
    X(int, sem_clockwait, (sem_t *, clockid_t, const struct timespec *)) \
    X(int, sem_post, (sem_t *)) \
    X(int, nanosleep, (const struct timespec *, struct timespec *)) \
    X(int, clock_nanosleep, (clockid_t, int, const struct timespec *, struct timespec *)) \
    X(int, usleep, (useconds_t)) \
    X(unsigned, sleep, (unsigned)) \
    X(int, sched_yield, (void)) \
    X(long, syscall, (long, ...)) \
    X(int, prctl, (int, ...)) \
    X(void, longjmp, (struct __jmp_buf_tag *, int)) \
    X(void, _longjmp, (struct __jmp_buf_tag *, int)) \
    X(void, siglongjmp, (struct __jmp_buf_tag *, int)) \
    X(void, __longjmp_chk, (struct __jmp_buf_tag *, int)) \
    X(pid_t, fork, (void)) \
    X(pid_t, _Fork, (void)) \
    X(int, posix_spawn, \
      (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[], \
       char *const[])) \
    X(int, posix_spawnp, \
      (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[], \
       char *const[])) \
    X(void, _exit, (int)) \
    X(pid_t, wait, (int *)) \
    X(pid_t, waitpid, (pid_t, int *, int)) \
    X(pid_t, wait3, (int *, int, struct rusage *)) \
    X(pid_t, wait4, (pid_t, int *, int, struct rusage *)) \
    X(int, waitid, (idtype_t, id_t, siginfo_t *, int)) \
    X(ssize_t, read, (int, void *, size_t)) \
    X(ssize_t, __read_chk, (int, void *, size_t, size_t)) \
    X(ssize_t, pread64, (int, void *, size_t, off64_t)) \
    X(ssize_t, pread, (int, void *, size_t, off_t)) \
    X(ssize_t, readv, (int, const struct iovec *, int)) \
    X(ssize_t, recv, (int, void *, size_t, int)) \
    X(ssize_t, __recv_chk, (int, void *, size_t, size_t, int)) \
    X(ssize_t, recvfrom, (int, void *, size_t, int, struct sockaddr *, socklen_t *)) \
    X(ssize_t, recvmsg, (int, struct msghdr *, int)) \
    X(ssize_t, write, (int, const void *, size_t)) \
    X(ssize_t, pwrite64, (int, const void *, size_t, off64_t)) \
    X(ssize_t, pwrite, (int, const void *, size_t, off_t)) \
    X(ssize_t, writev, (int, const struct iovec *, int)) \
    X(ssize_t, send, (int, const void *, size_t, int)) \
    X(ssize_t, sendto, (int, const void *, size_t, int, const struct sockaddr *, socklen_t)) \
    X(ssize_t, sendmsg, (int, const struct msghdr *, int)) \
    X(ssize_t, sendfile64, (int, int, off64_t *, size_t)) \
    X(ssize_t, sendfile, (int, int, off_t *, size_t)) \
    X(ssize_t, splice, (int, off64_t *, int, off64_t *, size_t, unsigned)) \
    X(int, socketpair, (int, int, int, int[2])) \
    X(int, close, (int)) \
    X(int, dup2, (int, int)) \
    X(int, dup3, (int, int, int)) \
    X(void, closefrom, (int)) \
    X(int, close_range, (unsigned, unsigned, int)) \
    X(int, eventfd, (unsigned, int)) \
    X(int, timerfd_create, (clockid_t, int)) \
    X(int, timerfd_settime, (int, int, const struct itimerspec *, struct itimerspec *)) \
    X(int, signalfd, (int, const sigset_t *, int)) \
    X(int, eventfd_read, (int, eventfd_t *)) \
    X(int, eventfd_write, (int, eventfd_t)) \
    X(int, poll, (struct pollfd *, nfds_t, int)) \
    X(int, __poll_chk, (struct pollfd *, nfds_t, int, size_t)) \
    X(int, ppoll, (struct pollfd *, nfds_t, const struct timespec *, const sigset_t *)) \
    X(int, select, (int, fd_set *, fd_set *, fd_set *, struct timeval *)) \
    X(int, pselect, (int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *)) \
    X(int, epoll_ctl, (int, int, int, struct epoll_event *)) \
    X(int, epoll_wait, (int, struct epoll_event *, int, int)) \
    X(int, epoll_pwait, (int, struct epoll_event *, int, int, const sigset_t *)) \
    X(int, accept, (int, struct sockaddr *, socklen_t *)) \
    X(int, accept4, (int, struct sockaddr *, socklen_t *, int)) \
    X(int, connect, (int, const struct sockaddr *, socklen_t)) \
    X(int, fsync, (int)) \
    X(int, fdatasync, (int)) \
    X(int, kill, (pid_t, int)) \
    X(int, sigqueue, (pid_t, int, const union sigval)) \
    X(int, sigwait, (const sigset_t *, int *)) \
    X(int, sigtimedwait, (const sigset_t *, siginfo_t *, const struct timespec *)) \
    X(int, sigwaitinfo, (const sigset_t *, siginfo_t *)) \
    X(int, sigsuspend, (const sigset_t *)) \
    X(int, pause, (void)) \
    X(int, system, (const char *)) \
    X(size_t, fread, (void *, size_t, size_t, FILE *)) \
    X(size_t, fread_unlocked, (void *, size_t, size_t, FILE *)) \
    X(size_t, __fread_chk, (void *, size_t, size_t, size_t, FILE *)) \
    X(size_t, __fread_unlocked_chk, (void *, size_t, size_t, size_t, FILE *)) \
    X(char *, fgets, (char *, int, FILE *)) \
    X(char *, fgets_unlocked, (char *, int, FILE *)) \
    X(char *, __fgets_chk, (char *, size_t, int, FILE *)) \
    X(char *, __fgets_unlocked_chk, (char *, size_t, int, FILE *)) \
    X(ssize_t, getline, (char **, size_t *, FILE *)) \
    X(ssize_t, getdelim, (char **, size_t *, int, FILE *)) \
    X(ssize_t, __getdelim, (char **, size_t *, int, FILE *)) \
    X(int, getc, (FILE *)) \
    X(int, fgetc, (FILE *)) \
    X(int, getc_unlocked, (FILE *)) \
    X(int, fgetc_unlocked, (FILE *)) \
    X(int, getchar, (void)) \
    X(int, getchar_unlocked, (void)) \
    X(int, __uflow, (FILE *)) \
    X(int, __underflow, (FILE *)) \
    X(size_t, fwrite, (const void *, size_t, size_t, FILE *)) \
    X(size_t, fwrite_unlocked, (const void *, size_t, size_t, FILE *)) \
    X(int, fputs, (const char *, FILE *)) \
    X(int, fputs_unlocked, (const char *, FILE *)) \
    X(int, puts, (const char *)) \
    X(int, putc, (int, FILE *)) \
    X(int, fputc, (int, FILE *)) \
    X(int, putc_unlocked, (int, FILE *)) \
    X(int, fputc_unlocked, (int, FILE *)) \
    X(int, putchar, (int)) \
    X(int, putchar_unlocked, (int)) \
    X(int, __overflow, (FILE *, int)) \
    X(int, vfprintf, (FILE *, const char *, va_list)) \
    X(int, __vfprintf_chk, (FILE *, int, const char *, va_list)) \
    X(int, fflush, (FILE *)) \
    X(int, fflush_unlocked, (FILE *)) \
    X(int, fclose, (FILE *)) \
    X(int, pclose, (FILE *)) \
    X(FILE *, freopen, (const char *, const char *, FILE *)) \
    X(FILE *, freopen64, (const char *, const char *, FILE *))

/* The real functions. */
struct real {
#define FIELD(result, name, parameters) result(*name) parameters;
    LIBC_FUNCTIONS(FIELD)
#undef FIELD
};

extern struct real real;

#endif
