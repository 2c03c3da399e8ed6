/* Loads for kernels under test, each of which checks its own work: loads stress|messaging|storm SECONDS.
 *
 * stress     processes that compute, take turns through pipes and futexes, and yield
 * messaging  groups of processes that send each other messages through pipes, again and again
 * storm      processes and threads that come and go, beside two that compute
 * bursts     this process computes for some milliseconds and rests for one, again and again
 * crowd      as many threads as are stated instead of seconds; they say that all are there, sleep until the input ends,
 *            and then each does something
 *
 * The exit code is 0 if every worker has done something and nothing went wrong; what was done is printed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS_MAX = 32, CROWD_OF_ONE = 1000, STACK_BYTES = 16384 };
enum { GROUPS = 2, PEERS = 10, LOOPS = 20, MESSAGE_BYTES = 100 };

/* Shared by all workers. */
static struct {
    long done[WORKERS_MAX];
    _Atomic unsigned turn[WORKERS_MAX];
    struct timespec until;
    _Atomic long crowd;
    _Atomic unsigned goes_on;
} *shared;

static void die(const char *what)
{
    fprintf(stderr, "loads: %s: %s\n", what, strerror(errno));
    _exit(1);
}

static void check(int holds, const char *what)
{
    if (!holds)
        die(what);
}

static int over(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const struct timespec *until = &shared->until;
    return now.tv_sec > until->tv_sec || (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec);
}

static void send_int(int pipe_end, int value)
{
    check(write(pipe_end, &value, sizeof value) == sizeof value, "write");
}

/* False at the end of the pipe. */
static int receive_int(int pipe_end, int *value)
{
    ssize_t got = read(pipe_end, value, sizeof *value);
    check(got == 0 || got == sizeof *value, "read");
    return got > 0;
}

static pid_t child(void)
{
    pid_t pid = fork();
    check(pid >= 0, "fork");
    return pid;
}

/* Waits for a child, -1: any. */
static void join(pid_t pid)
{
    int status;
    check(waitpid(pid, &status, 0) > 0, "waitpid");
    errno = 0;
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child failed");
}

/* A sum of squares, against its formula. */
static void sum_up(void)
{
    volatile unsigned long sum = 0;
    unsigned long n = 20000;
    for (unsigned long i = 1; i <= n; i++)
        sum += i * i;
    errno = 0;
    check(sum == n * (n + 1) * (2 * n + 1) / 6, "a sum is wrong");
}

static void compute(int worker)
{
    for (; !over(); shared->done[worker]++)
        sum_up();
}

static void burst(void)
{
    const struct timespec rest = {.tv_nsec = 1000000};
    while (!over()) {
        for (int i = 0; i < 40; i++)
            sum_up();
        nanosleep(&rest, NULL);
    }
}

static void yield(int worker)
{
    for (; !over(); shared->done[worker]++)
        sched_yield();
}

/* A number goes to a child and comes back, one more. */
static void take_turns_by_pipes(int worker)
{
    int there[2], back[2], value = 0, answer;
    check(pipe(there) == 0 && pipe(back) == 0, "pipe");
    pid_t pid = child();
    if (pid == 0) {
        close(there[1]);
        while (receive_int(there[0], &value))
            send_int(back[1], value + 1);
        _exit(0);
    }
    for (; !over(); shared->done[worker]++) {
        send_int(there[1], value);
        check(receive_int(back[0], &answer) && answer == value + 1, "an answer is wrong");
        value = answer;
    }
    close(there[1]);
    join(pid);
}

static void futex(_Atomic unsigned *word, int operation, unsigned value)
{
    long result = syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
    check(result >= 0 || errno == EAGAIN || errno == EINTR, "futex");
}

