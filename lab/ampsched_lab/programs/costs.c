/* What scheduling costs: micro-benchmarks of threads that are pinned to CPUs and wake each other.
 *
 * `costs --cpus FAST,FAST,SLOW,SLOW`: two CPUs of each class; with one class, `--cpus A,B`. A line of JSON for each
 * benchmark and class. See docs/explanation/truth.md for what each means and which field of a machine it sets. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "truth.h"

#define ROUNDS 1000
#define FEW_ROUNDS 50
#define CLASSES_MAX 2
#define SHORT_SPIN 20000
#define SHORT_SPINS 200
#define LONG_SPIN 100000000
#define HOLD 30000
#define PAUSE_NS 2000000
#define LONG_PAUSE_NS 20000000
#define DITHER_NS 1370 /* so that rounds fall on all phases of a quantum of the virtual machine */
#define STARTED 8

static int cpus[2 * CLASSES_MAX], cpu_count;
static double ns_per_iteration[CLASSES_MAX];

struct turn {
    atomic_int may_go;
};

static void futex(atomic_int *word, int operation, int value)
{
    if (syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0) < 0 && errno != EAGAIN &&
        errno != EINTR)
        fail("futex");
}

static void post(struct turn *turn)
{
    atomic_store(&turn->may_go, 1);
    futex(&turn->may_go, FUTEX_WAKE, 1);
}

static void await(struct turn *turn)
{
    while (!atomic_exchange(&turn->may_go, 0))
        futex(&turn->may_go, FUTEX_WAIT, 0);
}

