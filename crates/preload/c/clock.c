/* Time: ticks of the processor between events, the kernel's CPU time of a thread where it may have lost its core.
 *
 * Whether it has is told by the kernel's restartable sequences, which the C library registers for every thread: the
 * pointer to a section is cleared when the thread is interrupted outside of it. The section here holds no code. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <cpuid.h>
#define SIGNATURE 0x53053053u
#elif defined(__aarch64__)
#define SIGNATURE 0xd428bc00u
#else
#define SIGNATURE 0u
#endif

#include "real.h"

/* include/uapi/linux/rseq.h: the fields of a thread's area, and a section. */
#define AREA_CORE 4
#define AREA_SECTION 8
struct section {
    uint32_t version, flags;
    uint64_t start, length, abort;
};

int has_ticks;
uint64_t short_ticks = CALLS_SHORTER_NS;
uint64_t fast_cost, slow_cost;
struct pair rate;

/* The kernel wants the signature before the place at which a section goes on that was interrupted. */
static const uint32_t landing[2] = {SIGNATURE, 0};
static struct section section __attribute__((aligned(32)));
extern uint64_t mark __attribute__((alias("section")));
static const ptrdiff_t *area_offset;
static volatile uint64_t always_switched;
static const volatile uint32_t unknown_core = UINT32_MAX;

uint64_t monotonic_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t thread_cpu_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

struct pair clock_pair(void) {
    struct pair best = {0, 0};
    uint64_t shortest = UINT64_MAX;
    for (int attempt = 0; attempt < 3; attempt++) {
        uint64_t begin = ticks(), ns = monotonic_ns(), length = ticks() - begin;
        if (length < shortest) {
            shortest = length;
            best = (struct pair){begin + length / 2, ns};
        }
    }
    return best;
}

/* Whether the processor's ticks pass at one speed, on all cores, in every state of saving power. */
static int are_ticks_steady(void) {
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & 1u << 8);
#elif defined(__aarch64__)
    return 1;
#else
    return 0;
#endif
}

/* Decides which clocks are used. AMPSCHED_RECORD_CLOCK=kernel: those that work everywhere. */
void open_clock(void) {
    const char *wanted = getenv("AMPSCHED_RECORD_CLOCK");
    if (wanted && !strcmp(wanted, "kernel")) {
        return;
    }
    has_ticks = are_ticks_steady();
    const unsigned *size = dlsym(RTLD_DEFAULT, "__rseq_size");
    const ptrdiff_t *offset = dlsym(RTLD_DEFAULT, "__rseq_offset");
    if (has_ticks && SIGNATURE && size && *size && offset) {
        section.start = (uintptr_t)&section;
        section.length = 1;
        section.abort = (uintptr_t)&landing[1];
        area_offset = offset;
    }
}

/* Whether threads are told that they have lost their core. */
int sees_switches(void) {
    return area_offset != NULL;
}

/* Lets the running thread see whether it loses its core. */
void watch_switches(struct thread *self) {
    if (!area_offset) {
        self->rseq_cs = &always_switched;
        self->core = &unknown_core;
        return;
    }
    char *area = (char *)__builtin_thread_pointer() + *area_offset;
    self->rseq_cs = (volatile uint64_t *)(area + AREA_SECTION);
    self->core = (const volatile uint32_t *)(area + AREA_CORE);
}

/* A moment at which the thread has had that much CPU time. */
static struct reading anchor(struct thread *self, uint64_t *now) {
    struct reading reading;
    for (int attempt = 0; attempt < 4; attempt++) {
        if (area_offset) {
            *self->rseq_cs = (uintptr_t)&mark;
        }
        *now = ticks();
        reading = (struct reading){thread_cpu_ns(), *self->core};
        if (!area_offset || is_unswitched(self)) {
            break;
        }
    }
    return reading;
}

#define PAIR_TICKS (1u << 28) /* some tenths of a second */

/* Adds an event with a reading; also where there is no room, or a signal's handler runs. */
void note_slowly(struct thread *self, unsigned kind, unsigned flags, uint32_t object, uint32_t aux) {
    if (self->is_busy) {
        __atomic_fetch_add(&self->head->lost_events, 1, __ATOMIC_RELAXED);
        return;
    }
    self->is_busy = 1;
    __asm__ volatile("" ::: "memory");
    int error = errno;
    if (self->end - self->next < 4) {
        next_window(self);
    }
    if (self->end - self->next < 2) {
        self->head->lost_events++;
    } else {
        uint64_t now;
        flags |= READING | (is_unswitched(self) ? 0 : SWITCHED);
        struct reading reading = anchor(self, &now);
        struct slot *slot = self->next;
        memcpy(slot + 1, &reading, sizeof reading);
        slot->object = object;
        slot->aux = aux;
        __atomic_store_n(&slot->head, kind | flags << 8 | (now - self->last) << 16, __ATOMIC_RELEASE);
        self->last = now;
        self->next = slot + 2;
        if (now - self->head->last.ticks > PAIR_TICKS) {
            self->head->last = clock_pair();
        }
    }
    errno = error;
    __asm__ volatile("" ::: "memory");
    self->is_busy = 0;
}

#define ROUNDS 500

/* Ticks of a pair of calls of the wrapper or of the function itself. */
static uint64_t pair_of_calls(int (*lock)(pthread_mutex_t *), int (*unlock)(pthread_mutex_t *)) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    uint64_t best = UINT64_MAX;
    for (int attempt = 0; attempt < 3; attempt++) {
        uint64_t begin = ticks();
        for (int round = 0; round < ROUNDS; round++) {
            lock(&mutex);
            unlock(&mutex);
        }
        uint64_t length = (ticks() - begin) / ROUNDS;
        best = length < best ? length : best;
    }
    return best;
}

/* Measures what an event costs, on a thread that nobody sees. */
void measure_costs(void) {
    struct pair begin = clock_pair();
    size_t bytes = HEAD_BYTES + 16 * ROUNDS * sizeof(struct slot);
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) {
        return;
    }
    struct thread scratch = {.head = (struct head *)memory, .next = (struct slot *)(memory + HEAD_BYTES)};
    scratch.end = (struct slot *)(memory + bytes);
    watch_switches(&scratch);
    self_ = &scratch;
    note_slowly(&scratch, ANCHOR, 0, 0, 0);
    uint64_t with = pair_of_calls(pthread_mutex_lock, pthread_mutex_unlock);
    uint64_t without = pair_of_calls(real.pthread_mutex_lock, real.pthread_mutex_unlock);
    fast_cost = with > without ? (with - without) / 2 : 0;
    scratch.next = (struct slot *)(memory + HEAD_BYTES);
    uint64_t slow = ticks();
    for (int round = 0; round < 100; round++) {
        note_slowly(&scratch, ANCHOR, 0, 0, 0);
    }
    slow_cost = (ticks() - slow) / 100;
    self_ = NULL;
    munmap(memory, bytes);
    struct pair end = clock_pair();
    rate = (struct pair){end.ticks - begin.ticks, end.ns - begin.ns};
    if (rate.ns) {
        short_ticks = (uint64_t)((double)CALLS_SHORTER_NS * (double)rate.ticks / (double)rate.ns);
    }
}
