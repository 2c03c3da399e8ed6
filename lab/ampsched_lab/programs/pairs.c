/* Pairs of threads that wake each other all the time: one of each pair works for --work iterations, wakes the other and
 * sleeps. --pairs of them, for --ms of time; a line of JSON says how often a thread was woken. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "truth.h"

#define PAIRS_MAX 64

struct pair {
    sem_t turns[2];
    int64_t turns_taken;
};

struct player {
    struct pair *pair;
    int side;
};

static struct pair pairs[PAIRS_MAX];
static struct player players[2 * PAIRS_MAX];
static atomic_bool is_over;
static int64_t work;

static void *play(void *pointer)
{
    struct player *self = pointer;
    while (!atomic_load(&is_over)) {
        while (sem_wait(&self->pair->turns[self->side]) != 0)
            if (errno != EINTR)
                fail("sem_wait");
        spin(work);
        self->pair->turns_taken++;
        sem_post(&self->pair->turns[1 - self->side]);
    }
    sem_post(&self->pair->turns[1 - self->side]);
    return NULL;
}

int main(int argc, char **argv)
{
    int count = (int)number_argument(argc, argv, "--pairs", 4);
    if (count > PAIRS_MAX)
        fail("--pairs");
    work = number_argument(argc, argv, "--work", 500);
    int64_t ms = number_argument(argc, argv, "--ms", 50);
    pthread_t threads[2 * PAIRS_MAX];
    for (int i = 0; i < 2 * count; i++) {
        players[i] = (struct player){&pairs[i / 2], i % 2};
        sem_init(&pairs[i / 2].turns[i % 2], 0, i % 2 == 0);
    }
    for (int i = 0; i < 2 * count; i++)
        if ((errno = pthread_create(&threads[i], NULL, play, &players[i])) != 0)
            fail("pthread_create");
    int64_t begin_ns = now_ns(), begun = 0, taken = 0;
    for (int i = 0; i < count; i++)
        begun += pairs[i].turns_taken;
    sleep_until(begin_ns + ms * 1000000);
    for (int i = 0; i < count; i++)
        taken += pairs[i].turns_taken;
    int64_t took_ns = now_ns() - begin_ns;
    atomic_store(&is_over, true);
    for (int i = 0; i < 2 * count; i++)
        pthread_join(threads[i], NULL);
    printf("{\"pairs\": %d, \"wakeups\": %lld, \"ns\": %lld}\n", count, (long long)(taken - begun), (long long)took_ns);
    return 0;
}
