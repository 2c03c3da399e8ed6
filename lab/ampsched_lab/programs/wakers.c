/* How long a woken thread waits until it runs. Each of --messengers wakes those of its --workers that wait for it; a
 * worker works for --work iterations, rests for a drawn time of --rest-us on average, and waits for its messenger
 * again. For --ms of time after --warm-ms; a line of JSON has percentiles of the waits, and their histogram. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "truth.h"

#define MESSENGERS_MAX 64
#define WORKERS_EACH_MAX 32
#define WAITS_MAX 8192 /* of a worker */
#define OCTAVES 40

struct word {
    atomic_uint value;
};

struct worker_of {
    struct messenger *messenger;
    struct worker_of *next; /* in the messenger's list */
    struct word may_go;
    _Atomic int64_t woken_ns; /* 0: not since it last ran */
    uint64_t seed;
    int64_t *waits_ns;
    int waits;
};

struct messenger {
    _Atomic(struct worker_of *) waiting;
    struct word rings;
    struct worker_of workers[WORKERS_EACH_MAX];
};

static struct messenger messengers[MESSENGERS_MAX];
static atomic_bool is_over;
static _Atomic int64_t from_ns = INT64_MAX, until_ns = INT64_MAX; /* wake-ups that count */
static int workers_each;
static int64_t work, rest_us;

static void futex(struct word *word, int operation, unsigned value)
{
    if (syscall(SYS_futex, &word->value, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0) < 0 && errno != EAGAIN &&
        errno != EINTR)
        fail("futex");
}

static void ring(struct word *word)
{
    atomic_fetch_add(&word->value, 1);
    futex(word, FUTEX_WAKE, 1);
}

/* Waits until somebody has rung; rings are not counted. */
static void await(struct word *word)
{
    while (!atomic_exchange(&word->value, 0))
        futex(word, FUTEX_WAIT, 0);
}

static void put_into_list(struct worker_of *self)
{
    self->next = atomic_load(&self->messenger->waiting);
    while (!atomic_compare_exchange_weak(&self->messenger->waiting, &self->next, self))
        ;
}

static void note_wait(struct worker_of *self)
{
    int64_t ns = now_ns(), woken_ns = atomic_exchange(&self->woken_ns, 0);
    if (woken_ns < atomic_load(&from_ns) || woken_ns >= atomic_load(&until_ns))
        return;
    if (self->waits == WAITS_MAX)
        fail("too many waits");
    self->waits_ns[self->waits++] = ns - woken_ns;
}

/* From half of the average to one and a half. */
static int64_t drawn_ns(struct worker_of *self)
{
    self->seed = self->seed * 6364136223846793005u + 1442695040888963407u;
    return rest_us * 500 + (int64_t)((self->seed >> 33) % (uint64_t)(rest_us * 1000));
}

static void *work_and_rest(void *pointer)
{
    struct worker_of *self = pointer;
    prctl(PR_SET_TIMERSLACK, 1UL);
    while (!atomic_load(&is_over)) {
        put_into_list(self);
        ring(&self->messenger->rings);
        await(&self->may_go);
        note_wait(self);
        spin((uint64_t)work);
        sleep_until(now_ns() + drawn_ns(self));
    }
    return NULL;
}

static void *wake_all(void *pointer)
{
    struct messenger *self = pointer;
    while (!atomic_load(&is_over)) {
        await(&self->rings);
        struct worker_of *next, *first = atomic_exchange(&self->waiting, NULL);
        for (struct worker_of *each = first; each; each = next) {
            next = each->next;
            atomic_store(&each->woken_ns, now_ns());
            ring(&each->may_go);
        }
    }
    return NULL;
}

static int compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static void print_histogram(const int64_t *waits_ns, int64_t count)
{
    int64_t below[OCTAVES] = {0};
    for (int64_t i = 0; i < count; i++) {
        int octave = 0;
        while (octave < OCTAVES - 1 && waits_ns[i] >= 1LL << octave)
            octave++;
        below[octave]++;
    }
    const char *comma = "";
    for (int octave = 0; octave < OCTAVES; octave++)
        if (below[octave]) {
            printf("%s[%lld, %lld]", comma, 1LL << octave, (long long)below[octave]);
            comma = ", ";
        }
}

/* Waits of all workers, sorted; whether there are any decides the exit code. */
static int report(int count, int64_t took_ns)
{
    static int64_t all_ns[MESSENGERS_MAX * WORKERS_EACH_MAX * 64];
    int64_t waits = 0;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < workers_each; j++)
            for (int k = 0; k < messengers[i].workers[j].waits; k++) {
                if (waits == (int64_t)(sizeof all_ns / sizeof *all_ns))
                    fail("too many waits");
                all_ns[waits++] = messengers[i].workers[j].waits_ns[k];
            }
    if (waits == 0)
        return 1;
    qsort(all_ns, (size_t)waits, sizeof *all_ns, compare);
    printf("{\"workers\": %d, \"wakeups\": %lld, \"ns\": %lld, \"p50_ns\": %lld, \"p99_ns\": %lld, \"most_ns\": %lld, "
           "\"below_ns\": [",
           count * workers_each, (long long)waits, (long long)took_ns, (long long)all_ns[(waits - 1) / 2],
           (long long)all_ns[(waits - 1) * 99 / 100], (long long)all_ns[waits - 1]);
    print_histogram(all_ns, waits);
    printf("]}\n");
    return 0;
}

static pthread_t begin(void *(*body)(void *), void *own)
{
    pthread_t thread;
    if ((errno = pthread_create(&thread, NULL, body, own)) != 0)
        fail("pthread_create");
    return thread;
}

static void begin_workers(struct messenger *own, pthread_t *threads)
{
    for (int i = 0; i < workers_each; i++) {
        struct worker_of *each = &own->workers[i];
        each->messenger = own;
        each->seed = (uint64_t)(own - messengers) * WORKERS_EACH_MAX + (uint64_t)i + 1;
        each->waits_ns = malloc(WAITS_MAX * sizeof *each->waits_ns);
        if (!each->waits_ns)
            fail("malloc");
        threads[i] = begin(work_and_rest, each);
    }
}

int main(int argc, char **argv)
{
    int count = (int)number_argument(argc, argv, "--messengers", 1);
    workers_each = (int)number_argument(argc, argv, "--workers", 4);
    if (count > MESSENGERS_MAX || workers_each > WORKERS_EACH_MAX)
        fail("too many threads");
    work = number_argument(argc, argv, "--work", 25000);
    rest_us = number_argument(argc, argv, "--rest-us", 100);
    int64_t ms = number_argument(argc, argv, "--ms", 40), warm_ms = number_argument(argc, argv, "--warm-ms", 5);
    static pthread_t leaders[MESSENGERS_MAX], threads[MESSENGERS_MAX][WORKERS_EACH_MAX];
    for (int i = 0; i < count; i++) {
        leaders[i] = begin(wake_all, &messengers[i]);
        begin_workers(&messengers[i], threads[i]);
    }
    int64_t begin_ns = now_ns() + warm_ms * 1000000;
    atomic_store(&until_ns, begin_ns + ms * 1000000);
    atomic_store(&from_ns, begin_ns);
    sleep_until(begin_ns + ms * 1000000);
    atomic_store(&is_over, true);
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < workers_each; j++)
            ring(&messengers[i].workers[j].may_go);
        for (int j = 0; j < workers_each; j++)
            pthread_join(threads[i][j], NULL);
        ring(&messengers[i].rings);
        pthread_join(leaders[i], NULL);
    }
    return report(count, ms * 1000000);
}
