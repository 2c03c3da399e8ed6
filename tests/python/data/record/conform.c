/* Each call at each moment, in a process of its own: what POSIX and the C library say of it, a line each. The same
 * program without and with the recorder prints the same. `conform`: all; `conform NAME`: that moment only. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT_ERRNO 77
#define LITTLE_LEFT 3072

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER, checked, recursive;
static pthread_rwlock_t readers = PTHREAD_RWLOCK_INITIALIZER, written = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_spinlock_t spin;
static sem_t empty, full, most;
static int ends[2], word;
static const struct timespec past = {1, 0}, later = {4000000000, 0}, bad = {4000000000, 1000000000}, none = {0, 0};
static const struct timespec bad_span = {0, 1000000000};
static char letter;

static int wait_once(int (*wait)(void)) {
    pthread_mutex_lock(&mutex);
    int error = wait();
    pthread_mutex_unlock(&mutex);
    return error;
}
static int timed_wait(void) { return pthread_cond_timedwait(&condition, &mutex, &past); }
static int clock_wait(void) { return pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &past); }
static int wrong_wait(void) { return pthread_cond_clockwait(&condition, &mutex, CLOCK_BOOTTIME, &later); }

/* Without the processor's counters of instructions, which the recorder opens where that is permitted. */
static int entries(const char *path) {
    int count = 0, error = errno;
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char target[64] = "";
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
        count += length < 0 || strcmp(target, "anon_inode:[perf_event]") != 0;
    }
    if (folder) {
        closedir(folder);
    }
    errno = error;
    return count;
}
static int keys(void) {
    pthread_key_t key;
    int count = 0;
    while (!pthread_key_create(&key, NULL)) {
        count++;
    }
    return count;
}
static void *nothing(void *argument) { return argument; }
static int create_and_join(void) {
    pthread_t thread;
    void *value = NULL;
    int error = pthread_create(&thread, NULL, nothing, &word);
    return error ? error : pthread_join(thread, &value) || value != &word;
}
static int often(void) { /* more events than memory that a recorder takes at a time */
    int failed = 0;
    for (int round = 0; round < 5000; round++) {
        failed |= pthread_mutex_lock(&recursive) || pthread_mutex_unlock(&recursive);
        failed |= sem_post(&empty) || pthread_cond_signal(&condition);
    }
    return failed;
}
static int fork_and_wait(void) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        _exit(5);
    }
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}
static int spawn_none(void) {
    pid_t child = 12;
    char *arguments[] = {"none", NULL};
    return posix_spawn(&child, "/nowhere/none", NULL, NULL, arguments, NULL);
}
static void *own(void *robust) {
    pthread_mutex_lock(robust);
    return NULL;
}
static int orphan(void) {
    pthread_mutexattr_t attributes;
    pthread_mutex_t robust;
    pthread_t thread;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &attributes);
    pthread_create(&thread, NULL, own, &robust);
    pthread_join(thread, NULL);
    return pthread_mutex_lock(&robust);
}

#include "conform_files.h"

