/* Programs that GCC has compiled with OpenMP, by the calls of libgomp that stand in them.
 *
 * The real functions are those that the calling library would have found: several of a process may each bring a
 * libgomp of its own. */
#include <alloca.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "recorder.h"

typedef void share(void *);

#define PARALLEL_LOOPS(X) X(dynamic) X(guided) X(nonmonotonic_dynamic) X(nonmonotonic_guided)
#define PARALLEL_LOOPS_AT_RUN_TIME(X) X(runtime) X(nonmonotonic_runtime) X(maybe_nonmonotonic_runtime)
#define LOOPS(X) X(dynamic) X(guided) X(nonmonotonic_dynamic) X(nonmonotonic_guided)
#define LOOPS_AT_RUN_TIME(X) X(runtime) X(nonmonotonic_runtime) X(maybe_nonmonotonic_runtime)

#define PARALLEL_PARAMETERS share *, void *, unsigned, long, long, long, long, unsigned
#define PARALLEL_AT_RUN_TIME_PARAMETERS share *, void *, unsigned, long, long, long, unsigned
#define TASK_PARAMETERS share *, void *, void (*)(void *, void *), long, long, bool, unsigned, void **, int, void *

#define GOMP_FUNCTIONS(X) \
    X(void, parallel, (share *, void *, unsigned, unsigned)) \
    X(unsigned, parallel_reductions, (share *, void *, unsigned, unsigned)) \
    X(void, parallel_sections, (share *, void *, unsigned, unsigned, unsigned)) \
    X(void, parallel_loop_static, (PARALLEL_PARAMETERS)) \
    X(void, parallel_loop_dynamic, (PARALLEL_PARAMETERS)) \
    X(void, parallel_loop_guided, (PARALLEL_PARAMETERS)) \
    X(void, parallel_loop_nonmonotonic_dynamic, (PARALLEL_PARAMETERS)) \
    X(void, parallel_loop_nonmonotonic_guided, (PARALLEL_PARAMETERS)) \
    X(void, parallel_loop_runtime, (PARALLEL_AT_RUN_TIME_PARAMETERS)) \
    X(void, parallel_loop_nonmonotonic_runtime, (PARALLEL_AT_RUN_TIME_PARAMETERS)) \
    X(void, parallel_loop_maybe_nonmonotonic_runtime, (PARALLEL_AT_RUN_TIME_PARAMETERS)) \
    X(void, barrier, (void)) \
    X(bool, barrier_cancel, (void)) \
    X(void, loop_end, (void)) \
    X(bool, loop_end_cancel, (void)) \
    X(void, sections_end, (void)) \
    X(void, critical_start, (void)) \
    X(void, critical_end, (void)) \
    X(void, critical_name_start, (void **)) \
    X(void, critical_name_end, (void **)) \
    X(void, atomic_start, (void)) \
    X(void, atomic_end, (void)) \
    X(unsigned, sections_start, (unsigned)) \
    X(unsigned, sections_next, (void)) \
    X(bool, loop_dynamic_start, (long, long, long, long, long *, long *)) \
    X(bool, loop_guided_start, (long, long, long, long, long *, long *)) \
    X(bool, loop_nonmonotonic_dynamic_start, (long, long, long, long, long *, long *)) \
    X(bool, loop_nonmonotonic_guided_start, (long, long, long, long, long *, long *)) \
    X(bool, loop_runtime_start, (long, long, long, long *, long *)) \
    X(bool, loop_nonmonotonic_runtime_start, (long, long, long, long *, long *)) \
    X(bool, loop_maybe_nonmonotonic_runtime_start, (long, long, long, long *, long *)) \
    X(bool, loop_dynamic_next, (long *, long *)) \
    X(bool, loop_guided_next, (long *, long *)) \
    X(bool, loop_nonmonotonic_dynamic_next, (long *, long *)) \
    X(bool, loop_nonmonotonic_guided_next, (long *, long *)) \
    X(bool, loop_runtime_next, (long *, long *)) \
    X(bool, loop_nonmonotonic_runtime_next, (long *, long *)) \
    X(bool, loop_maybe_nonmonotonic_runtime_next, (long *, long *)) \
    X(void, task, (TASK_PARAMETERS))

