/* Beginning and end of processes and threads. */
#include <fcntl.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "real.h"

__thread struct thread *self_ LIBRARY_LOCAL;
__thread int is_forking LIBRARY_LOCAL; /* the wrapper of fork is at work */
uint32_t process_number;
struct real real;
static int is_resolved;
static struct thread *recorded; /* of this process, the last one first */

static void resolve(void)
{
#define FIND(result, name, parameters) \
    if (!real.name) { \
        *(void **)&real.name = dlsym(RTLD_NEXT, #name); \
    }
#if defined(__x86_64__) && defined(__GLIBC__)
    /* Of these the C library keeps others for programs that are older than 2003. */
#define FIND_NEW(name) *(void **)&real.name = dlvsym(RTLD_NEXT, #name, "GLIBC_2.3.2");
    FIND_NEW(pthread_cond_wait)
    FIND_NEW(pthread_cond_timedwait)
    FIND_NEW(pthread_cond_signal)
    FIND_NEW(pthread_cond_broadcast)
#undef FIND_NEW
#endif
    LIBC_FUNCTIONS(FIND)
#undef FIND
    __atomic_store_n(&is_resolved, 1, __ATOMIC_RELEASE);
}

void resolve_once(void)
{
    if (UNLIKELY(!__atomic_load_n(&is_resolved, __ATOMIC_ACQUIRE))) {
        resolve();
    }
}

static void read_name(struct head *head)
{
    if (!is_sandboxed) {
        real.prctl(PR_GET_NAME, (unsigned long)head->name, 0UL, 0UL, 0UL);
    }
}

/* The CPU clock of a thread of this process, as the kernel numbers them. */
static clockid_t clock_of(int tid)
{
    return (clockid_t)(~(unsigned)tid << 3 | 6);
}

/* What other threads have worked by the end of their process: no other thread can report it. */
static void stop_running(void)
{
    struct thread *each = is_sandboxed ? NULL : __atomic_load_n(&recorded, __ATOMIC_ACQUIRE);
    for (; each; each = each->prev) {
        struct timespec cpu;
        if (!each->head->is_ended && each->tid && !clock_gettime(clock_of(each->tid), &cpu)) {
            uint64_t cpu_ns = (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec;
            each->head->stopped = (struct pair){ticks(), cpu_ns};
        }
    }
}

/* A thread that will begin; NULL if none can be recorded. */
struct thread *new_thread(uint32_t creator)
{
    if (!control) {
        return NULL;
    }
    uint32_t number = __atomic_fetch_add(&control->process[process_number].threads, 1, __ATOMIC_RELAXED);
    struct thread *made = first_chunk(number);
    if (!made) {
        __atomic_fetch_add(&control->refused, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    made->creator = creator;
    return made;
}

static void fill_head(struct thread *self, int is_continued)
{
    struct head *head = self->head;
    head->process = process_number;
    head->thread = self->number;
    head->pid = control->process[process_number].pid;
    if (!is_sandboxed) {
        head->parent_pid = (uint32_t)getppid();
        self->tid = (int)real.syscall(SYS_gettid);
        head->tid = (uint32_t)self->tid;
    }
    head->creator = self->creator;
    head->is_continued = (uint32_t)is_continued;
    head->identity = (uint64_t)pthread_self();
    head->fast_cost = fast_cost;
    head->slow_cost = slow_cost;
    head->rate = rate;
    head->clock = sees_switches() ? TICKS : KERNEL_CLOCK;
    head->begin = head->last = clock_pair();
    read_name(head);
    __asm__ volatile("" ::: "memory");
    memcpy(head->magic, FORM_MAGIC, sizeof head->magic);
}

/* The running thread is that one from here on. */
void begin_thread(struct thread *self, int is_continued)
{
    int error = errno;
    self_ = NO_THREAD; /* what is called below may call wrappers */
    fill_head(self, is_continued);
    watch_switches(self);
    self->last = self->read_ticks = self->head->begin.ticks;
    self->prev = __atomic_load_n(&recorded, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&recorded, &self->prev, self, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
    open_counter(self);
    self_ = self;
    note_slowly(self, START, 0, hash((void *)(uintptr_t)self->head->identity), self->creator);
    errno = error;
}

/* What destructors of the thread's data still do is noted behind it: only the last end counts. */
void end_thread(struct thread *self)
{
    int error = errno;
    self->is_busy = 0;
    note_slowly(self, EXIT, 0, 0, 0);
    close_counter(self);
    self->head->last = clock_pair();
    read_name(self->head);
    self->head->is_ended = 1;
    errno = error;
}

/* Set once the process has its number and its first thread is recorded: constructors of libraries have created threads
 * before, which go unseen until then. */
static int is_open;

/* The first call of a wrapper by a thread that no wrapper has created. */
struct thread *enter(void)
{
    resolve_once();
    if (self_ == NO_THREAD || !__atomic_load_n(&is_open, __ATOMIC_ACQUIRE) || !control) {
        return NULL;
    }
    self_ = NO_THREAD;
    struct thread *self = new_thread(0);
    if (!self) {
        return NULL;
    }
    begin_thread(self, 0);
    return self;
}

/* The process of an id that has not ended; its number, or PROCESSES_MAX. */
static uint32_t process_of(uint32_t pid)
{
    uint32_t count = __atomic_load_n(&control->processes, __ATOMIC_ACQUIRE);
    for (uint32_t index = count < PROCESSES_MAX ? count : PROCESSES_MAX; index-- > 0;) {
        if (control->process[index].pid == pid && !control->process[index].is_ended) {
            return index;
        }
    }
    return PROCESSES_MAX;
}

/* The process's number: a new one, unless it is known and has executed this program. Whether it is known. */
static int find_process(void)
{
    uint32_t pid = (uint32_t)getpid(), known = process_of(pid);
    if (known < PROCESSES_MAX) {
        process_number = known;
        return 1;
    }
    process_number = __atomic_fetch_add(&control->processes, 1, __ATOMIC_ACQ_REL);
    if (process_number >= PROCESSES_MAX) {
        control = NULL;
        return 0;
    }
    control->process[process_number].pid = pid;
    return 0;
}

/* A program that a sandboxed one executes is in its sandbox. */
static void inherit_sandbox(int is_continued)
{
    uint32_t from = is_continued ? process_number : process_of((uint32_t)getppid());
    if (from < PROCESSES_MAX && control->process[from].is_sandboxed) {
        notice_sandbox();
    }
}

/* The C library forks by itself, as in daemon(). */
static void forked(void)
{
    if (!is_forking) {
        after_fork();
    }
}

static void open_recording(const char *folder)
{
    uint64_t begin_ns = thread_cpu_ns();
    struct control *opened = open_store(folder);
    if (!opened) {
        return;
    }
    open_clock();
    learn_costs(opened);
    counts_blocks = real.syscall(SYS_faccessat, AT_FDCWD, "/proc/self/io", F_OK, 0) == 0;
    control = opened;
    int is_continued = find_process();
    if (!control) {
        return;
    }
    inherit_sandbox(is_continued);
    pthread_atfork(NULL, NULL, forked);
    struct thread *self = new_thread(0);
    if (!self) {
        return;
    }
    begin_thread(self, is_continued);
    __atomic_store_n(&is_open, 1, __ATOMIC_RELEASE);
    self->head->startup_us = (uint32_t)(begin_ns / 1000);
    uint64_t own_ns = thread_cpu_ns() - begin_ns;
    if (is_continued || process_number > 0) {
        self->head->own_ns += own_ns;
    } else { /* over when the recording begins */
        self->head->before_us = (uint32_t)(own_ns / 1000);
    }
}

__attribute__((constructor)) static void open_process(void)
{
    int error = errno;
    const char *folder = getenv("AMPSCHED_RECORD");
    resolve_once();
    if (folder) {
        open_recording(folder);
    }
    errno = error;
}

/* The end of a process; other threads may still run. */
void end_process(void)
{
    if (!control) {
        return;
    }
    if ((uintptr_t)self_ > (uintptr_t)NO_THREAD) {
        end_thread(self_);
        self_ = NO_THREAD; /* what other libraries do to end is nobody's event */
    }
    int error = errno;
    stop_running();
    errno = error;
    control->process[process_number].is_ended = 1;
}

__attribute__((destructor)) static void leave_process(void)
{
    if (control && (uintptr_t)self_ > (uintptr_t)NO_THREAD) {
        tell_unsent(self_);
    }
    end_process();
}

/* In a child: only the thread lives that has called fork. What it has written into is still its parent's. A sandbox's
 * child cannot even ask who it is. */
void after_fork(void)
{
    recorded = NULL;
    self_ = NO_THREAD;
    if (!control || is_sandboxed) {
        control = NULL;
        return;
    }
    find_process();
    forget_files(0, 2); /* daemon() has others there, and tells nobody */
    struct thread *child = new_thread(0);
    if (child) {
        begin_thread(child, 0);
    }
}

EXPORT void _exit(int code)
{
    resolve_once();
    /* After vfork, a child that cannot execute its program ends inside its parent's memory. */
    if (control && !is_sandboxed && control->process[process_number].pid == (uint32_t)getpid()) {
        end_process();
    }
    real._exit(code);
    __builtin_unreachable();
}

EXPORT void _Exit(int code)
{
    _exit(code);
}