#define CALLS(X) \
    X(often()) \
    X(pthread_mutex_lock(&mutex) || pthread_mutex_unlock(&mutex)) \
    X(pthread_mutex_trylock(&mutex) || pthread_mutex_unlock(&mutex)) \
    X(pthread_mutex_trylock(&held)) \
    X(pthread_mutex_lock(&checked)) \
    X(pthread_mutex_unlock(&mutex) && 0) \
    X(pthread_mutex_lock(&recursive) || pthread_mutex_lock(&recursive) || pthread_mutex_unlock(&recursive)) \
    X(pthread_mutex_timedlock(&mutex, &later)) \
    X(pthread_mutex_timedlock(&mutex, &bad)) \
    X(pthread_mutex_timedlock(&mutex, NULL)) \
    X(pthread_mutex_timedlock(&held, &past)) \
    X(pthread_mutex_timedlock(&held, &bad)) \
    X(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &later)) \
    X(pthread_mutex_clocklock(&mutex, CLOCK_PROCESS_CPUTIME_ID, &later)) \
    X(pthread_mutex_clocklock(&held, CLOCK_MONOTONIC, &past)) \
    X(pthread_mutex_clocklock(&held, CLOCK_BOOTTIME, &past)) \
    X(pthread_mutex_clocklock(&checked, 99, &bad)) \
    X(pthread_rwlock_rdlock(&readers) || pthread_rwlock_unlock(&readers)) \
    X(pthread_rwlock_wrlock(&readers) || pthread_rwlock_unlock(&readers)) \
    X(pthread_rwlock_tryrdlock(&written)) \
    X(pthread_rwlock_trywrlock(&written)) \
    X(pthread_rwlock_timedrdlock(&readers, &later)) \
    X(pthread_rwlock_timedrdlock(&readers, &bad)) \
    X(pthread_rwlock_timedwrlock(&readers, &bad)) \
    X(pthread_rwlock_clockrdlock(&readers, CLOCK_MONOTONIC, &later)) \
    X(pthread_rwlock_clockrdlock(&readers, CLOCK_BOOTTIME, &later)) \
    X(pthread_rwlock_clockwrlock(&readers, CLOCK_BOOTTIME, &later)) \
    X(pthread_rwlock_clockwrlock(&readers, CLOCK_REALTIME, &bad)) \
    X(pthread_spin_lock(&spin) || pthread_spin_trylock(&spin)) \
    X(pthread_cond_signal(&condition)) \
    X(pthread_cond_broadcast(&condition)) \
    X(wait_once(timed_wait)) \
    X(wait_once(clock_wait)) \
    X(wait_once(wrong_wait)) \
    X(pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) \
    X(pthread_barrier_init(&barrier, NULL, 0)) \
    X(sem_wait(&full)) \
    X(sem_trywait(&full)) \
    X(sem_trywait(&empty)) \
    X(sem_timedwait(&full, &later)) \
    X(sem_timedwait(&full, &bad)) \
    X(sem_timedwait(&empty, &past)) \
    X(sem_clockwait(&full, CLOCK_MONOTONIC, &later)) \
    X(sem_clockwait(&full, CLOCK_BOOTTIME, &later)) \
    X(sem_clockwait(&empty, CLOCK_MONOTONIC, &bad)) \
    X(sem_post(&empty)) \
    X(sem_post(&most)) \
    X(nanosleep(&none, NULL)) \
    X(nanosleep(&bad_span, NULL)) \
    X(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &past, NULL)) \
    X(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &none, NULL)) \
    X(usleep(0)) \
    X((int)sleep(0)) \
    X(sched_yield()) \
    X((int)syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0)) \
    X((int)syscall(SYS_futex, &word, FUTEX_WAIT, 1, NULL, NULL, 0)) \
    X((int)write(ends[1], "x", 1)) \
    X((int)read(ends[0], &letter, 1)) \
    X((int)read(-1, &letter, 1)) \
    X(poll(NULL, 0, 0)) \
    FILE_CALLS(X) \
    X(pthread_tryjoin_np(pthread_self(), NULL)) \
    X(create_and_join()) \
    X(fork_and_wait()) \
    X(spawn_none()) \
    X((int)waitpid(-1, NULL, 0)) \
    X(orphan()) \
    X(keys()) \
    X(entries("/proc/self/task")) \
    X(entries("/proc/self/fd")) \
    X(unshare(CLONE_NEWUSER) && errno != EPERM && errno != ENOSPC)

static int chosen;
static int done(void) {
    int number = 0;
    errno = KEPT_ERRNO;
#define CASE(what) \
    if (number++ == chosen) { \
        return what; \
    }
    CALLS(CASE)
    return -2;
}
#define NAME(what) #what,
static const char *const names[] = {CALLS(NAME)};