struct gomp {
#define FIELD(result, name, parameters) result(*name) parameters;
    GOMP_FUNCTIONS(FIELD)
#undef FIELD
    int tells; /* it is LLVM's runtime, which tells what it does (ompt.c): here, nothing is noted */
};

/* LLVM's runtime has these functions, too, for programs that GCC has compiled. It asks for tools when it is called
 * first. */
static int tells(void *parallel, void *where)
{
    Dl_info of_parallel = {0}, of_own = {0};
    void *own = dlsym(where, "__kmpc_fork_call");
    int (*get_max_threads)(void);
    *(void **)&get_max_threads = dlsym(where, "omp_get_max_threads");
    if (!parallel || !own || !get_max_threads || !dladdr(parallel, &of_parallel) || !dladdr(own, &of_own) ||
        of_parallel.dli_fbase != of_own.dli_fbase) {
        return 0;
    }
    get_max_threads();
    return is_told_by_runtime();
}

static void find(struct gomp *gomp, void *where)
{
#define FIND(result, name, parameters) *(void **)&gomp->name = dlsym(where, "GOMP_" #name);
    GOMP_FUNCTIONS(FIND)
#undef FIND
    gomp->tells = tells(*(void **)&gomp->parallel, where);
}

#define CALLERS 256

/* Per calling library, where libgomp is not visible to all. */
static struct caller {
    void *base;
    struct gomp gomp;
} callers[CALLERS];
static struct gomp global;
static int is_found, caller_count;

/* Two threads may both find the same: no lock is held, as a fork would leave it held in the child. */
static struct gomp *of_caller(void *address)
{
    Dl_info info = {0};
    if (!dladdr(address, &info)) {
        return &global;
    }
    int count = __atomic_load_n(&caller_count, __ATOMIC_ACQUIRE);
    for (int index = count < CALLERS ? count : CALLERS; index-- > 0;) {
        if (__atomic_load_n(&callers[index].base, __ATOMIC_ACQUIRE) == info.dli_fbase) {
            return &callers[index].gomp;
        }
    }
    void *library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    int index = __atomic_fetch_add(&caller_count, 1, __ATOMIC_ACQ_REL);
    struct caller *caller = &callers[index < CALLERS ? index : CALLERS - 1];
    if (library) {
        find(&caller->gomp, library);
        __atomic_store_n(&caller->base, info.dli_fbase, __ATOMIC_RELEASE);
    }
    return &caller->gomp;
}

static struct gomp *gomp_of(void *address)
{
    if (UNLIKELY(!__atomic_load_n(&is_found, __ATOMIC_ACQUIRE))) {
        find(&global, RTLD_NEXT);
        __atomic_store_n(&is_found, 1, __ATOMIC_RELEASE);
    }
    return LIKELY(global.parallel != NULL) ? &global : of_caller(address);
}

#define GOMP gomp_of(__builtin_return_address(0))

/* The thread whose events are noted here. */
static struct thread *noting(const struct gomp *gomp)
{
    return UNLIKELY(gomp->tells) ? NULL : current();
}

/* A parallel region, by its number. */
struct region {
    share *body;
    void *data;
    long increment;
    uint32_t number;
};

static uint32_t regions;

#define PROCESSES_APART 0x9e3779b9u /* so that regions of several processes have different numbers */

uint32_t new_region(void)
{
    return __atomic_add_fetch(&regions, 1, __ATOMIC_RELAXED) + process_number * PROCESSES_APART;
}

static void run(void *data)
{
    struct region region = *(struct region *)data;
    struct thread *self = current();
    if (!self) {
        region.body(region.data);
        return;
    }
    uint32_t outer = self->omp_region;
    self->omp_region = region.number;
    self->omp_increment = region.increment;
    note(self, OMP_BEGIN, WAITED, region.number, 0); /* for a region */
    region.body(region.data);
    note(self, OMP_END, 0, region.number, 0);
    self->omp_region = outer;
}

