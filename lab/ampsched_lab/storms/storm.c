/* A storm: processes and threads that come and go, execute programs, change affinities, priorities and classes, inherit
 * priorities, are stopped and killed; which of them, how many, and what each does is drawn.
 *
 * storm SEED ROUND MS [thin]: for MS of time; if thin, workers rest for some 50 ms after each step. A line of
 * JSON says how often each thing was done. The exit code is 0 if all has ended as it should and every result is right.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "storm.h"

enum { THREADS = 4, LATE_S = 60 };

static const char *const NAMES[EVENTS] = {"forks",       "vforks",   "threads", "execs", "thread_execs", "pipe_turns",
                                          "futex_turns", "pi_locks", "yields",  "sums",  "sleeps",       "affinities",
                                          "nices",       "classes",  "stops",   "kills"};

struct shared *shared;

uint64_t seed;
bool is_thin;
int cpus;
static const char *name_of_worker[WORKERS_MAX];
static pid_t pids[WORKERS_MAX];
static int workers;

_Noreturn void fail(const char *what)
{
    fprintf(stderr, "storm: %s: %s\n", what, strerror(errno));
    _exit(1);
}

void check(bool holds, const char *what)
{
    if (!holds)
        fail(what);
}

int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

void rest(int64_t us)
{
    struct timespec time = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&time, NULL);
}

/* SplitMix64. */
uint64_t draw(uint64_t below)
{
    uint64_t z = seed += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % below;
}

void count(enum event event)
{
    atomic_fetch_add(&shared->done[event], 1);
}

bool goes_on(void)
{
    if (now_ns() >= shared->until_ns)
        return false;
    if (is_thin)
        rest(REST_US + (int64_t)draw(REST_US_MAX));
    return true;
}

pid_t child(void)
{
    pid_t pid = fork();
    check(pid >= 0, "fork");
    return pid;
}

static void expect(pid_t pid, int code)
{
    int status;
    check(waitpid(pid, &status, 0) == pid, "waitpid");
    errno = 0;
    check(WIFEXITED(status) && WEXITSTATUS(status) == code, "a child has ended otherwise");
}

void sum_up(unsigned long n)
{
    volatile unsigned long sum = 0;
    for (unsigned long i = 1; i <= n; i++)
        sum += i * i;
    errno = 0;
    check(sum == n * (n + 1) * (2 * n + 1) / 6, "a sum is wrong");
}

/* Workers ------------------------------------------------------------------------------------------------------- */

static void compute(int self)
{
    (void)self;
    for (; goes_on(); count(SUMS))
        sum_up(2000);
}

static void yield(int self)
{
    (void)self;
    for (; goes_on(); count(YIELDS))
        sched_yield();
}

static void sleep_and_work(int self)
{
    (void)self;
    for (; goes_on(); count(SLEEPS)) {
        sum_up(draw(500) + 1);
        rest((int64_t)draw(1000));
    }
}

static void come_and_go(int self)
{
    (void)self;
    for (; goes_on(); count(FORKS)) {
        int code = (int)draw(100);
        pid_t pid = child();
        if (pid == 0)
            _exit(code);
        expect(pid, code);
    }
}

static void come_and_go_by_vfork(int self)
{
    (void)self;
    for (; goes_on(); count(VFORKS)) {
        pid_t pid = vfork();
        check(pid >= 0, "vfork");
        if (pid == 0)
            _exit(7);
        expect(pid, 7);
    }
}

static void execute_answer(int code)
{
    char text[16];
    snprintf(text, sizeof text, "%d", code);
    execl("/proc/self/exe", "storm", "answer", text, (char *)NULL);
    fail("exec");
}

static void execute(int self)
{
    (void)self;
    for (; goes_on(); count(EXECS)) {
        int code = (int)draw(100);
        pid_t pid = child();
        if (pid == 0)
            execute_answer(code);
        expect(pid, code);
    }
}

static void *execute_in_thread(void *code)
{
    execute_answer((int)(intptr_t)code);
    return NULL;
}