static char line[256];
static void say(const char *text, int result) {
    int error = errno;
    size_t used = strlen(line);
    snprintf(line + used, sizeof line - used, " %s %d/%d", text, result, error == KEPT_ERRNO ? 0 : error);
}

/* Results are kept and printed at the end: some moments allow little. */
static volatile int result, error, is_done;
static void now(void) {
    result = done();
    error = errno;
    is_done = 1;
}
static void *in_thread(void *unused) {
    now();
    return unused;
}
static void *cancelled(void *unused) {
    pthread_cancel(pthread_self());
    now();
    return unused;
}
static void *cancelled_but_not_now(void *unused) {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cancel(pthread_self());
    now();
    return unused;
}
static void clean(void *unused) {
    (void)unused;
    now();
}
static void *cleaning(void *unused) {
    pthread_cleanup_push(clean, NULL);
    pthread_exit(unused);
    pthread_cleanup_pop(0);
    return unused;
}
static pthread_key_t key;
static void *with_data(void *unused) {
    pthread_setspecific(key, &key);
    return unused;
}

/* The least stack, of which little is left. */
static __attribute__((noinline)) void deeper(char *end) {
    volatile char filled[256];
    memset((char *)filled, 1, sizeof filled);
    if ((char *)filled - end > LITTLE_LEFT) {
        deeper(end);
    } else {
        now();
    }
    filled[0]++;
}
static void *in_little_stack(void *unused) {
    pthread_attr_t attributes;
    void *end;
    size_t bytes;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &end, &bytes);
    pthread_attr_destroy(&attributes);
    deeper(end);
    return unused;
}

static void on_signal(int number) {
    (void)number;
    now();
}
static sigjmp_buf start;
static volatile int jumps;
static void jump(int number) {
    (void)number;
    jumps++;
    siglongjmp(start, 1);
}

static void thread(void *(*function)(void *), size_t stack_bytes) {
    pthread_t made;
    pthread_attr_t attributes;
    void *value;
    pthread_attr_init(&attributes);
    if (stack_bytes) {
        pthread_attr_setstacksize(&attributes, stack_bytes);
    }
    int failed = pthread_create(&made, &attributes, function, NULL);
    if (!failed) {
        failed = pthread_join(made, &value);
        say(value == PTHREAD_CANCELED ? "cancelled" : "returned", failed);
    }
}

static void at_plain(void) { now(); }
static void at_thread(void) { thread(in_thread, 0); }
static void at_cancelled(void) { thread(cancelled, 0); }
static void at_uncancelled(void) { thread(cancelled_but_not_now, 0); }
static void at_early(void) { /* cancelled before it begins: its first call forbids that */
    pthread_t made;
    void *value;
    int failed = pthread_create(&made, NULL, cancelled_but_not_now, NULL);
    if (!failed) {
        pthread_cancel(made);
        failed = pthread_join(made, &value);
        say("returned", failed);
    }
}
static void at_cleanup(void) { thread(cleaning, 0); }
static void at_destructor(void) {
    pthread_key_create(&key, clean);
    thread(with_data, 0);
}
static void at_stack(void) { thread(in_little_stack, PTHREAD_STACK_MIN); }
static void at_fork(void) {
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        now();
        _exit(is_done ? result + 3 : 99);
    }
    waitpid(child, &status, 0);
    result = status;
    is_done = 1;
}
static void at_handler(void) {
    static char memory[1 << 16] __attribute__((aligned(4096)));
    memset(memory, 0x5a, sizeof memory);
    stack_t stack = {.ss_sp = memory + (1 << 15), .ss_size = 8192};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    int overwritten = 0;
    for (int at = 0; at < 1 << 15; at++) {
        overwritten += memory[at] != 0x5a;
    }
    errno = KEPT_ERRNO;
    say("overwritten", overwritten);
}
static void at_jumps(void) {
    static sem_t posted;
    struct sigaction action = {.sa_handler = jump, .sa_flags = SA_NODEFER};
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    sem_init(&posted, 0, 0);
    sigaction(SIGALRM, &action, NULL);
    if (!sigsetjmp(start, 1)) {
        setitimer(ITIMER_REAL, &often, NULL);
    }
    while (jumps < 20) {
        sem_post(&posted);
        sem_trywait(&posted);
    }
    signal(SIGALRM, SIG_IGN);
    setitimer(ITIMER_REAL, &never, NULL);
    now();
}
static void leave(int number) {
    (void)number;
    _exit(42);
}
static void at_exit_of_handler(void) {
    static sem_t posted;
    sem_init(&posted, 0, 0);
    now();
    if (is_done && chosen % 8 == 0) { /* wherever it interrupts the calls */
        signal(SIGALRM, leave);
        struct itimerval soon = {{0, 0}, {0, 300}};
        setitimer(ITIMER_REAL, &soon, NULL);
        while (1) {
            sem_post(&posted);
            sem_trywait(&posted);
        }
    }
}