/* The region lives on the stack of the thread that waits for its end. */
#define REGION(given_increment, call) \
    struct gomp *gomp = GOMP; \
    struct thread *self = noting(gomp); \
    struct region region = {body, data, given_increment, gomp->tells ? 0 : new_region()}; \
    share *shown = gomp->tells ? body : run; \
    void *given = gomp->tells ? data : &region; \
    (void)shown, (void)given; \
    if (self) { \
        note(self, OMP_FORK, 0, region.number, 0); \
    } \
    call; \
    if (self) { \
        note(self, OMP_JOIN, WAITED, region.number, 0); \
    }

EXPORT void GOMP_parallel(share *body, void *data, unsigned threads,
                          unsigned flags){REGION(1, gomp -> parallel(shown, given, threads, flags))}

EXPORT unsigned GOMP_parallel_reductions(share *body, void *data, unsigned threads, unsigned flags)
{
    /* Here libgomp reads the data itself, so the shares cannot be seen. */
    unsigned result;
    REGION(1, result = gomp->parallel_reductions(region.body, region.data, threads, flags))
    return result;
}

EXPORT void GOMP_parallel_sections(share *body, void *data, unsigned threads, unsigned count, unsigned flags){
    REGION(1, gomp -> parallel_sections(shown, given, threads, count, flags))}

