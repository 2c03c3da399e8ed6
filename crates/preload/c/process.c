/* Beginning and end of processes and threads. */
#include <sys/stat.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "real.h"

#define POOL_THREADS 64
#define DESTRUCTOR_ROUNDS 3

__thread struct thread *self_ LIBRARY_LOCAL;
__thread int is_forking LIBRARY_LOCAL; /* the wrapper of fork is at work */
struct real real;
static int is_resolved;
static pthread_key_t end_key;
static struct thread *free_threads; /* those of ended threads are used again */
static struct thread *running;
static volatile char pool_lock;

void resolve(void)
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

/* An empty record of a thread; NULL if there is no memory. No malloc: the program may have its own. */
static struct thread *take_record(void)
{
    while (__atomic_test_and_set(&pool_lock, __ATOMIC_ACQUIRE)) {
        real.sched_yield();
    }
    if (!free_threads) {
        size_t bytes = POOL_THREADS * sizeof(struct thread);
        struct thread *pool = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int index = 0; pool != MAP_FAILED && index < POOL_THREADS; index++) {
            pool[index].next_free = free_threads;
            free_threads = &pool[index];
        }
    }
    struct thread *taken = free_threads;
    if (taken) {
        free_threads = taken->next_free;
        memset(taken, 0, sizeof *taken);
    }
    __atomic_clear(&pool_lock, __ATOMIC_RELEASE);
    return taken;
}

static void give_record(struct thread *record)
{
    while (__atomic_test_and_set(&pool_lock, __ATOMIC_ACQUIRE)) {
        real.sched_yield();
    }
    record->next_free = free_threads;
    free_threads = record;
    __atomic_clear(&pool_lock, __ATOMIC_RELEASE);
}

static void add_running(struct thread *self)
{
    while (__atomic_test_and_set(&pool_lock, __ATOMIC_ACQUIRE)) {
        real.sched_yield();
    }
    self->previous = NULL;
    self->following = running;
    if (running) {
        running->previous = self;
    }
    running = self;
    __atomic_clear(&pool_lock, __ATOMIC_RELEASE);
}

static void remove_running(struct thread *self)
{
    while (__atomic_test_and_set(&pool_lock, __ATOMIC_ACQUIRE)) {
        real.sched_yield();
    }
    if (self->previous) {
        self->previous->following = self->following;
    } else if (running == self) {
        running = self->following;
    }
    if (self->following) {
        self->following->previous = self->previous;
    }
    __atomic_clear(&pool_lock, __ATOMIC_RELEASE);
}

#define TRIES 1000 /* a handler of signals may end the process while its thread has the lock */

