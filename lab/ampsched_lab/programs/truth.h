/* What the programs of the truth check share: a calibrated unit of work, threads with a nice value,
 * and a report as JSON. See docs/explanation/truth.md. */
#ifndef TRUTH_H
#define TRUTH_H

#include <stdint.h>

#define WORKERS_MAX 32

/* One thread of a program. The first block is filled in by the program and its body, the second by run_workers. */
struct worker {
    const char *name;
    void (*body)(struct worker *);
    int index;        /* number within its group, for the body's use */
    int nice;         /* -20..19 */
    int cpu;          /* position in the list of allowed CPUs; -1: all of them */
    int64_t *late_ns;     /* how long after its time it went on, one entry per sleep; room is the body's */
    int64_t sleeps;
    int64_t missed;       /* jobs that were not done when the next was due */

    int64_t end_ns;       /* since the program's start */
    int64_t cpu_ns;       /* CPU time used in all */
    int64_t window_ns;    /* CPU time used until the first thread ended */
    int64_t voluntary;    /* times that it blocked */
    int64_t involuntary;  /* times that it was preempted */
};

/* Ends the program with a message. */
_Noreturn void fail(const char *what);

/* The value of argument `--name VALUE`, a whole number not below 1, or `fallback`. */
int64_t number_argument(int argc, char **argv, const char *name, int64_t fallback);

/* The text of argument `--name TEXT`, or `fallback`. */
const char *text_argument(int argc, char **argv, const char *name, const char *fallback);

/* Splits a comma-separated list of whole numbers; returns how many there were. */
int split_numbers(const char *text, int *numbers, int limit);

/* Uses the core for `iterations` steps of a chain of dependent multiplications. */
void spin(uint64_t iterations);

/* CLOCK_MONOTONIC in ns. */
int64_t now_ns(void);

/* Sleeps until a time of now_ns(). */
void sleep_until(int64_t ns);

/* Restricts the process to the CPUs of `--cpus` (default: those that it may use), measures the cost of one spin
 * iteration (the least of --calibrations, default 100; not at all if 0), runs the threads, waits for them, and prints
 * the report. Returns the exit code. */
int run_workers(int argc, char **argv, const char *program, struct worker *workers, int count);

#endif