#define PARALLEL_LOOP(name) \
    EXPORT void GOMP_parallel_loop_##name(share *body, void *data, unsigned threads, long start, long end, \
                                          long increment, long chunk, unsigned flags) \
    { \
        REGION(increment, gomp->parallel_loop_##name(shown, given, threads, start, end, increment, chunk, flags)) \
    }
#define PARALLEL_LOOP_AT_RUN_TIME(name) \
    EXPORT void GOMP_parallel_loop_##name(share *body, void *data, unsigned threads, long start, long end, \
                                          long increment, unsigned flags) \
    { \
        REGION(increment, gomp->parallel_loop_##name(shown, given, threads, start, end, increment, flags)) \
    }
PARALLEL_LOOP(static) PARALLEL_LOOPS(PARALLEL_LOOP) PARALLEL_LOOPS_AT_RUN_TIME(PARALLEL_LOOP_AT_RUN_TIME)

/* A thread takes a chunk of a loop; a region's end tells it that there is none. */
    static bool took(struct thread *self, bool is_there, const long *start, const long *end)
{
    if (self && is_there) {
        long step = self->omp_increment ? self->omp_increment : 1;
        note(self, OMP_CHUNK, 0, 0, (uint32_t)((*end - *start) / step));
    }
    return is_there;
}

static struct thread *in_loop(const struct gomp *gomp, long increment)
{
    struct thread *self = noting(gomp);
    if (self) {
        self->omp_increment = increment;
    }
    return self;
}

#define NEXT(name) \
    EXPORT bool GOMP_loop_##name##_next(long *first, long *last) \
    { \
        struct gomp *gomp = GOMP; \
        return took(noting(gomp), gomp->loop_##name##_next(first, last), first, last); \
    }
#define LOOP(name) \
    EXPORT bool GOMP_loop_##name##_start(long start, long end, long increment, long chunk, long *first, long *last) \
    { \
        struct gomp *gomp = GOMP; \
        bool is_there = gomp->loop_##name##_start(start, end, increment, chunk, first, last); \
        return took(in_loop(gomp, increment), is_there, first, last); \
    } \
    NEXT(name)
#define LOOP_AT_RUN_TIME(name) \
    EXPORT bool GOMP_loop_##name##_start(long start, long end, long increment, long *first, long *last) \
    { \
        struct gomp *gomp = GOMP; \
        bool is_there = gomp->loop_##name##_start(start, end, increment, first, last); \
        return took(in_loop(gomp, increment), is_there, first, last); \
    } \
    NEXT(name)
LOOPS(LOOP)
LOOPS_AT_RUN_TIME(LOOP_AT_RUN_TIME)

static unsigned took_section(const struct gomp *gomp, unsigned section)
{
    struct thread *self = noting(gomp);
    if (self && section) {
        note(self, OMP_CHUNK, 0, 0, 1);
    }
    return section;
}

EXPORT unsigned GOMP_sections_start(unsigned count)
{
    struct gomp *gomp = GOMP;
    return took_section(gomp, gomp->sections_start(count));
}

EXPORT unsigned GOMP_sections_next(void)
{
    struct gomp *gomp = GOMP;
    return took_section(gomp, gomp->sections_next());
}

/* Calls that wait. */
#define WAITING(name, kind, object, parameters, arguments) \
    EXPORT void GOMP_##name parameters \
    { \
        struct gomp *gomp = GOMP; \
        struct thread *self = noting(gomp); \
        if (self) { \
            before(self); \
        } \
        gomp->name arguments; \
        if (self) { \
            note(self, kind, WAITED, object, 0); \
        } \
    }
#define CANCELLABLE(name) \
    EXPORT bool GOMP_##name(void) \
    { \
        struct gomp *gomp = GOMP; \
        struct thread *self = noting(gomp); \
        if (self) { \
            before(self); \
        } \
        bool result = gomp->name(); \
        if (self) { \
            note(self, OMP_BARRIER, WAITED, self->omp_region, 0); \
        } \
        return result; \
    }
#define LEAVING(name, object, parameters, arguments) \
    EXPORT void GOMP_##name parameters \
    { \
        struct gomp *gomp = GOMP; \
        struct thread *self = noting(gomp); \
        if (self) { \
            note(self, OMP_CRITICAL_END, 0, hash(object), 0); \
        } \
        gomp->name arguments; \
    }

WAITING(barrier, OMP_BARRIER, self->omp_region, (void), ())
WAITING(loop_end, OMP_BARRIER, self->omp_region, (void), ())
WAITING(sections_end, OMP_BARRIER, self->omp_region, (void), ())
CANCELLABLE(barrier_cancel)
CANCELLABLE(loop_end_cancel)
WAITING(critical_start, OMP_CRITICAL, hash(&regions), (void), ())
LEAVING(critical_end, &regions, (void), ())
WAITING(critical_name_start, OMP_CRITICAL, hash(name), (void **name), (name))
LEAVING(critical_name_end, name, (void **name), (name))
WAITING(atomic_start, OMP_CRITICAL, hash(&global), (void), ())
LEAVING(atomic_end, &global, (void), ())

/* What stands before a task's own data, which libgomp copies with it. */
struct task {
    share *body;
    void (*copy)(void *, void *);
    void *source;
    long offset;
};

#define LARGE 1024 /* a task's data is copied on the stack, of which there may be little */
#define DETACHED (1u << 13) /* libgomp writes into such a task's data itself */

static void run_task(void *data)
{
    struct task *task = data;
    struct thread *self = current();
    if (self) {
        note(self, OMP_CHUNK, 0, hash((void *)(uintptr_t)task->body), 1);
    }
    task->body((char *)data + task->offset);
}

static void copy_task(void *to, void *from)
{
    struct task *task = from;
    memcpy(to, from, sizeof *task);
    task->copy((char *)to + task->offset, task->source);
}

EXPORT void GOMP_task(share *body, void *data, void (*copy)(void *, void *), long bytes, long align, bool is_deferred,
                      unsigned flags, void **depend, int priority, void *detach)
{
    struct gomp *gomp = GOMP;
    if (!noting(gomp) || flags & DETACHED || bytes > LARGE || align > 64 || align < 1) {
        gomp->task(body, data, copy, bytes, align, is_deferred, flags, depend, priority, detach);
        return;
    }
    long step = align < 16 ? 16 : align;
    long offset = ((long)sizeof(struct task) + step - 1) / step * step;
    char *room = alloca((size_t)(offset + bytes + step));
    room += (size_t)(-(uintptr_t)room % (uintptr_t)step);
    struct task task = {body, copy, data, offset};
    memcpy(room, &task, sizeof task);
    if (bytes > 0) {
        memcpy(room + offset, data, (size_t)bytes);
    }
    gomp->task(run_task, room, copy ? copy_task : NULL, offset + bytes, step, is_deferred, flags, depend, priority,
               detach);
}
