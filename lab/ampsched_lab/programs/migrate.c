/* What refilling caches takes after a migration.
 *
 * `migrate --cpus FROM,TO KIB POLLUTE_KIB`: lines of a working set of KIB are loaded in a random order on TO: when the
 * thread has just come from FROM, where it used them, and again when it has used them on TO. Before each round TO's
 * caches are filled with POLLUTE_KIB of something else. A line of JSON: how much longer the
 * first took, in ns, the median of some rounds. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LINE 64
#define ROUNDS 21
#define PASSES 12

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

static void move_to(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        perror("sched_setaffinity");
        exit(1);
    }
}

static uint64_t state = 88172645463325252UL;
static volatile unsigned char sink;

/* Loads so many lines of a buffer of a power of two of lines, chosen at random. */
static double loads(const unsigned char *buffer, uint64_t lines, uint64_t count)
{
    unsigned char sum = 0;
    double started = now_ns();
    for (uint64_t i = 0; i < count; i++) {
        state = state * 6364136223846793005UL + 1442695040888963407UL;
        sum += buffer[((state >> 33) & (lines - 1)) * LINE];
    }
    sink = sum;
    return now_ns() - started;
}

static int compare(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
    int from, to;
    if (argc != 5 || sscanf(argv[2], "%d,%d", &from, &to) != 2) {
        fprintf(stderr, "usage: migrate --cpus FROM,TO KIB POLLUTE_KIB\n");
        return 2;
    }
    uint64_t lines = strtoul(argv[3], NULL, 10) * 1024 / LINE, others = strtoul(argv[4], NULL, 10) * 1024 / LINE;
    unsigned char *own = aligned_alloc(4096, lines * LINE), *other = aligned_alloc(4096, others * LINE);
    for (uint64_t i = 0; i < lines * LINE; i += LINE)
        own[i] = 1;
    for (uint64_t i = 0; i < others * LINE; i += LINE)
        other[i] = 1;
    static double more[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        move_to(to);
        for (uint64_t line = 0; line < 2 * others; line++)
            sink = other[line % others * LINE];
        move_to(from);
        loads(own, lines, PASSES * lines);
        move_to(to);
        double cold = loads(own, lines, PASSES * lines);
        more[round] = cold - loads(own, lines, PASSES * lines);
    }
    qsort(more, ROUNDS, sizeof *more, compare);
    printf("{\"more_ns\": %.0f}\n", more[ROUNDS / 2]);
    return 0;
}
