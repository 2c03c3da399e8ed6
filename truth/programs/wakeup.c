/* What it costs to wake a thread on an idle CPU: two threads, each alone on a CPU, take turns to work for
 * --work iterations, --rounds times each. What remains of the turnaround is two wake-ups a round. */
#include <errno.h>
#include <semaphore.h>

#include "truth.h"

static sem_t turns[2];
static int64_t rounds, work;

static void player(struct worker *self)
{
    for (int64_t i = 0; i < rounds; i++) {
        while (sem_wait(&turns[self->index]) != 0)
            if (errno != EINTR)
                fail("sem_wait");
        spin(work);
        sem_post(&turns[1 - self->index]);
    }
}

int main(int argc, char **argv)
{
    static struct worker workers[2];
    rounds = number_argument(argc, argv, "--rounds", 2000);
    work = number_argument(argc, argv, "--work", 80000);
    for (int i = 0; i < 2; i++) {
        sem_init(&turns[i], 0, i == 0);
        workers[i] = (struct worker){.name = "player", .body = player, .index = i, .nice = 0, .cpu = i};
    }
    return run_workers(argc, argv, "wakeup", workers, 2);
}
