/* Time: ticks of the processor between events, the kernel's CPU time of a thread where it may have lost its core.
 *
 * It learns whether it has from the kernel's restartable sequences, which the C library registers for every thread: the
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

static struct pair opened; /* a moment at which both clocks were read */

static uint64_t ns_of(uint64_t ticks)
{
    return rate.ticks ? (uint64_t)((double)ticks * (double)rate.ns / (double)rate.ticks) : 0;
}

/* In a sandbox, where it may take a system call, it stands still. */
uint64_t monotonic_ns(void)
{
    static uint64_t last;
    struct timespec time;
    if (UNLIKELY(is_sandboxed)) {
        return last;
    }
    clock_gettime(CLOCK_MONOTONIC, &time);
    return last = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t thread_cpu_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* What the running thread has worked by now. In a sandbox by ticks, all but what has passed in a call that waits. */
struct reading read_cpu(struct thread *self, uint64_t now, unsigned flags)
{
    if (LIKELY(!is_sandboxed)) {
        self->read_ns = thread_cpu_ns();
    } else {
        uint64_t until = flags & WAITED ? self->last : now;
        self->read_ns += until > self->read_ticks ? ns_of(until - self->read_ticks) : 0;
        self->head->is_sandboxed = 1;
    }
    self->read_ticks = now;
    return (struct reading){self->read_ns, *self->core};
}

struct pair clock_pair(void)
{
    struct pair best = {0, 0};
    uint64_t shortest = UINT64_MAX;
    if (is_sandboxed) {
        uint64_t now = ticks();
        return (struct pair){now, opened.ns + ns_of(now - opened.ticks)};
    }
    for (int attempt = 0; attempt < 3; attempt++) {
        uint64_t begin = ticks(), ns = monotonic_ns(), length = ticks() - begin;
        if (length < shortest) {
            shortest = length;
            best = (struct pair){begin + length / 2, ns};
        }
    }
    return best;
}

/* Whether the C library can wait until then. Not inline: its headers say that nobody passes NULL, and it does not
 * look, so programs do. */
int is_moment(clockid_t clock, const struct timespec *until)
{
    return (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC) && until && until->tv_nsec >= 0 &&
           until->tv_nsec < 1000000000;
}

/* Whether the processor's ticks pass at one speed, on all cores, in every state of saving power. */
static int are_ticks_steady(void)
{
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
void open_clock(void)
{
    const char *wanted = getenv("AMPSCHED_RECORD_CLOCK");
    if (wanted && !strcmp(wanted, "kernel")) {
        return;
    }
    has_ticks = are_ticks_steady();
    const unsigned *size = dlsym(RTLD_DEFAULT, "__rseq_size");
    const ptrdiff_t *offset = dlsym(RTLD_DEFAULT, "__rseq_offset");
    if (has_ticks && SIGNATURE != 0 && size && *size && offset) {
        section.start = (uintptr_t)&section;
        section.length = 1;
        section.abort = (uintptr_t)&landing[1];
        area_offset = offset;
    }
}

/* Whether threads can detect that they have lost their core. */
int sees_switches(void)
{
    return area_offset != NULL;
}

static char *thread_pointer(void)
{
#if defined(__x86_64__)
    char *pointer; /* GCC has a builtin for it since 11 only */
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
    return pointer;
#else
    return __builtin_thread_pointer();
#endif
}

/* Lets the running thread see whether it loses its core. */
void watch_switches(struct thread *self)
{
    if (!area_offset) {
        self->rseq_cs = &always_switched;
        self->core = &unknown_core;
        return;
    }
    char *area = thread_pointer() + *area_offset;
    self->rseq_cs = (volatile uint64_t *)(area + AREA_SECTION);
    self->core = (const volatile uint32_t *)(area + AREA_CORE);
}

/* A moment at which the thread has had that much CPU time. */
static struct reading anchor(struct thread *self, uint64_t *now, unsigned flags)
{
    struct reading reading;
    for (int attempt = 0; attempt < 4; attempt++) {
        if (area_offset) {
            *self->rseq_cs = (uintptr_t)&mark;
        }
        *now = ticks();
        reading = read_cpu(self, *now, flags);
        if (!area_offset || is_unswitched(self)) {
            break;
        }
    }
    return reading;
}

#define PAIR_TICKS (1u << 28) /* some tenths of a second */

/* Whether it is how a runtime waits and wakes. */
static int is_inner(unsigned kind)
{
    return (kind >= LOCK && kind <= SPIN_UNLOCK) || (kind >= FUTEX_WAIT_EVENT && kind <= YIELD) || kind == ANCHOR;
}

/* Adds an event with a reading; also where there is no room, or a signal's handler runs. */
void note_slowly(struct thread *self, unsigned kind, unsigned flags, uint32_t object, uint32_t aux)
{
    uint32_t was_busy = self->is_busy;
    if (was_busy == HIDDEN && is_inner(kind)) {
        return;
    }
    if ((was_busy && was_busy != HIDDEN) || UNLIKELY(is_sandboxed && !has_ticks)) {
        __atomic_fetch_add(&self->head->lost_events, 1, __ATOMIC_RELAXED);
        return;
    }
    self->is_busy = 1;
    __asm__ volatile("" ::: "memory");
    int error = errno;
    if (self->end - self->next < 4) {
        next_chunk(self);
    }
    if (self->end - self->next < 2) {
        self->head->lost_events++;
    } else {
        uint64_t now;
        flags |= READING;
        struct reading reading = anchor(self, &now, flags);
        now = now < self->last ? self->last : now; /* another core, whose ticks are a little behind */
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
    self->is_busy = was_busy;
}

#define SCRATCH_BYTES (1u << 20) /* as much as a thread maps at a time: events meet cold memory */
#define BATCHES 31
#define ROUNDS 512
#define SLOW_ROUNDS 20

#define CELLS 1024 /* 4 KiB: they stay in the first cache */

/* What a program does between its calls: it calculates, changes memory, and decides in ways that cannot be foreseen. A
 * processor overlaps some of that with the calls, but less than with what only waits for memory, as an empty loop over
 * a volatile variable does: beside such a loop, events seem to cost nothing. */
static uint32_t work(uint32_t *cells, uint32_t value)
{
    for (uint32_t step = 0; step < 6; step++) {
        value = value * 1664525u + 1013904223u;
        cells[value >> 22] += step;
        value ^= value >> 31 ? step : 0;
    }
    return value;
}

/* Ticks of pairs of calls of the wrappers or of the functions themselves. */
static uint64_t pairs_of_calls(int (*lock)(pthread_mutex_t *), int (*unlock)(pthread_mutex_t *))
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    uint32_t cells[CELLS] = {0};
    uint32_t value = 1;
    uint64_t begin = ticks();
    for (int round = 0; round < ROUNDS; round++) {
        lock(&mutex);
        value = work(cells, value);
        unlock(&mutex);
        value = work(cells, value);
    }
    __asm__ volatile("" ::"r"(value), "m"(cells));
    return ticks() - begin;
}

/* The median of what the wrappers take more, per event: now and then the core is lost. */
static uint64_t cost_of_calls(struct thread *scratch)
{
    uint64_t costs[BATCHES];
    for (int batch = 0; batch < BATCHES; batch++) {
        note_slowly(scratch, ANCHOR, 0, 0, 0);
        uint64_t with = pairs_of_calls(pthread_mutex_lock, pthread_mutex_unlock);
        uint64_t without = pairs_of_calls(real.pthread_mutex_lock, real.pthread_mutex_unlock);
        uint64_t cost = with > without ? (with - without) / (2 * ROUNDS) : 0;
        int place = batch;
        for (; place > 0 && costs[place - 1] > cost; place--) {
            costs[place] = costs[place - 1];
        }
        costs[place] = cost;
    }
    return costs[BATCHES / 2];
}

/* Measures what an event costs, on a thread that is not recorded: takes some ms. */
static void measure_costs(void)
{
    size_t bytes = FIRST_SLOTS + SCRATCH_BYTES;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) {
        return;
    }
    struct slot *first = (struct slot *)(memory + FIRST_SLOTS);
    struct thread scratch = {.head = (struct head *)memory, .next = first, .end = (struct slot *)(memory + bytes)};
    scratch.head->last.ticks = ticks();
    watch_switches(&scratch);
    self_ = &scratch;
    if (area_offset) {
        fast_cost = cost_of_calls(&scratch);
    }
    scratch.next = first;
    slow_cost = UINT64_MAX;
    for (int attempt = 0; attempt < 5; attempt++) {
        uint64_t begin = ticks();
        for (int round = 0; round < SLOW_ROUNDS; round++) {
            note_slowly(&scratch, ANCHOR, 0, 0, 0);
        }
        uint64_t cost = (ticks() - begin) / SLOW_ROUNDS;
        slow_cost = cost < slow_cost ? cost : slow_cost;
    }
    self_ = NULL;
    munmap(memory, bytes);
}

/* What events cost, as the first process of the recording has measured it. */
void learn_costs(struct control *of_all)
{
    if (!__atomic_load_n(&of_all->rate.ticks, __ATOMIC_ACQUIRE)) {
        struct pair begin = clock_pair();
        measure_costs();
        struct pair end = clock_pair();
        of_all->fast_cost = fast_cost;
        of_all->slow_cost = slow_cost;
        of_all->rate.ns = end.ns - begin.ns;
        __atomic_store_n(&of_all->rate.ticks, end.ticks - begin.ticks, __ATOMIC_RELEASE);
    }
    opened = clock_pair();
    rate = of_all->rate;
    fast_cost = of_all->fast_cost;
    slow_cost = of_all->slow_cost;
    if (rate.ns) {
        short_ticks = (uint64_t)((double)CALLS_SHORTER_NS * (double)rate.ticks / (double)rate.ns);
    }
}
