/* What the wrappers share. Every wrapper asks `current()` first: without a thread that is recorded, it only calls the
 * real function. */
#ifndef AMPSCHED_RECORDER_H
#define AMPSCHED_RECORDER_H

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "form.h"

#define EXPORT __attribute__((visibility("default")))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define LIBRARY_LOCAL __attribute__((tls_model("initial-exec")))
#define CALLS_SHORTER_NS 20000 /* input and output that takes less is no event */

/* A recorded thread. It lives in the thread's first chunk, for ever. */
struct thread {
    uint64_t last;                /* ticks of its last event */
    volatile uint64_t *rseq_cs;   /* the kernel clears it when the thread loses its core */
    const volatile uint32_t *core;
    struct slot *next, *end;      /* the free part of its chunk */
    volatile uint32_t is_busy;    /* a signal's handler finds this thread inside the recorder; or HIDDEN */
    uint32_t number, sequence;    /* of its chunks */
    uint32_t creator;
    int counter;                  /* file descriptor of the instructions' counter, or -1 */
    uint64_t counter_id;
    int tid;                      /* 0 if it is not known */
    struct head *head;
    uint64_t read_ticks, read_ns; /* its last reading */
    int64_t omp_increment;
    uint32_t omp_region;          /* of libgomp, in which the thread has a share */
    struct slot *omp_end, *behind_omp_end; /* the end of a share of LLVM's runtime, and what follows it */
    void *(*routine)(void *);
    void *argument;
    struct thread *prev;          /* which this process has recorded */
};

#define HIDDEN 2      /* inside a runtime whose own ways to wait and to wake are no events */
#define BY_TRYLOCK 2  /* `aux` of a lock that a try has taken */

/* The thread that runs; NULL before its first call of a wrapper, NO_THREAD if it is not recorded. */
extern __thread struct thread *self_ LIBRARY_LOCAL;
#define NO_THREAD ((struct thread *)1)

extern uint64_t mark;          /* what stands in rseq_cs as long as the thread keeps its core */
extern int has_ticks;          /* whether ticks are those of the processor; else ns of CLOCK_MONOTONIC */
extern uint64_t short_ticks;   /* CALLS_SHORTER_NS */

struct thread *enter(void);
void note_slowly(struct thread *self, unsigned kind, unsigned flags, uint32_t object, uint32_t aux);
void next_chunk(struct thread *self);
uint64_t monotonic_ns(void);
uint64_t thread_cpu_ns(void);

static inline struct thread *current(void)
{
    struct thread *self = self_;
    if (UNLIKELY((uintptr_t)self <= (uintptr_t)NO_THREAD)) {
        return enter();
    }
    return self;
}

static inline uint64_t ticks(void)
{
#if defined(__x86_64__)
    if (LIKELY(has_ticks)) {
        return __builtin_ia32_rdtsc();
    }
#elif defined(__aarch64__)
    uint64_t value;
    __asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(value));
    return value;
#endif
    return monotonic_ns();
}

/* 32 bits that differ for different addresses, as good as always. */
static inline uint32_t hash(const void *address)
{
    uint64_t value = (uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15u;
    return (uint32_t)(value >> 32) | 1;
}

static inline int is_unswitched(const struct thread *self)
{
    return *self->rseq_cs == (uintptr_t)&mark;
}

/* Adds an event that ends now. */
static inline void note(struct thread *self, unsigned kind, unsigned flags, uint32_t object, uint32_t aux)
{
    if (LIKELY(is_unswitched(self) && !self->is_busy && self->next < self->end)) {
        self->is_busy = 1;
        __asm__ volatile("" ::: "memory");
        uint64_t now = ticks();
        struct slot *slot = self->next;
        slot->object = object;
        slot->aux = aux;
        __atomic_store_n(&slot->head, kind | flags << 8 | (now - self->last) << 16, __ATOMIC_RELEASE);
        self->last = now;
        self->next = slot + 1;
        __asm__ volatile("" ::: "memory");
        self->is_busy = 0;
        return;
    }
    note_slowly(self, kind, flags, object, aux);
}

/* Before a call that may block: from here on, time without a core is the call's. */
static inline void before(struct thread *self)
{
    if (UNLIKELY(!is_unswitched(self))) {
        note_slowly(self, ANCHOR, 0, 0, 0);
    }
}

/* After a call that may have blocked. */
static inline void after(struct thread *self, unsigned kind, unsigned flags, const void *object, uint32_t aux)
{
    note(self, kind, flags | WAITED, hash(object), aux);
}

/* process.c: a recorded thread's begin and end; `creator` is 1 + the creating thread's number. */
struct thread *new_thread(uint32_t creator);
void begin_thread(struct thread *self, int is_continued);
void end_thread(struct thread *self);
void end_process(void);
void after_fork(void);
void resolve_once(void);
extern __thread int is_forking LIBRARY_LOCAL;
extern uint32_t process_number;

/* store.c: memory for events. */
struct control *open_store(const char *folder);
struct thread *first_chunk(uint32_t number);
extern struct control *control;

/* clock.c, counter.c */
void learn_costs(struct control *of_all);
void open_clock(void);
void watch_switches(struct thread *self);
struct reading read_cpu(struct thread *self, uint64_t now, unsigned flags);
struct pair clock_pair(void);
int is_moment(clockid_t clock, const struct timespec *until);
int sees_switches(void);
extern uint64_t fast_cost, slow_cost;
extern struct pair rate;
void open_counter(struct thread *self);
void close_counter(struct thread *self);

/* sandbox.c: whether the process may be killed for system calls that it does not make itself. */
extern int is_sandboxed;
void notice_sandbox(void);

/* Regions of OpenMP are numbered (gomp.c); LLVM's runtime tells what it does (ompt.c). */
uint32_t new_region(void);
int is_told_by_runtime(void);

#endif