/* Even turns are the parent's, odd ones the child's; UINT_MAX ends it. */
static void take_turns_by_futex(int worker)
{
    _Atomic unsigned *turn = &shared->turn[worker];
    const unsigned last = UINT_MAX;
    pid_t pid = child();
    unsigned mine = pid == 0;
    for (;;) {
        unsigned now = atomic_load(turn);
        if (now == last)
            break;
        if (now % 2 != mine) {
            futex(turn, FUTEX_WAIT, now);
            continue;
        }
        if (mine == 0)
            shared->done[worker]++;
        atomic_store(turn, mine == 0 && over() ? last : now + 1);
        futex(turn, FUTEX_WAKE, 1);
    }
    if (pid == 0)
        _exit(0);
    join(pid);
}

static void come_and_go(int worker)
{
    for (; !over(); shared->done[worker]++) {
        pid_t pid = child();
        if (pid == 0)
            _exit(0);
        join(pid);
    }
}

static void come_and_go_by_vfork(int worker)
{
    for (; !over(); shared->done[worker]++) {
        pid_t pid = vfork();
        check(pid >= 0, "vfork");
        if (pid == 0)
            _exit(0);
        join(pid);
    }
}

static void execute(int worker)
{
    for (; !over(); shared->done[worker]++) {
        pid_t pid = child();
        if (pid == 0) {
            execl("/proc/self/exe", "loads", "nothing", "0", (char *)NULL);
            die("exec");
        }
        join(pid);
    }
}

static void *count_one(void *count)
{
    atomic_fetch_add((_Atomic int *)count, 1);
    return NULL;
}

static void come_and_go_as_threads(int worker)
{
    for (; !over(); shared->done[worker]++) {
        pthread_t threads[4];
        _Atomic int count = 0;
        for (int i = 0; i < 4; i++)
            check(pthread_create(&threads[i], NULL, count_one, &count) == 0, "pthread_create");
        for (int i = 0; i < 4; i++)
            check(pthread_join(threads[i], NULL) == 0, "pthread_join");
        errno = 0;
        check(atomic_load(&count) == 4, "a thread did not run");
    }
}

/* As many receivers as senders; everyone sends LOOPS messages to every receiver. */
static void one_group(void)
{
    int pipes[PEERS][2];
    for (int i = 0; i < PEERS; i++)
        check(pipe(pipes[i]) == 0, "pipe");
    pid_t pids[2 * PEERS];
    char message[MESSAGE_BYTES] = {0};
    for (int i = 0; i < PEERS; i++) {
        if ((pids[i] = child()))
            continue;
        for (int k = 0; k < PEERS; k++)
            close(pipes[k][1]);
        long bytes = 0;
        ssize_t got;
        while ((got = read(pipes[i][0], message, sizeof message)) > 0)
            bytes += got;
        check(got == 0, "read");
        check(bytes == (long)PEERS * LOOPS * MESSAGE_BYTES, "messages are lost");
        _exit(0);
    }
    for (int i = PEERS; i < 2 * PEERS; i++) {
        if ((pids[i] = child()))
            continue;
        for (int loop = 0; loop < LOOPS; loop++)
            for (int k = 0; k < PEERS; k++)
                check(write(pipes[k][1], message, sizeof message) == sizeof message, "write");
        _exit(0);
    }
    for (int i = 0; i < PEERS; i++) {
        close(pipes[i][0]);
        close(pipes[i][1]);
    }
    for (int i = 0; i < 2 * PEERS; i++)
        join(pids[i]);
}

static void send_messages(int worker)
{
    for (; !over(); shared->done[worker]++)
        one_group();
}

static void *wait_in_the_crowd(void *unused)
{
    (void)unused;
    atomic_fetch_add(&shared->crowd, 1);
    while (!atomic_load(&shared->goes_on))
        futex(&shared->goes_on, FUTEX_WAIT, 0);
    sum_up();
    atomic_fetch_sub(&shared->crowd, 1);
    return NULL;
}

