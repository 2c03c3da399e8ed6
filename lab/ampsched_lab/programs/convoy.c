/* A mutex convoy: every thread alternates between --outside iterations of its own and --inside
 * iterations under one mutex, --rounds times. */
#include <pthread.h>

#include "truth.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int64_t rounds, outside, inside;

static void member(struct worker *self)
{
    (void)self;
    for (int64_t i = 0; i < rounds; i++) {
        spin(outside);
        pthread_mutex_lock(&mutex);
        spin(inside);
        pthread_mutex_unlock(&mutex);
    }
}

int main(int argc, char **argv)
{
    static struct worker workers[WORKERS_MAX];
    int count = (int)number_argument(argc, argv, "--threads", 4);
    if (count > WORKERS_MAX)
        fail("--threads");
    rounds = number_argument(argc, argv, "--rounds", 2000);
    outside = number_argument(argc, argv, "--outside", 100000);
    inside = number_argument(argc, argv, "--inside", 200000);
    for (int i = 0; i < count; i++)
        workers[i] = (struct worker){.name = "member", .body = member, .index = i, .nice = 0, .cpu = -1};
    return run_workers(argc, argv, "convoy", workers, count);
}