/* The thread that executes is not its process's first one, and takes the first one's number over. */
static void execute_from_threads(int self)
{
    (void)self;
    for (; goes_on(); count(THREAD_EXECS)) {
        int code = (int)draw(100);
        pid_t pid = child();
        if (pid == 0) {
            pthread_t thread;
            check(pthread_create(&thread, NULL, execute_in_thread, (void *)(intptr_t)code) == 0, "pthread_create");
            pthread_join(thread, NULL);
            fail("nothing was executed");
        }
        expect(pid, code);
    }
}

static void *count_one(void *sum)
{
    atomic_fetch_add((_Atomic int *)sum, 1);
    return NULL;
}

static void come_and_go_as_threads(int self)
{
    (void)self;
    for (; goes_on(); count(THREADS_STARTED)) {
        pthread_t threads[THREADS];
        _Atomic int sum = 0;
        for (int i = 0; i < THREADS; i++)
            check(pthread_create(&threads[i], NULL, count_one, &sum) == 0, "pthread_create");
        for (int i = 0; i < THREADS; i++)
            check(pthread_join(threads[i], NULL) == 0, "pthread_join");
        errno = 0;
        check(atomic_load(&sum) == THREADS, "a thread did not run");
    }
}

static void take_turns_by_pipes(int self)
{
    (void)self;
    int there[2], back[2], value = 0, answer;
    check(pipe(there) == 0 && pipe(back) == 0, "pipe");
    pid_t pid = child();
    if (pid == 0) {
        close(there[1]);
        while (read(there[0], &value, sizeof value) == sizeof value) {
            value++;
            check(write(back[1], &value, sizeof value) == sizeof value, "write");
        }
        _exit(0);
    }
    for (; goes_on(); count(PIPE_TURNS)) {
        check(write(there[1], &value, sizeof value) == sizeof value, "write");
        check(read(back[0], &answer, sizeof answer) == sizeof answer && answer == value + 1, "an answer is wrong");
        value = answer;
    }
    close(there[1]);
    expect(pid, 0);
}

static void futex(_Atomic unsigned *word, int operation, unsigned value)
{
    long result = syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
    check(result >= 0 || errno == EAGAIN || errno == EINTR, "futex");
}

/* Even turns are the parent's, odd ones the child's; UINT_MAX ends it. */
static void take_turns_by_futex(int self)
{
    _Atomic unsigned *turn = &shared->turn[self];
    pid_t pid = child();
    unsigned mine = pid == 0;
    for (;;) {
        unsigned now = atomic_load(turn);
        if (now == UINT_MAX)
            break;
        if (now % 2 != mine) {
            futex(turn, FUTEX_WAIT, now);
            continue;
        }
        bool is_last = mine == 0 && !goes_on();
        if (mine == 0)
            count(FUTEX_TURNS);
        atomic_store(turn, is_last ? UINT_MAX : now + 1);
        futex(turn, FUTEX_WAKE, 1);
    }
    if (pid == 0)
        _exit(0);
    expect(pid, 0);
}

/* Priority inheritance: a nice thread, two ordinary ones and a real-time one share a mutex. */
static pthread_mutex_t inheriting;
static int64_t guarded; /* not atomic: the mutex guards it */

static void *lock_again_and_again(void *number)
{
    intptr_t index = (intptr_t)number;
    struct sched_param param = {.sched_priority = 5};
    seed += (uint64_t)index << 32;
    if (index == 0)
        check(setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 15) == 0, "setpriority");
    if (index == THREADS - 1)
        check((errno = pthread_setschedparam(pthread_self(), SCHED_FIFO, &param)) == 0, "pthread_setschedparam");
    int64_t own = 0;
    for (; now_ns() < shared->until_ns; own++) {
        check((errno = pthread_mutex_lock(&inheriting)) == 0, "pthread_mutex_lock");
        int64_t before = guarded;
        sum_up(200);
        guarded = before + 1;
        check((errno = pthread_mutex_unlock(&inheriting)) == 0, "pthread_mutex_unlock");
        count(PI_LOCKS);
        if (index == THREADS - 1 || is_thin)
            rest(is_thin ? REST_US_MAX : 300);
    }
    return (void *)(intptr_t)own;
}