/* A process with some of the crowd's threads. */
static void be_part_of_the_crowd(long count)
{
    pthread_t threads[CROWD_OF_ONE];
    pthread_attr_t small;
    pthread_attr_init(&small);
    check((errno = pthread_attr_setstacksize(&small, STACK_BYTES)) == 0, "pthread_attr_setstacksize");
    for (long i = 0; i < count; i++)
        check((errno = pthread_create(&threads[i], &small, wait_in_the_crowd, NULL)) == 0, "pthread_create");
    for (long i = 0; i < count; i++)
        check(pthread_join(threads[i], NULL) == 0, "pthread_join");
    _exit(0);
}

static void crowd(long count)
{
    const struct timespec moment = {.tv_nsec = 10000000};
    int unused;
    pid_t last = 0;
    for (long begun = 0; begun < count; begun += CROWD_OF_ONE)
        if ((last = child()) == 0)
            be_part_of_the_crowd(count - begun < CROWD_OF_ONE ? count - begun : CROWD_OF_ONE);
    while (atomic_load(&shared->crowd) < count) {
        nanosleep(&moment, NULL);
        check(waitpid(-1, &unused, WNOHANG) == 0, "a part of the crowd has ended");
    }
    printf("%ld are there\n", count);
    fflush(stdout);
    while (receive_int(STDIN_FILENO, &unused)) {
    }
    atomic_store(&shared->goes_on, 1);
    futex(&shared->goes_on, FUTEX_WAKE, INT_MAX);
    for (long begun = 0; begun < count; begun += CROWD_OF_ONE)
        join(-1);
    errno = 0;
    check(last > 0 && atomic_load(&shared->crowd) == 0, "somebody did nothing");
}

struct part {
    const char *load;
    void (*work)(int worker);
    int workers;
};

static const struct part PARTS[] = {
    {"stress", compute, 3},
    {"stress", yield, 2},
    {"stress", take_turns_by_pipes, 4},
    {"stress", take_turns_by_futex, 2},
    {"messaging", send_messages, GROUPS},
    {"storm", come_and_go, 4},
    {"storm", come_and_go_by_vfork, 2},
    {"storm", execute, 2},
    {"storm", come_and_go_as_threads, 2},
    {"storm", compute, 2},
};

/* The time begins now. */
static void begin(double seconds)
{
    struct timespec *until = &shared->until;
    clock_gettime(CLOCK_MONOTONIC, until);
    long ns = until->tv_nsec + (long)(seconds * 1e9);
    until->tv_sec += ns / 1000000000;
    until->tv_nsec = ns % 1000000000;
}

/* Workers begin together, so that who is started last has as much time as others: when nobody can write any more. */
static void wait_for_all(const int *gate)
{
    int unused;
    close(gate[1]);
    receive_int(gate[0], &unused);
    close(gate[0]);
}

int main(int count, char **words)
{
    if (count != 3) {
        fprintf(stderr, "usage: loads stress|messaging|storm|bursts|nothing SECONDS, or loads crowd THREADS\n");
        return 2;
    }
    double seconds = atof(words[2]);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(shared != MAP_FAILED, "mmap");
    if (strcmp(words[1], "bursts") == 0) {
        begin(seconds);
        burst();
        return 0;
    }
    if (strcmp(words[1], "crowd") == 0) {
        crowd(atol(words[2]));
        return 0;
    }
    pid_t pids[WORKERS_MAX];
    int workers = 0, gate[2];
    check(pipe(gate) == 0, "pipe");
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++)
        for (int k = 0; k < PARTS[i].workers && strcmp(PARTS[i].load, words[1]) == 0; k++, workers++)
            if ((pids[workers] = child()) == 0) {
                wait_for_all(gate);
                PARTS[i].work(workers);
                _exit(0);
            }
    begin(seconds);
    close(gate[0]);
    close(gate[1]);
    for (int i = 0; i < workers; i++)
        join(pids[i]);
    int idle = 0;
    for (int i = 0; i < workers; i++) {
        printf("%ld%c", shared->done[i], i == workers - 1 ? '\n' : ' ');
        idle += shared->done[i] == 0;
    }
    if (idle > 0)
        fprintf(stderr, "loads: %d of %d workers did nothing\n", idle, workers);
    return idle > 0;
}
