/* Periodic sleepers beside CPU hogs: sleeper i computes --burst iterations every
 * (--period-us + i * --step-us), --rounds times; --hogs threads compute --work iterations each. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "truth.h"

static int64_t rounds, burst, period_us, step_us, work;

static int64_t *room(int64_t count)
{
    int64_t *numbers = calloc((size_t)count, sizeof *numbers);
    if (!numbers)
        fail("calloc");
    return numbers;
}

static void sleeper(struct worker *self)
{
    int64_t period_ns = (period_us + self->index * step_us) * 1000;
    int64_t due_ns = now_ns();
    self->late_ns = room(rounds);
    for (int64_t i = 0; i < rounds; i++) {
        spin(burst);
        due_ns += period_ns;
        self->missed += now_ns() > due_ns;
        struct timespec due = {due_ns / 1000000000, due_ns % 1000000000};
        if ((errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL)) != 0)
            fail("clock_nanosleep");
        self->late_ns[self->sleeps++] = now_ns() - due_ns;
    }
}

static void hog(struct worker *self)
{
    (void)self;
    spin(work);
}

int main(int argc, char **argv)
{
    static struct worker workers[WORKERS_MAX];
    int sleepers = (int)number_argument(argc, argv, "--sleepers", 3);
    int hogs = (int)number_argument(argc, argv, "--hogs", 2);
    if (sleepers + hogs > WORKERS_MAX)
        fail("--sleepers and --hogs");
    rounds = number_argument(argc, argv, "--rounds", 150);
    burst = number_argument(argc, argv, "--burst", 2000000);
    period_us = number_argument(argc, argv, "--period-us", 10000);
    step_us = number_argument(argc, argv, "--step-us", 3000);
    work = number_argument(argc, argv, "--work", 1500000000);
    int count = 0;
    for (int i = 0; i < hogs; i++)
        workers[count++] = (struct worker){.name = "hog", .body = hog, .index = i, .nice = 0, .cpu = -1};
    for (int i = 0; i < sleepers; i++)
        workers[count++] = (struct worker){.name = "sleeper", .body = sleeper, .index = i, .nice = 0, .cpu = -1};
    return run_workers(argc, argv, "sleepers", workers, count);
}
