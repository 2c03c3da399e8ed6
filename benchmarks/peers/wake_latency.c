/* How long threads take from being woken to running, after the shape of schbench: messengers wake their workers, which
 * compute a little and wait again.
 *
 * usage: wake_latency MESSENGERS WORKERS SECONDS
 * WORKERS per messenger. Prints the 50th and the 99th percentile of the latency in us, and the number of wake-ups.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES_MAX = 1 << 20, WORK_ROUNDS = 20000, PAUSE_US = 2000 };

struct worker {
    _Atomic uint32_t called; /* futex: 1 while it has been woken and has not run */
    _Atomic uint64_t called_ns;
};

struct messenger {
    struct worker *workers;
    long count;
};

static atomic_bool over;
static atomic_long taken;
static uint32_t samples_ns[SAMPLES_MAX];

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static void futex(_Atomic uint32_t *word, int command, uint32_t value) {
    syscall(SYS_futex, word, command | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static void *worker(void *argument) {
    struct worker *own = argument;
    for (;;) {
        while (!atomic_load(&own->called)) {
            if (atomic_load(&over))
                return NULL;
            futex(&own->called, FUTEX_WAIT, 0);
        }
        uint64_t latency_ns = now_ns() - atomic_load(&own->called_ns);
        if (atomic_load(&over))
            return NULL;
        long index = atomic_fetch_add(&taken, 1);
        if (index < SAMPLES_MAX)
            samples_ns[index] = latency_ns < UINT32_MAX ? latency_ns : UINT32_MAX;
        for (volatile int round = 0; round < WORK_ROUNDS; round++) {
        }
        atomic_store(&own->called, 0);
    }
}

static void *messenger(void *argument) {
    struct messenger *own = argument;
    do {
        for (long i = 0; i < own->count; i++) {
            struct worker *next = &own->workers[i];
            if (atomic_load(&next->called))
                continue;
            atomic_store(&next->called_ns, now_ns());
            atomic_store(&next->called, 1);
            futex(&next->called, FUTEX_WAKE, 1);
        }
        usleep(PAUSE_US);
    } while (!atomic_load(&over));
    return NULL;
}

static int by_size(const void *a, const void *b) {
    uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
    return (one > other) - (one < other);
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    long messengers = atol(argv[1]), workers = atol(argv[2]), seconds = atol(argv[3]);
    if (messengers < 1 || workers < 1 || seconds < 1)
        return 2;
    struct worker *all = calloc(messengers * workers, sizeof *all);
    struct messenger *callers = calloc(messengers, sizeof *callers);
    pthread_t *threads = calloc(messengers * (workers + 1), sizeof *threads);
    if (!all || !callers || !threads)
        return 1;
    for (long i = 0; i < messengers * workers; i++)
        if (pthread_create(&threads[i], NULL, worker, &all[i]))
            return 1;
    for (long i = 0; i < messengers; i++) {
        callers[i] = (struct messenger){ &all[i * workers], workers };
        if (pthread_create(&threads[messengers * workers + i], NULL, messenger, &callers[i]))
            return 1;
    }
    sleep(seconds);
    atomic_store(&over, true);
    for (long i = 0; i < messengers * workers; i++) {
        atomic_store(&all[i].called, 1);
        futex(&all[i].called, FUTEX_WAKE, INT_MAX);
    }
    for (long i = 0; i < messengers * (workers + 1); i++)
        pthread_join(threads[i], NULL);
    long count = atomic_load(&taken) < SAMPLES_MAX ? atomic_load(&taken) : SAMPLES_MAX;
    if (count == 0)
        return 1;
    qsort(samples_ns, count, sizeof *samples_ns, by_size);
    printf("%.1f %.1f %ld\n", samples_ns[count / 2] / 1e3, samples_ns[count * 99 / 100] / 1e3, count);
    return 0;
}
