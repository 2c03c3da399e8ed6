/* What the parts of a storm share; see storm.c. */
#ifndef STORM_H
#define STORM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { WORKERS_MAX = 48, TARGETS = 5, REST_US = 10000, REST_US_MAX = 80000 };
#define NS_PER_S 1000000000LL

enum event {
    FORKS,
    VFORKS,
    THREADS_STARTED,
    EXECS,
    THREAD_EXECS,
    PIPE_TURNS,
    FUTEX_TURNS,
    PI_LOCKS,
    YIELDS,
    SUMS,
    SLEEPS,
    AFFINITIES,
    NICES,
    CLASSES,
    STOPS,
    KILLS,
    EVENTS
};

/* Seen by all processes. */
struct shared {
    _Atomic int64_t done[EVENTS];
    _Atomic int64_t progress[WORKERS_MAX][TARGETS];
    _Atomic unsigned turn[WORKERS_MAX];
    int64_t until_ns;
};

extern struct shared *shared;
extern uint64_t seed;
extern bool is_thin; /* workers rest after each step */
extern int cpus;

_Noreturn void fail(const char *what);
void check(bool holds, const char *what);
int64_t now_ns(void);
void rest(int64_t us);
uint64_t draw(uint64_t below);
void count(enum event event);
/* Whether the storm goes on; rests if it is thin. */
bool goes_on(void);
pid_t child(void);
/* A sum of squares, against its formula. */
void sum_up(unsigned long n);

/* A worker that changes affinities, priorities and classes of other processes, stops them, goes on and kills them. */
void torment(int self);

#endif
