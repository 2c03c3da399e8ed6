#define _GNU_SOURCE
#include "truth.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CPUS_MAX 8
#define CALIBRATION_ITERATIONS 1000000

static struct worker *all_workers;
static pthread_t threads[WORKERS_MAX];
static int worker_count;
static int64_t start_ns;

/* Held while threads are created and while the first to end reads all CPU clocks. All pass it before they
 * leave, so that every clock exists when it is read. */
static pthread_mutex_t leaving = PTHREAD_MUTEX_INITIALIZER;
static bool window_closed;

static int cpus[CPUS_MAX];
static int cpu_count;

_Noreturn void fail(const char *what)
{
    fprintf(stderr, "%s: %s (%s)\n", program_invocation_short_name, what, strerror(errno));
    exit(1);
}

const char *text_argument(int argc, char **argv, const char *name, const char *fallback)
{
    for (int i = 1; i + 1 < argc; i += 2)
        if (strcmp(argv[i], name) == 0)
            return argv[i + 1];
    return fallback;
}

int64_t number_argument(int argc, char **argv, const char *name, int64_t fallback)
{
    const char *text = text_argument(argc, argv, name, NULL);
    if (!text)
        return fallback;
    char *end;
    errno = 0;
    int64_t value = strtoll(text, &end, 10);
    if (errno || *end || end == text || value < 1) {
        errno = EINVAL;
        fail(name);
    }
    return value;
}

int split_numbers(const char *text, int *numbers, int limit)
{
    int count = 0;
    for (;;) {
        char *end;
        long value = strtol(text, &end, 10);
        if (end == text || count == limit || (*end && *end != ',')) {
            errno = EINVAL;
            fail(text);
        }
        numbers[count++] = (int)value;
        if (!*end)
            return count;
        text = end + 1;
    }
}

void spin(uint64_t iterations)
{
    uint64_t x = iterations;
    while (iterations-- > 0) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x)); /* keeps the chain: one multiplication after the other */
    }
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t) != 0)
        fail("clock_gettime");
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

void sleep_until(int64_t ns)
{
    struct timespec until = {ns / 1000000000, ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

/* Least time of many repetitions, each short: what an iteration costs when nothing interferes. */
static double calibrate(int repetitions)
{
    if (repetitions == 0)
        return 0;
    int64_t best_ns = INT64_MAX;
    for (int i = 0; i < repetitions; i++) {
        int64_t before_ns = now_ns();
        spin(CALIBRATION_ITERATIONS);
        int64_t took_ns = now_ns() - before_ns;
        if (took_ns < best_ns)
            best_ns = took_ns;
    }
    return (double)best_ns / CALIBRATION_ITERATIONS;
}

static void allow_cpus(int first, int count)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = first; i < first + count; i++)
        CPU_SET(cpus[i], &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        fail("sched_setaffinity");
}

/* The CPUs of a list, to which the process is restricted; without one those that it may use anyway. */
static void read_cpus(const char *list)
{
    if (list) {
        cpu_count = split_numbers(list, cpus, CPUS_MAX);
        allow_cpus(0, cpu_count);
        return;
    }
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        fail("sched_getaffinity");
    for (int cpu = 0; cpu < CPU_SETSIZE && cpu_count < CPUS_MAX; cpu++)
        if (CPU_ISSET(cpu, &set))
            cpus[cpu_count++] = cpu;
}

/* The first thread to end notes how much CPU time each has had: the shares while all compete. */
static void leave(void)
{
    pthread_mutex_lock(&leaving);
    for (int i = 0; i < worker_count && !window_closed; i++) {
        clockid_t clock;
        if ((errno = pthread_getcpuclockid(threads[i], &clock)) != 0)
            fail("pthread_getcpuclockid");
        all_workers[i].window_ns = clock_ns(clock);
    }
    window_closed = true;
    pthread_mutex_unlock(&leaving);
}

static void *run(void *argument)
{
    struct worker *self = argument;
    if (self->nice != 0 && setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), self->nice) != 0)
        fail("setpriority");
    if (self->cpu >= 0)
        allow_cpus(self->cpu, 1);
    prctl(PR_SET_TIMERSLACK, 1UL); /* sleeps end when asked, not up to 50 us later */

    self->body(self);

    struct rusage usage;
    self->end_ns = now_ns() - start_ns;
    self->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (getrusage(RUSAGE_THREAD, &usage) != 0)
        fail("getrusage");
    self->voluntary = usage.ru_nvcsw;
    self->involuntary = usage.ru_nivcsw;
    leave();
    return NULL;
}

static int compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* How late sleepers went on: the middle and the 99th percentile of all, and how many jobs were not done in time. */
static void report_lateness(void)
{
    int64_t count = 0, missed = 0;
    for (int i = 0; i < worker_count; i++)
        count += all_workers[i].sleeps, missed += all_workers[i].missed;
    if (count == 0)
        return;
    int64_t *late_ns = malloc((size_t)count * sizeof *late_ns), *end = late_ns;
    if (!late_ns)
        fail("malloc");
    for (int i = 0; i < worker_count; i++)
        for (int64_t j = 0; j < all_workers[i].sleeps; j++)
            *end++ = all_workers[i].late_ns[j];
    qsort(late_ns, (size_t)count, sizeof *late_ns, compare);
    printf("\"sleeps\": %lld, \"missed\": %lld, \"late_p50_ns\": %lld, \"late_p99_ns\": %lld, ", (long long)count,
           (long long)missed, (long long)late_ns[(count - 1) / 2], (long long)late_ns[(count - 1) * 99 / 100]);
    free(late_ns);
}

static void report(const char *program, double ns_per_iteration)
{
    int64_t turnaround_ns = 0;
    for (int i = 0; i < worker_count; i++)
        if (all_workers[i].end_ns > turnaround_ns)
            turnaround_ns = all_workers[i].end_ns;
    printf("{\"program\": \"%s\", \"ns_per_iteration\": %.6f, \"start_ns\": %lld, \"turnaround_ns\": %lld, ", program,
           ns_per_iteration, (long long)start_ns, (long long)turnaround_ns);
    report_lateness();
    printf("\"threads\": [");
    for (int i = 0; i < worker_count; i++) {
        struct worker *w = &all_workers[i];
        printf("%s{\"name\": \"%s\", \"index\": %d, \"nice\": %d, \"end_ns\": %lld, \"cpu_ns\": %lld, "
               "\"window_ns\": %lld, \"voluntary\": %lld, \"involuntary\": %lld}",
               i ? ", " : "", w->name, w->index, w->nice, (long long)w->end_ns, (long long)w->cpu_ns,
               (long long)w->window_ns, (long long)w->voluntary, (long long)w->involuntary);
    }
    printf("]}\n");
}

int run_workers(int argc, char **argv, const char *program, struct worker *workers, int count)
{
    if (count > WORKERS_MAX)
        fail("too many threads");
    read_cpus(text_argument(argc, argv, "--cpus", NULL));
    int calibrations;
    split_numbers(text_argument(argc, argv, "--calibrations", "100"), &calibrations, 1);
    double ns_per_iteration = calibrate(calibrations);

    all_workers = workers;
    worker_count = count;
    pthread_mutex_lock(&leaving);
    start_ns = now_ns();
    for (int i = 0; i < count; i++)
        if ((errno = pthread_create(&threads[i], NULL, run, &workers[i])) != 0)
            fail("pthread_create");
    pthread_mutex_unlock(&leaving);
    for (int i = 0; i < count; i++)
        if ((errno = pthread_join(threads[i], NULL)) != 0)
            fail("pthread_join");
    report(program, ns_per_iteration);
    return 0;
}
