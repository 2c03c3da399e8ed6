/* Threads that spin for a bounded time before they sleep, one on each CPU.
 *
 * `spins KIND THREADS ROUNDS WORK STEP SPIN_NS`: in each round thread i executes WORK + i * STEP multiplications and
 * waits for all others (KIND barrier), or WORK, takes a lock and executes STEP more under it (KIND mutex). A line of
 * JSON: how long all took, their CPU time, and what 1,000 multiplications take on the first CPU. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 64, ROUNDS_OF_CALIBRATION = 100 };

static int is_mutex, threads;
static unsigned long rounds, work_base, step;
static int64_t spin_ns, cpu_ns[THREADS_MAX], began_ns[THREADS_MAX], ended_ns[THREADS_MAX];
static atomic_int generation, arrived, lock_word;
static volatile uint64_t sink;
static pthread_barrier_t begin;

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

__attribute__((noinline)) static void work(unsigned long iterations)
{
    uint64_t value = sink | 1;
    for (unsigned long i = 0; i < iterations; i++)
        value = value * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    sink = value;
}

static void sleep_while(atomic_int *word, int value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(atomic_int *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

/* Whether somebody has changed a word within the time for which a thread may spin. */
static int changes_soon(atomic_int *word, int value)
{
    int64_t end_ns = clock_ns(CLOCK_MONOTONIC) + spin_ns;
    do {
        if (atomic_load(word) != value)
            return 1;
    } while (clock_ns(CLOCK_MONOTONIC) < end_ns);
    return 0;
}

static void meet(void)
{
    int now = atomic_load(&generation);
    if (atomic_fetch_add(&arrived, 1) == threads - 1) {
        atomic_store(&arrived, 0);
        atomic_fetch_add(&generation, 1);
        wake(&generation, THREADS_MAX);
        return;
    }
    if (spin_ns > 0 && changes_soon(&generation, now))
        return;
    while (atomic_load(&generation) == now)
        sleep_while(&generation, now);
}

/* 0: free, 1: taken, 2: taken, and somebody may sleep. */
static void lock(void)
{
    int64_t end_ns = spin_ns > 0 ? clock_ns(CLOCK_MONOTONIC) + spin_ns : 0;
    do {
        int is_free = 0;
        if (atomic_compare_exchange_strong(&lock_word, &is_free, 1))
            return;
    } while (spin_ns > 0 && clock_ns(CLOCK_MONOTONIC) < end_ns);
    while (atomic_exchange(&lock_word, 2) != 0)
        sleep_while(&lock_word, 2);
}

static void unlock(void)
{
    if (atomic_exchange(&lock_word, 0) == 2)
        wake(&lock_word, 1);
}

static void *member(void *its)
{
    int index = (int)(intptr_t)its;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(index, &set);
    sched_setaffinity(0, sizeof set, &set);
    pthread_barrier_wait(&begin);
    began_ns[index] = clock_ns(CLOCK_MONOTONIC);
    int64_t before_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    for (unsigned long round = 0; round < rounds; round++) {
        if (!is_mutex) {
            work(work_base + (unsigned long)index * step);
            meet();
            continue;
        }
        work(work_base);
        lock();
        work(step);
        unlock();
    }
    cpu_ns[index] = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
    ended_ns[index] = clock_ns(CLOCK_MONOTONIC);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 7 || atoi(argv[2]) < 1 || atoi(argv[2]) > THREADS_MAX) {
        fprintf(stderr, "usage: spins barrier|mutex THREADS ROUNDS WORK STEP SPIN_NS\n");
        return 2;
    }
    is_mutex = !strcmp(argv[1], "mutex");
    threads = atoi(argv[2]);
    rounds = strtoul(argv[3], NULL, 10);
    work_base = strtoul(argv[4], NULL, 10);
    step = strtoul(argv[5], NULL, 10);
    spin_ns = strtoll(argv[6], NULL, 10);
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    sched_setaffinity(0, sizeof first, &first);
    int64_t calibrated_ns = clock_ns(CLOCK_MONOTONIC);
    work(1000 * ROUNDS_OF_CALIBRATION);
    double thousand_us = (double)(clock_ns(CLOCK_MONOTONIC) - calibrated_ns) / 1000 / ROUNDS_OF_CALIBRATION;
    pthread_barrier_init(&begin, NULL, (unsigned)threads);
    pthread_t all[THREADS_MAX];
    for (int i = 0; i < threads; i++)
        pthread_create(&all[i], NULL, member, (void *)(intptr_t)i);
    int64_t sum_ns = 0, first_ns = INT64_MAX, last_ns = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(all[i], NULL);
        sum_ns += cpu_ns[i];
        first_ns = began_ns[i] < first_ns ? began_ns[i] : first_ns;
        last_ns = ended_ns[i] > last_ns ? ended_ns[i] : last_ns;
    }
    printf("{\"thousand_us\": %.4f, \"all_ms\": %.4f, \"cpu_ms\": %.4f}\n", thousand_us,
           (double)(last_ns - first_ns) / 1e6, (double)sum_ns / 1e6);
    return 0;
}