/* What other threads have worked by the end of their process: no other thread can report it. */
static void stop_running(void)
{
    for (int attempt = 0; __atomic_test_and_set(&pool_lock, __ATOMIC_ACQUIRE); attempt++) {
        if (attempt == TRIES) {
            return;
        }
        real.sched_yield();
    }
    for (struct thread *each = running; each; each = each->following) {
        clockid_t clock;
        struct timespec cpu;
        if (!pthread_getcpuclockid((pthread_t)each->head->identity, &clock) && !clock_gettime(clock, &cpu)) {
            uint64_t cpu_ns = (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec;
            each->head->stopped = (struct pair){ticks(), cpu_ns};
        }
    }
    __atomic_clear(&pool_lock, __ATOMIC_RELEASE);
}

/* A thread that will begin; NULL if none can be recorded. */
struct thread *new_thread(uint32_t creator)
{
    struct thread *made = control ? take_record() : NULL;
    if (made) {
        made->number = __atomic_fetch_add(&control->process[process_number].threads, 1, __ATOMIC_RELAXED);
        made->creator = creator;
        made->counter = -1;
    }
    return made;
}

/* The running thread is that one from here on. */
void begin_thread(struct thread *self, int is_continued)
{
    self_ = NO_THREAD; /* what is called below may call wrappers, as the program's own malloc does */
    if (!open_thread(self, is_continued)) {
        __atomic_fetch_add(&control->unused, 1, __ATOMIC_RELAXED);
        give_record(self);
        return;
    }
    watch_switches(self);
    add_running(self);
    self->last = self->head->begin.ticks;
    pthread_setspecific(end_key, self);
    open_counter(self);
    self_ = self;
    note_slowly(self, START, 0, hash((void *)(uintptr_t)self->head->identity), self->creator);
}

void end_thread(struct thread *self)
{
    remove_running(self);
    note_slowly(self, EXIT, 0, 0, 0);
    close_counter(self);
    self->head->last = clock_pair();
    prctl(PR_GET_NAME, self->head->name);
    self->head->is_ended = 1;
    self_ = NO_THREAD;
    forget_thread(self);
    give_record(self);
}

/* Other destructors of the thread's data may still call wrappers; so this one asks to be called late. */
static void destroy(void *value)
{
    struct thread *self = value;
    if (self_ != self) {
        return;
    }
    if (++self->rounds < DESTRUCTOR_ROUNDS) {
        pthread_setspecific(end_key, self);
    } else {
        end_thread(self);
    }
}

/* The first call of a wrapper by a thread that no wrapper has created. */
struct thread *enter(void)
{
    if (UNLIKELY(!__atomic_load_n(&is_resolved, __ATOMIC_ACQUIRE))) {
        resolve();
    }
    if (self_ == NO_THREAD || !control) {
        return NULL;
    }
    self_ = NO_THREAD;
    struct thread *self = new_thread(0);
    if (!self) {
        return NULL;
    }
    begin_thread(self, 0);
    return self_ == NO_THREAD ? NULL : self_;
}

/* The process's number: a new one, unless it is known and has executed this program. */
static int find_process(void)
{
    uint32_t pid = (uint32_t)getpid(), count = __atomic_load_n(&control->processes, __ATOMIC_ACQUIRE);
    for (uint32_t index = count < PROCESSES_MAX ? count : PROCESSES_MAX; index-- > 0;) {
        if (control->process[index].pid == pid && !control->process[index].is_ended) {
            process_number = index;
            return 1;
        }
    }
    process_number = __atomic_fetch_add(&control->processes, 1, __ATOMIC_ACQ_REL);
    if (process_number >= PROCESSES_MAX) {
        control = NULL;
        return 0;
    }
    control->process[process_number].pid = pid;
    return 0;
}

static struct control *map_control(void)
{
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/control", folder);
    int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) {
        return NULL;
    }
    void *mapped = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    /* Writes to mapped memory leave no date, and tools that collect changed files go by dates. */
    futimens(file, NULL);
    close(file);
    return mapped == MAP_FAILED || memcmp(mapped, FORM_MAGIC, 8) != 0 ? NULL : mapped;
}

/* The C library forks by itself, as in daemon(). */
static void forked(void)
{
    if (!is_forking) {
        after_fork(self_);
    }
}

__attribute__((constructor)) static void open_process(void)
{
    const char *where = getenv("AMPSCHED_RECORD");
    uint64_t begin_ns = thread_cpu_ns();
    if (!is_resolved) {
        resolve();
    }
    if (!where || strlen(where) >= sizeof folder || pthread_key_create(&end_key, destroy)) {
        return;
    }
    strcpy(folder, where);
    struct control *mapped = map_control();
    if (!mapped) {
        return;
    }
    open_clock();
    learn_costs(mapped);
    control = mapped;
    int is_continued = find_process();
    pthread_atfork(NULL, NULL, forked);
    struct thread *self = new_thread(0);
    if (self) {
        begin_thread(self, is_continued);
    }
    if ((uintptr_t)self_ > (uintptr_t)NO_THREAD && !is_continued && process_number == 0) {
        self_->head->startup_us = (uint32_t)(begin_ns / 1000);
    }
    /* That of the very first program is over when the recording begins. */
    if ((uintptr_t)self_ > (uintptr_t)NO_THREAD && (is_continued || process_number > 0)) {
        self_->head->own_ns += thread_cpu_ns() - begin_ns;
    }
}

/* The end of a process; other threads may still run. */
__attribute__((destructor)) void end_process(void)
{
    if (!control) {
        return;
    }
    if ((uintptr_t)self_ > (uintptr_t)NO_THREAD) {
        end_thread(self_);
    }
    stop_running();
    control->process[process_number].is_ended = 1;
}

/* In a child: only the thread lives that has called fork, `self`. What is mapped is still its parent's. */
void after_fork(struct thread *self)
{
    __atomic_clear(&pool_lock, __ATOMIC_RELEASE);
    if (!control) {
        return;
    }
    self_ = NO_THREAD;
    running = NULL;
    if ((uintptr_t)self > (uintptr_t)NO_THREAD) {
        forget_thread(self);
    }
    find_process();
    struct thread *child = new_thread(0);
    if (child) {
        begin_thread(child, 0);
    }
}

EXPORT void _exit(int code)
{
    if (!is_resolved) {
        resolve();
    }
    /* After vfork, a child that cannot execute its program ends inside its parent's memory. */
    if (control && control->process[process_number].pid == (uint32_t)getpid()) {
        end_process();
    }
    real._exit(code);
    __builtin_unreachable();
}

EXPORT void _Exit(int code)
{
    _exit(code);
}
