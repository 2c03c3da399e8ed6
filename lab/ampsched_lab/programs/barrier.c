/* A barrier loop: in each of --rounds rounds thread i computes --work + i * --step iterations, then
 * waits for the others. */
#include <pthread.h>

#include "truth.h"

static pthread_barrier_t barrier;
static int64_t rounds, work, step;

static void member(struct worker *self)
{
    for (int64_t i = 0; i < rounds; i++) {
        spin(work + self->index * step);
        pthread_barrier_wait(&barrier);
    }
}

int main(int argc, char **argv)
{
    static struct worker workers[WORKERS_MAX];
    int count = (int)number_argument(argc, argv, "--threads", 4);
    if (count > WORKERS_MAX)
        fail("--threads");
    rounds = number_argument(argc, argv, "--rounds", 300);
    work = number_argument(argc, argv, "--work", 3000000);
    step = number_argument(argc, argv, "--step", 500000);
    if (pthread_barrier_init(&barrier, NULL, (unsigned)count) != 0)
        fail("pthread_barrier_init");
    for (int i = 0; i < count; i++)
        workers[i] = (struct worker){.name = "member", .body = member, .index = i, .nice = 0, .cpu = -1};
    return run_workers(argc, argv, "barrier", workers, count);
}