/* What a recorder might like to do, and these calls do not: whoever does it is killed. */
#define DENY(number) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
static void at_sandbox(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        DENY(SYS_clock_gettime), DENY(SYS_getpid), DENY(SYS_getppid), DENY(SYS_prctl), DENY(SYS_fallocate),
        DENY(SYS_ftruncate), DENY(SYS_perf_event_open), DENY(SYS_ioctl), DENY(SYS_fcntl),
        DENY(SYS_utimensat), DENY(SYS_fstat), DENY(SYS_getpeername),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (chosen % 2) {
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    } else {
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
    }
    now();
}

#define MOMENTS(X) \
    X(plain) X(thread) X(cancelled) X(uncancelled) X(early) X(cleanup) X(destructor) X(stack) X(fork) X(handler) \
        X(jumps) X(exit_of_handler) X(sandbox)
struct moment {
    const char *name;
    void (*function)(void);
};
#define MOMENT(name) {#name, at_##name},
static const struct moment moments[] = {MOMENTS(MOMENT)};

static void prepare(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&checked, &attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &attributes);
    pthread_barrier_init(&barrier, NULL, 1);
    pthread_spin_init(&spin, 0);
    sem_init(&empty, 0, 0);
    sem_init(&full, 0, 1);
    sem_init(&most, 0, SEM_VALUE_MAX);
    pthread_mutex_lock(&held);
    pthread_mutex_lock(&checked);
    pthread_rwlock_wrlock(&written);
    if (pipe(ends) || write(ends[1], "yy", 2) != 2) {
        exit(3);
    }
}

/* Not every call can be made at every moment: one would wait for ever, as what is held is another thread's; or whether
 * a thread is cancelled depends on who is faster. */
static int is_possible(const char *moment) {
    int is_own = !strcmp(moment, "plain") || !strcmp(moment, "handler") || !strcmp(moment, "jumps") ||
                 !strcmp(moment, "exit_of_handler") || !strcmp(moment, "sandbox");
    int joins = strstr(names[chosen], "create_and_join") || strstr(names[chosen], "orphan");
    return (is_own || !strstr(names[chosen], "(&checked)")) && !(joins && !strcmp(moment, "cancelled"));
}

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t moment = 0; moment < sizeof moments / sizeof *moments; moment++) {
        if (count > 1 && strcmp(arguments[1], moments[moment].name) != 0) {
            continue;
        }
        for (chosen = 0; chosen < (int)(sizeof names / sizeof *names); chosen++) {
            int status;
            pid_t child = fork();
            if (child == 0) {
                alarm(20);
                prepare();
                if (is_possible(moments[moment].name)) {
                    moments[moment].function();
                }
                printf("%s %s: %d %d/%d%s\n", moments[moment].name, names[chosen], is_done, result,
                       error == KEPT_ERRNO ? 0 : error, line);
                exit(0);
            }
            waitpid(child, &status, 0);
            if (status) {
                printf("%s %s: status %d\n", moments[moment].name, names[chosen], status);
            }
        }
    }
    return 0;
}