static void pause_for(int64_t ns)
{
    struct timespec time = {ns / 1000000000, ns % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static void pin(pthread_t thread, int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if ((errno = pthread_setaffinity_np(thread, sizeof set, &set)) != 0)
        fail("pthread_setaffinity_np");
}

static pthread_t begin(void *(*body)(void *), void *own, int cpu)
{
    pthread_t thread;
    if ((errno = pthread_create(&thread, NULL, body, own)) != 0)
        fail("pthread_create");
    pin(thread, cpu);
    return thread;
}

static void join(pthread_t thread)
{
    if ((errno = pthread_join(thread, NULL)) != 0)
        fail("pthread_join");
}

static void say(const char *benchmark, int class, double ns)
{
    printf("{\"benchmark\": \"%s\", \"class\": %d, \"ns\": %.3f}\n", benchmark, class, ns);
    fflush(stdout);
}

static int first_of(int class)
{
    return cpus[2 * class];
}
static int second_of(int class)
{
    return cpus[2 * class + 1];
}

/* Work --------------------------------------------------------------------------------------------------------- */

static int compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* The middle one of many short loops' times: into few falls a tick. */
static int64_t usual_ns_of(int64_t iterations)
{
    static int64_t took_ns[SHORT_SPINS];
    for (int i = 0; i < SHORT_SPINS; i++) {
        int64_t begin_ns = now_ns();
        spin(iterations);
        took_ns[i] = now_ns() - begin_ns;
    }
    qsort(took_ns, SHORT_SPINS, sizeof *took_ns, compare);
    return took_ns[SHORT_SPINS / 2];
}

/* Two lengths, so that what reading the clock takes does not count. */
static void iteration(int class)
{
    pin(pthread_self(), first_of(class));
    int64_t once_ns = usual_ns_of(SHORT_SPIN), twice_ns = usual_ns_of(2 * SHORT_SPIN);
    ns_per_iteration[class] = (double)(twice_ns - once_ns) / SHORT_SPIN;
    say("iteration", class, ns_per_iteration[class]);
}

/* What a long loop takes beyond its work, per tick. */
static void tick(int class, double tick_ns)
{
    pin(pthread_self(), first_of(class));
    int64_t iterations = (int64_t)(LONG_SPIN * ns_per_iteration[0] / ns_per_iteration[class]);
    int64_t begin_ns = now_ns();
    spin(iterations);
    double took_ns = (double)(now_ns() - begin_ns);
    say("tick", class, (took_ns - iterations * ns_per_iteration[class]) / (took_ns / tick_ns));
}

/* Two threads take turns --------------------------------------------------------------------------------------- */

struct player {
    struct turn *own, *others;
    int64_t begin_ns, end_ns, calls_ns;
    int64_t work;
    bool times_calls;
};

static void *play(void *pointer)
{
    struct player *self = pointer;
    for (int i = 0; i < ROUNDS; i++) {
        await(self->own);
        if (i == 0)
            self->begin_ns = now_ns();
        spin(self->work);
        int64_t call_ns = now_ns();
        post(self->others);
        self->calls_ns += now_ns() - call_ns;
    }
    self->end_ns = now_ns();
    return NULL;
}

/* Time of one turn without its work; what the call that wakes takes is told, too. */
static double take_turns(int one, int other, int64_t work, double work_ns, double *call_ns)
{
    static struct turn turns[2];
    atomic_store(&turns[0].may_go, 1);
    atomic_store(&turns[1].may_go, 0);
    struct player players[2] = {{.own = &turns[0], .others = &turns[1], .work = work},
                                {.own = &turns[1], .others = &turns[0], .work = work}};
    pthread_t threads[2] = {begin(play, &players[0], one), begin(play, &players[1], other)};
    join(threads[0]);
    join(threads[1]);
    *call_ns = (double)(players[0].calls_ns + players[1].calls_ns) / (2 * ROUNDS);
    return (double)(players[1].end_ns - players[0].begin_ns) / (2 * ROUNDS) - work_ns;
}

static void turns(int class)
{
    double call_ns, work_ns = HOLD * ns_per_iteration[class];
    say("turn, same CPU", class, take_turns(first_of(class), first_of(class), HOLD, work_ns, &call_ns));
    say("waking call, same CPU", class, call_ns);
    say("turn, another CPU", class, take_turns(first_of(class), second_of(class), HOLD, work_ns, &call_ns));
    say("waking call, another CPU", class, call_ns);
}

/* One wakes, the other sleeps ---------------------------------------------------------------------------------- */

struct sleeper {
    struct turn turn;
    atomic_llong woken_ns;
    atomic_bool ends;
};

static void *sleep_and_note(void *pointer)
{
    struct sleeper *self = pointer;
    for (;;) {
        await(&self->turn);
        if (atomic_load(&self->ends))
            return NULL;
        atomic_store(&self->woken_ns, now_ns());
    }
}

static void end(struct sleeper *sleeper, pthread_t thread)
{
    atomic_store(&sleeper->ends, true);
    post(&sleeper->turn);
    join(thread);
}

/* How much later a thread runs that is woken on another CPU than before. */
static void move(const char *benchmark, int to_class, int one, int other, int waker)
{
    static struct sleeper sleeper;
    atomic_store(&sleeper.ends, false);
    atomic_store(&sleeper.turn.may_go, 0);
    pthread_t thread = begin(sleep_and_note, &sleeper, other);
    pin(pthread_self(), waker);
    int64_t late_ns[2] = {0, 0};
    /* To and fro; then twice on each: what is counted is the wake-up on `other`, moved or not. */
    for (int i = 0; i < 4 * FEW_ROUNDS; i++) {
        bool moves = i < 2 * FEW_ROUNDS;
        bool counts = !moves || i % 2 == 1;
        pause_for(PAUSE_NS + i * DITHER_NS);
        pin(thread, moves && i % 2 == 0 ? one : other);
        int64_t begin_ns = now_ns();
        post(&sleeper.turn);
        pause_for(PAUSE_NS + i * DITHER_NS);
        if (counts)
            late_ns[moves] += atomic_load(&sleeper.woken_ns) - begin_ns;
    }
    end(&sleeper, thread);
    say(benchmark, to_class, (double)late_ns[true] / FEW_ROUNDS - (double)late_ns[false] / (2 * FEW_ROUNDS));
}

static atomic_bool hogs_end;

static void *hog(void *nothing)
{
    while (!atomic_load(&hogs_end))
        spin(SHORT_SPIN);
    return nothing;
}

/* What the call takes that wakes a thread on a busy CPU. */
static void wake_busy(int class)
{
    static struct sleeper sleeper;
    atomic_store(&hogs_end, false);
    atomic_store(&sleeper.ends, false);
    pthread_t busy = begin(hog, NULL, second_of(class)), thread = begin(sleep_and_note, &sleeper, second_of(class));
    pin(pthread_self(), first_of(class));
    int64_t calls_ns = 0;
    for (int i = 0; i < FEW_ROUNDS; i++) {
        pause_for(LONG_PAUSE_NS + i * DITHER_NS);
        int64_t begin_ns = now_ns();
        post(&sleeper.turn);
        calls_ns += now_ns() - begin_ns;
    }
    atomic_store(&hogs_end, true);
    join(busy);
    end(&sleeper, thread);
    say("waking call, busy CPU", class, (double)calls_ns / FEW_ROUNDS);
}

/* A lock ------------------------------------------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *lock_often(void *work)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&mutex);
        spin(*(int64_t *)work);
        pthread_mutex_unlock(&mutex);
        spin(*(int64_t *)work / 2);
    }
    return NULL;
}

/* What a critical section takes beyond its work if two threads want it all the time. */
static void lock(int class)
{
    int64_t work = HOLD, begin_ns = now_ns();
    pthread_t threads[2] = {begin(lock_often, &work, first_of(class)), begin(lock_often, &work, second_of(class))};
    join(threads[0]);
    join(threads[1]);
    say("lock", class, (double)(now_ns() - begin_ns) / (2 * ROUNDS) - HOLD * ns_per_iteration[class]);
}

/* Starts ------------------------------------------------------------------------------------------------------- */

static struct turn never[STARTED];

static void *wait_for_turn(void *turn)
{
    await(turn);
    return NULL;
}

/* What the call takes that starts a thread, each with a stack of its own; they run on the other CPU of the class. */
static void start_threads(int class)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(first_of(class), &set);
    CPU_SET(second_of(class), &set);
    pin(pthread_self(), first_of(class));
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        fail("sched_setaffinity");
    pthread_t threads[STARTED];
    int64_t calls_ns = 0;
    for (int i = 0; i < STARTED; i++) {
        int64_t begin_ns = now_ns();
        if ((errno = pthread_create(&threads[i], NULL, wait_for_turn, &never[i])) != 0)
            fail("pthread_create");
        calls_ns += now_ns() - begin_ns;
    }
    say("start of a thread", class, (double)calls_ns / STARTED);
    for (int i = 0; i < STARTED; i++) {
        post(&never[i]);
        join(threads[i]);
    }
}

/* How long a program takes from the request until its own first instruction. */
static void start_programs(int class, const char *self)
{
    pin(pthread_self(), first_of(class));
    int64_t all_ns = 0;
    for (int i = 0; i < STARTED; i++) {
        int ends[2];
        int64_t began_ns, begin_ns = now_ns();
        if (pipe(ends) != 0)
            fail("pipe");
        pid_t child = fork();
        if (child == 0) {
            dup2(ends[1], STDOUT_FILENO);
            execl(self, self, "--stamp", "1", NULL);
            _exit(1);
        }
        if (read(ends[0], &began_ns, sizeof began_ns) != sizeof began_ns)
            fail("read");
        waitpid(child, NULL, 0);
        close(ends[0]);
        close(ends[1]);
        all_ns += began_ns - begin_ns;
    }
    say("start of a program", class, (double)all_ns / STARTED);
}

/* In a process of its own, which has no stacks left over from threads before. */
static void in_child(void (*benchmark)(int), int class)
{
    pid_t child = fork();
    if (child == 0) {
        benchmark(class);
        _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0)
        fail("a benchmark in a process of its own");
}

int main(int argc, char **argv)
{
    int64_t began_ns = now_ns();
    if (text_argument(argc, argv, "--stamp", NULL))
        return write(STDOUT_FILENO, &began_ns, sizeof began_ns) == sizeof began_ns ? 0 : 1;
    cpu_count = split_numbers(text_argument(argc, argv, "--cpus", "0,1"), cpus, 2 * CLASSES_MAX);
    double tick_ns = (double)number_argument(argc, argv, "--tick-ns", 4000000);
    int classes = cpu_count / 2;
    for (int class = 0; class < classes; class ++) {
        in_child(start_threads, class);
        start_programs(class, argv[0]);
        iteration(class);
        tick(class, tick_ns);
        int waker = first_of(classes - 1 - class);
        pin(pthread_self(), waker);
        turns(class);
        wake_busy(class);
        move("move within class", class, first_of(class), second_of(class), waker);
        if (classes > 1)
            move("move between classes", class, first_of(classes - 1 - class), second_of(class), waker);
        lock(class);
    }
    return 0;
}
