/* Tasks of OpenMP that one thread creates and all execute: when creation has ended, and when all have ended.
 *
 * `tasks TASKS ITERATIONS RISE`: each task is a chain of ITERATIONS multiplications, plus RISE times its number
 * divided by TASKS. A line of JSON. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

static volatile unsigned long sink;

static void work(unsigned long iterations)
{
    unsigned long value = 88172645463325252UL;
    for (unsigned long i = 0; i < iterations; i++)
        value = value * 6364136223846793005UL + 1442695040888963407UL;
    sink = value;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: tasks TASKS ITERATIONS RISE\n");
        return 2;
    }
    unsigned long tasks = strtoul(argv[1], NULL, 10), iterations = strtoul(argv[2], NULL, 10);
    unsigned long rise = strtoul(argv[3], NULL, 10);
    double created_s = 0, started_s, single_s;
    started_s = now_s();
    work(iterations * 100);
    single_s = (now_s() - started_s) / 100;
#pragma omp parallel
    {
#pragma omp barrier
#pragma omp master
        {
            started_s = now_s();
            for (unsigned long task = 0; task < tasks; task++) {
                unsigned long amount = iterations + rise * task / tasks;
#pragma omp task firstprivate(amount)
                work(amount);
            }
            created_s = now_s() - started_s;
        }
#pragma omp barrier
    }
    printf("{\"task_us\": %.3f, \"created_ms\": %.4f, \"all_ms\": %.4f}\n", single_s * 1e6, created_s * 1e3,
           (now_s() - started_s) * 1e3);
    return 0;
}