static void inherit(int self)
{
    (void)self;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    check(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT) == 0, "pthread_mutexattr_setprotocol");
    check(pthread_mutex_init(&inheriting, &attributes) == 0, "pthread_mutex_init");
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        check(pthread_create(&threads[i], NULL, lock_again_and_again, (void *)i) == 0, "pthread_create");
    int64_t sum = 0;
    for (int i = 0; i < THREADS; i++) {
        void *own;
        check(pthread_join(threads[i], &own) == 0, "pthread_join");
        sum += (intptr_t)own;
    }
    errno = 0;
    check(sum == guarded, "two threads had a mutex at once");
}

/* The storm ------------------------------------------------------------------------------------------------------ */

static const struct part {
    const char *name;
    void (*work)(int self);
    int most;
} PARTS[] = {
    {"torment", torment, 4},
    {"compute", compute, 4},
    {"come and go", come_and_go, 4},
    {"come and go by vfork", come_and_go_by_vfork, 2},
    {"come and go as threads", come_and_go_as_threads, 3},
    {"execute", execute, 3},
    {"execute from threads", execute_from_threads, 2},
    {"turns by pipes", take_turns_by_pipes, 4},
    {"turns by futex", take_turns_by_futex, 4},
    {"inherit", inherit, 2},
    {"yield", yield, 2},
    {"sleep and work", sleep_and_work, 8},
};

static void *wait_for_ever(void *unused)
{
    for (;;)
        pause();
    return unused;
}

/* So many threads that only wait: a session is to know them all. */
static _Noreturn void park(int count)
{
    pthread_t thread;
    for (int i = 1; i < count; i++)
        check(pthread_create(&thread, NULL, wait_for_ever, NULL) == 0, "pthread_create");
    wait_for_ever(NULL);
    _exit(1);
}

static void begin(const struct part *part)
{
    int self = workers++;
    uint64_t own = draw(UINT64_MAX);
    name_of_worker[self] = part->name;
    pids[self] = child();
    if (pids[self] > 0)
        return;
    alarm(0);
    seed = own;
    part->work(self);
    _exit(0);
}

static void on_alarm(int signal)
{
    (void)signal;
    for (int i = 0; i < workers; i++)
        if (pids[i] > 0)
            fprintf(stderr, "storm: \"%s\" (%d) has not ended\n", name_of_worker[i], pids[i]);
    _exit(1);
}

static int end_all(void)
{
    int failed = 0;
    for (int left = workers; left > 0; left--) {
        int status;
        pid_t pid = wait(&status);
        for (int i = 0; i < workers; i++)
            if (pids[i] == pid) {
                pids[i] = 0;
                if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
                    continue;
                fprintf(stderr, "storm: \"%s\" has failed: status %#x\n", name_of_worker[i], status);
                failed++;
            }
    }
    return failed;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "answer") == 0)
        return atoi(argv[2]);
    if (argc == 3 && strcmp(argv[1], "park") == 0)
        park(atoi(argv[2]));
    if (argc < 4) {
        fprintf(stderr, "usage: storm SEED ROUND MS [thin]\n");
        return 2;
    }
    uint64_t round = strtoull(argv[2], NULL, 10);
    int64_t ms = strtoll(argv[3], NULL, 10), begin_ns = now_ns();
    seed = strtoull(argv[1], NULL, 10) * 1000003u + round;
    is_thin = argc > 4 && strcmp(argv[4], "thin") == 0;
    cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(shared != MAP_FAILED, "mmap");
    shared->until_ns = begin_ns + ms * 1000000;
    signal(SIGALRM, on_alarm);
    alarm((unsigned)(ms / 1000) + LATE_S);
    /* One of each at least every other time. */
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++)
        for (int left = draw(2) ? 1 + (int)draw((uint64_t)PARTS[i].most) : 0; left > 0; left--)
            begin(&PARTS[i]);
    int failed = end_all();
    printf("{\"ms\": %lld", (long long)((now_ns() - begin_ns) / 1000000));
    for (int i = 0; i < EVENTS; i++)
        printf(", \"%s\": %lld", NAMES[i], (long long)atomic_load(&shared->done[i]));
    printf("}\n");
    return failed > 0;
}
