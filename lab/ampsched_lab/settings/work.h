/* What the programs of the proof of settings share: an amount of work, and their arguments. See plan.py. */
#ifndef WORK_H
#define WORK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 64

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void check(int is_right, const char *what)
{
    if (!is_right)
        fail(what);
}

/* A chain of dependent multiplications: four integer instructions a step. */
static inline void compute(int64_t steps)
{
    uint64_t x = (uint64_t)steps;
    while (steps-- > 0) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x));
    }
}

/* A size from half to one and a half times the mean, the same for equal numbers. */
static inline int64_t uneven(int64_t mean, uint64_t number)
{
    uint64_t mixed = (number + 1) * 0x9E3779B97F4A7C15u;
    mixed ^= mixed >> 29;
    mixed *= 0xBF58476D1CE4E5B9u;
    return mean / 2 + mean * (int64_t)(mixed >> 54) / 1024;
}

struct kind {
    const char *name;
    void (*body)(int threads);
};

/* Runs the kind that `PROGRAM KIND THREADS` names. */
static int run_kind(int argc, char **argv, const struct kind *kinds)
{
    check(argc == 3, "usage: PROGRAM KIND THREADS");
    int threads = atoi(argv[2]);
    check(threads >= 1 && threads <= THREADS_MAX, "THREADS is out of range");
    for (; kinds->name; kinds++)
        if (strcmp(kinds->name, argv[1]) == 0) {
            kinds->body(threads);
            return 0;
        }
    fail("there is no such KIND");
}

#endif
