/* The loop and the empty tasks of crates/taskrt/examples/runtime_bench.rs under OpenMP (gcc's libgomp).
 *
 * usage: openmp_loop MODE ITERATIONS ROUNDS [FILE...]
 * MODE: static, dynamic, tasks. One thread per FILE, into which it writes its own identifier: the cgroup that limits
 * it. Without FILE: two threads, each bound to a CPU by OMP_PROC_BIND. Prints seconds.
 */
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t work(uint64_t seed, long rounds)
{
    for (long round = 0; round < rounds; round++)
        seed = (seed ^ seed >> 29) * 6364136223846793005u + 1;
    return seed;
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

static int enter(const char *file)
{
    FILE *threads = fopen(file, "w");
    if (!threads || fprintf(threads, "%ld", (long)syscall(SYS_gettid)) < 0 || fclose(threads)) {
        perror(file);
        return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: openmp_loop static|dynamic|tasks ITERATIONS ROUNDS [FILE...]\n");
        return 2;
    }
    const char *mode = argv[1];
    long iterations = atol(argv[2]), rounds = atol(argv[3]);
    int threads = argc > 4 ? argc - 4 : 2, failed = 0;
    omp_set_dynamic(0);
    omp_set_num_threads(threads);
#pragma omp parallel reduction(+ : failed)
    {
        int self = omp_get_thread_num();
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(self, &set);
        failed += sched_setaffinity(0, sizeof set, &set) != 0;
        if (argc > 4)
            failed += enter(argv[4 + self]) != 0;
    }
    if (failed)
        return 1;
    uint64_t sum = 0;
    double start_s = now_s();
    if (!strcmp(mode, "static")) {
#pragma omp parallel for schedule(static) reduction(+ : sum)
        for (long i = 0; i < iterations; i++)
            sum += work(i, rounds);
    } else if (!strcmp(mode, "dynamic")) {
#pragma omp parallel for schedule(dynamic) reduction(+ : sum)
        for (long i = 0; i < iterations; i++)
            sum += work(i, rounds);
    } else if (!strcmp(mode, "tasks")) {
#pragma omp parallel
#pragma omp single
        for (long i = 0; i < iterations; i++) {
#pragma omp task
            __asm__ volatile("");
        }
    } else {
        fprintf(stderr, "openmp_loop: mode \"%s\" is not static, dynamic or tasks\n", mode);
        return 2;
    }
    double seconds = now_s() - start_s;
    fprintf(stderr, "%llx\n", (unsigned long long)sum);
    printf("%.9f\n", seconds);
    return 0;
}
