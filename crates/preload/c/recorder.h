/* What the wrappers share. Every wrapper asks `current()` first: without a thread that is recorded, it only calls the
 * real function. */
#ifndef AMPSCHED_RECORDER_H
#define AMPSCHED_RECORDER_H

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <time.h>

#include "form.h"

#define EXPORT __attribute__((visibility("default")))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define LIBRARY_LOCAL __attribute__((tls_model("initial-exec")))
#define CALLS_SHORTER_NS 20000 /* input and output that takes less is no event, but at ends of streams */

/* Details of IO: as in crates/recording/src/model.rs. */
enum io { READS, WRITES, POLLS, OTHER, INTERRUPTED, STORAGE };
/* How long a sleep lasts: a time, until a time, or until a timer's next period; as there. */
enum sleep { SLEEP_FOR, SLEEP_UNTIL, SLEEP_PERIOD };

/* A recorded thread. It lives in the thread's first chunk, for ever. */
struct thread {
    uint64_t last;                /* ticks of its last event */
    volatile uint64_t *rseq_cs;   /* the kernel clears it when the thread loses its core */
    const volatile uint32_t *core;
    struct slot *next, *end;      /* the free part of its chunk */
    volatile uint32_t is_busy;    /* a signal's handler finds this thread inside the recorder; or HIDDEN */
    uint32_t number, sequence;    /* of its chunks */
    uint32_t has_no_room;         /* there was no next chunk */
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
    union {                       /* of files.c and sockets.c: nothing big lies on the program's stack */
        struct stat status;
        struct sockaddr_un address;
        struct rusage usage;
        struct statfs system;
    } answer;
    uint64_t blocks_read; /* of disks, when a wait for one was last looked at */
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

/* Fills the next slot, which must be free. */
static inline void append(struct thread *self, uint64_t now, uint64_t what, uint32_t object, uint32_t aux)
{
    struct slot *slot = self->next;
    slot->object = object;
    slot->aux = aux;
    __atomic_store_n(&slot->head, what | (now - self->last) << 16, __ATOMIC_RELEASE);
    self->last = now;
    self->next = slot + 1;
}

/* Adds an event that ends now. */
static inline void note(struct thread *self, unsigned kind, unsigned flags, uint32_t object, uint32_t aux)
{
    if (LIKELY(is_unswitched(self) && !self->is_busy && self->next < self->end)) {
        self->is_busy = 1;
        __asm__ volatile("" ::: "memory");
        append(self, ticks(), kind | flags << 8, object, aux);
        __asm__ volatile("" ::: "memory");
        self->is_busy = 0;
        return;
    }
    note_slowly(self, kind, flags, object, aux);
}

/* Adds an event that has happened at `then`, a moment behind `before`: in a call that has returned since. */
static inline void note_at(struct thread *self, uint64_t then, unsigned kind, uint32_t object, uint32_t aux)
{
    if (UNLIKELY(self->is_busy || self->next >= self->end)) {
        note_slowly(self, kind, 0, object, aux);
        return;
    }
    self->is_busy = 1;
    __asm__ volatile("" ::: "memory");
    /* A signal's handler may have been noted meanwhile. */
    append(self, then > self->last ? then : self->last, kind, object, aux);
    __asm__ volatile("" ::: "memory");
    self->is_busy = 0;
}

/* Before a call that may block: from here on, time without a core is the call's. There is room for what it notes. */
static inline void before(struct thread *self)
{
    int is_filled = self->end - self->next < 4 && !self->has_no_room;
    if (UNLIKELY(!is_unswitched(self) || is_filled)) {
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

/* Makes a call that may block, and tells of it: `tell` knows the thread, when it began, and its result. */
#define TOLD(type, call, tell) \
    struct thread *self = current(); \
    if (UNLIKELY(!self)) { \
        return call; \
    } \
    before(self); \
    uint64_t begin = ticks(); \
    type result = call; \
    tell; \
    return result

/* How a call that failed or read nothing has ended: by a signal or the end of all who could write to a pipe, perhaps a
 * child has ended. */
static inline enum io ended(ssize_t result, enum io aux)
{
    int is_ended = (result < 0 && errno == EINTR) || (aux == READS && result == 0);
    return is_ended ? INTERRUPTED : aux;
}

/* files.c: what a file descriptor is. The id of a stream or a counter is the same in all processes. SIGNALS is one at
 * which signals are read (signalfd). */
enum file { UNKNOWN_FILE, OTHER_FILE, PIPE, COUNTER, SOCKET, STORED, TIMER, SIGNALS, FILE_KINDS };
extern int counts_blocks; /* whether the kernel counts what each thread reads of disks */
uint32_t file_of(struct thread *self, int file);
void forget_files(int from, int to);
int watched_file(int epoll, uint64_t data);
void has_read(struct thread *self, int file, uint64_t begin, ssize_t bytes);
void has_waited(struct thread *self, uint64_t begin, uint32_t object, ssize_t result, enum io aux);
void has_peeked(struct thread *self, int file, uint64_t begin, ssize_t bytes);
void has_stored(struct thread *self, int file, uint64_t begin, ssize_t bytes);
void has_written(struct thread *self, int file, uint64_t begin, ssize_t bytes);
static inline enum file kind_of(uint32_t id)
{
    return (enum file)(id % FILE_KINDS);
}

static inline int is_stream(uint32_t id)
{
    return kind_of(id) == PIPE || kind_of(id) == SOCKET;
}

/* stdio.c */
void tell_unsent(struct thread *self);

/* Regions of OpenMP are numbered (gomp.c); LLVM's runtime tells what it does (ompt.c). */
uint32_t new_region(void);
int is_told_by_runtime(void);

#endif
