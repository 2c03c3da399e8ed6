/* Programs that use LLVM's libomp, as Clang compiles them: the runtime tells a tool what it does (OMPT, the interface
 * for tools of OpenMP 5.0 and later). The names and numbers below are those of the specification.
 *
 * What the runtime itself takes to wait and to wake its threads (mutexes, conditions, futexes) is no event: as long as
 * a thread is inside of it, such calls are hidden. */
#include <dlfcn.h>
#include <stdlib.h>

#include "recorder.h"

union data {
    uint64_t value;
    void *ptr;
};

typedef void (*entry)(void);
typedef entry (*lookup)(const char *);
typedef int (*set_callback)(int, entry);

struct start_tool_result {
    int (*initialize)(lookup, int, union data *);
    void (*finalize)(union data *);
    union data tool_data;
};

enum callback {
    THREAD_BEGIN = 1,
    THREAD_END = 2,
    PARALLEL_BEGIN = 3,
    PARALLEL_END = 4,
    TASK_CREATE = 5,
    TASK_SCHEDULE = 6,
    IMPLICIT_TASK = 7,
    SYNC_REGION_WAIT = 16,
    MUTEX_RELEASED = 17,
    WORK = 20,
    SYNC_REGION = 23,
    MUTEX_ACQUIRE = 26,
    MUTEX_ACQUIRED = 27,
    NEST_LOCK = 28,
    DISPATCH = 32
};

enum { WORKER = 2 };                                /* threads */
enum { SCOPE_BEGIN = 1, SCOPE_END = 2 };            /* endpoints */
enum { INITIAL_TASK = 1, EXPLICIT_TASK = 4 };       /* flags of tasks */
enum { LEAGUE = 0x40000000 };                       /* a flag of regions: teams, each with one thread so far */
enum { LOOP_DYNAMIC = 11, LOOP_OTHER = 13 };        /* work that is taken; guided is between them */
enum { LOOP_CHUNK = 3 };                            /* what is dispatched */
enum {                                              /* why threads meet */
       BARRIER_IMPLICIT = 2,
       TASKWAIT = 5,
       TASKGROUP = 6,
       REDUCTION = 7,
       BARRIER_OF_REGION = 9
};
enum {                                              /* mutexes; from OF_CRITICAL on they are no locks */
       BY_LOCK = 1,
       BY_TEST_LOCK,
       BY_NEST_LOCK,
       BY_TEST_NEST_LOCK,
       OF_CRITICAL,
       OF_ATOMIC,
       OF_ORDERED
};

struct iterations {
    uint64_t start, iterations;
};

/* Of a region: its number, and above it a hash of where it stands in the program.
 * Of a task: in an implicit one the number of its region; above it these. */
#define IS_EXPLICIT (1ull << 32)
#define HAS_STARTED (1ull << 33)
#define HAS_ENDED (1ull << 34)    /* an implicit task whose share is over */
#define IS_INSIDE (1ull << 35)    /* another task runs, called by the runtime, not by the program */
#define TAKES_CHUNKS (1ull << 36) /* it is in a dynamic loop */

static int is_told;

int is_told_by_runtime(void)
{
    return __atomic_load_n(&is_told, __ATOMIC_ACQUIRE);
}

/* Whether the thread that runs is inside the runtime. */
static void hide(struct thread *self, int is_hidden)
{
    self->is_busy = is_hidden ? HIDDEN : 0;
}

static void hide_this(int is_hidden)
{
    struct thread *self = current();
    if (self) {
        hide(self, is_hidden);
    }
}

static void begin_worker(int type, union data *data)
{
    (void)data;
    if (type == WORKER) {
        hide_this(1);
    }
}

static void end_worker(union data *data)
{
    (void)data;
    hide_this(0);
}

static void begin_region(union data *task, const void *frame, union data *region, unsigned threads, int flags,
                         const void *code)
{
    (void)task, (void)frame, (void)threads;
    struct thread *self = flags & LEAGUE ? NULL : current();
    uint32_t number = new_region();
    region->value = number | (uint64_t)hash(code) << 32;
    if (self) {
        note(self, OMP_FORK, 0, number, 0);
        hide(self, 1);
    }
}

static void end_region(union data *region, union data *task, int flags, const void *code)
{
    (void)task, (void)code;
    struct thread *self = flags & LEAGUE ? NULL : current();
    if (self) {
        hide(self, 0);
        note(self, OMP_JOIN, WAITED, (uint32_t)region->value, 0);
    }
}

static void begin_share(struct thread *self, const union data *task)
{
    hide(self, 0);
    note(self, OMP_BEGIN, WAITED, (uint32_t)task->value, 0);
}

static void end_share(struct thread *self, const union data *task)
{
    struct slot *before = self->next;
    note(self, OMP_END, 0, (uint32_t)task->value, 0);
    int is_read = self->next != before + 1;
    self->omp_end = self->next != before ? self->next - (is_read ? 2 : 1) : NULL;
    self->behind_omp_end = self->next;
    hide(self, 1);
}

/* A thread that waits for the others at the end of its share takes a task: the share goes on. What was noted last is
 * its end, which becomes a mere moment. */
static void continue_share(struct thread *self)
{
    struct slot *end = self->omp_end;
    if (end && self->next == self->behind_omp_end) {
        uint64_t rest = end->head & ~(uint64_t)UINT8_MAX;
        __atomic_store_n(&end->head, rest | ANCHOR, __ATOMIC_RELEASE);
    }
    self->omp_end = NULL;
}

/* Workers hear of the end late, when the next region begins: their share is over where they wait for the others. */
static void change_implicit_task(int endpoint, union data *region, union data *task, unsigned threads, unsigned index,
                                 int flags)
{
    (void)threads, (void)index;
    struct thread *self = flags & INITIAL_TASK || !task ? NULL : current();
    if (!self) {
        return;
    }
    if (endpoint == SCOPE_BEGIN && region) {
        task->value = (uint32_t)region->value;
        begin_share(self, task);
    } else if (endpoint == SCOPE_END && (uint32_t)task->value && !(task->value & HAS_ENDED)) {
        task->value |= HAS_ENDED;
        end_share(self, task);
    }
}

/* Before 5.1, all implicit barriers were of one kind: that of a region stands where the region does, or nowhere. */
static int is_end_of_region(int kind, const union data *region, const void *code)
{
    return kind == BARRIER_OF_REGION ||
           (kind == BARRIER_IMPLICIT && (!code || (region && region->value >> 32 == hash(code))));
}

static void wait_for_tasks(struct thread *self, int endpoint)
{
    if (endpoint == SCOPE_BEGIN) {
        before(self);
    }
    hide(self, endpoint == SCOPE_BEGIN);
}

/* A group of tasks is a region from its begin on; it waits only at its end. */
static void wait_in_region(int kind, int endpoint, union data *region, union data *task, const void *code)
{
    (void)region, (void)task, (void)code;
    struct thread *self = kind == TASKGROUP ? current() : NULL;
    if (self) {
        wait_for_tasks(self, endpoint);
    }
}

static void meet(int kind, int endpoint, union data *region, union data *task, const void *code)
{
    struct thread *self = kind == REDUCTION || kind == TASKGROUP ? NULL : current();
    if (!self) {
        return;
    }
    if (kind == TASKWAIT) {
        wait_for_tasks(self, endpoint);
        return;
    }
    /* The thread is still in the barrier of a region that it has ended: what follows tells it that it is over. */
    int is_over = task && task->value & HAS_ENDED;
    if (endpoint == SCOPE_BEGIN) {
        if (task && !is_over && (uint32_t)task->value && is_end_of_region(kind, region, code)) {
            task->value |= HAS_ENDED;
            end_share(self, task);
        } else if (!is_over) {
            before(self);
            hide(self, 1);
        }
    } else if (endpoint == SCOPE_END && !is_over && kind != BARRIER_OF_REGION && self->is_busy == HIDDEN && region) {
        hide(self, 0);
        note(self, OMP_BARRIER, WAITED, (uint32_t)region->value, 0);
    }
}

static void create_task(union data *task, const void *frame, union data *made, int flags, int has_dependences,
                        const void *code)
{
    (void)task, (void)frame, (void)has_dependences;
    if (flags & EXPLICIT_TASK) {
        made->value = IS_EXPLICIT | hash(code);
    }
}

/* A thread goes on with another task. */
static void switch_tasks(union data *prior, int status, union data *next)
{
    (void)status;
    struct thread *self = next ? current() : NULL;
    if (!self) {
        return;
    }
    int was_inside = self->is_busy == HIDDEN;
    if (prior && was_inside) {
        prior->value |= IS_INSIDE;
    }
    int is_explicit = (next->value & IS_EXPLICIT) != 0;
    if (is_explicit && prior && prior->value & HAS_ENDED) {
        continue_share(self);
    }
    if (is_explicit && !(next->value & HAS_STARTED)) {
        hide(self, 0);
        note(self, OMP_CHUNK, was_inside ? WAITED : 0, (uint32_t)next->value, 1);
        next->value |= HAS_STARTED;
    } else if (next->value & HAS_ENDED) {
        end_share(self, next);
    } else if (next->value & IS_INSIDE) {
        before(self);
        hide(self, 1);
    } else {
        hide(self, 0);
    }
    next->value &= ~IS_INSIDE;
}

static void begin_work(int type, int endpoint, union data *region, union data *task, uint64_t count, const void *code)
{
    (void)region, (void)count, (void)code;
    if (task && type >= LOOP_DYNAMIC && type <= LOOP_OTHER) {
        task->value = endpoint == SCOPE_BEGIN ? task->value | TAKES_CHUNKS : task->value & ~TAKES_CHUNKS;
    }
}

/* Blocks of static loops, and Clang's sections, are reported, too, but the recorder does not use them. */
static void dispatch(union data *region, union data *task, int kind, union data instance)
{
    (void)region;
    int is_taken = task && task->value & TAKES_CHUNKS && kind == LOOP_CHUNK;
    struct thread *self = is_taken ? current() : NULL;
    if (self) {
        const struct iterations *chunk = instance.ptr;
        note(self, OMP_CHUNK, 0, 0, (uint32_t)chunk->iterations);
    }
}

static int is_test(int kind)
{
    return kind == BY_TEST_LOCK || kind == BY_TEST_NEST_LOCK;
}

/* The runtime does not report failed tests. */
static void acquire_mutex(int kind, unsigned hint, unsigned how, uint64_t id, const void *code)
{
    (void)hint, (void)how, (void)id, (void)code;
    struct thread *self = is_test(kind) ? NULL : current();
    if (self) {
        before(self);
        hide(self, 1);
    }
}

static void have_mutex(int kind, uint64_t id, const void *code)
{
    (void)code;
    struct thread *self = current();
    if (!self) {
        return;
    }
    hide(self, 0);
    if (kind != OF_ORDERED) {
        note(self, kind < OF_CRITICAL ? LOCK : OMP_CRITICAL, is_test(kind) ? 0 : WAITED, hash((void *)(uintptr_t)id),
             is_test(kind) ? BY_TRYLOCK : 0);
    }
}

static void release_mutex(int kind, uint64_t id, const void *code)
{
    (void)code;
    struct thread *self = kind == OF_ORDERED ? NULL : current();
    if (self) {
        note(self, kind < OF_CRITICAL ? UNLOCK : OMP_CRITICAL_END, 0, hash((void *)(uintptr_t)id), 0);
    }
}

/* A lock that the thread has already: only the first time and the last one are events. */
static void nest_lock(int endpoint, uint64_t id, const void *code)
{
    (void)id, (void)code;
    if (endpoint == SCOPE_BEGIN) {
        hide_this(0);
    }
}

static int initialize(lookup find, int device, union data *tool)
{
    (void)device, (void)tool;
    hide_this(0);
    set_callback set = (set_callback)find("ompt_set_callback");
    if (!set) {
        return 0;
    }
#define SET(number, function) set(number, (entry)(function))
    SET(THREAD_BEGIN, begin_worker);
    SET(THREAD_END, end_worker);
    SET(PARALLEL_BEGIN, begin_region);
    SET(PARALLEL_END, end_region);
    SET(IMPLICIT_TASK, change_implicit_task);
    SET(TASK_CREATE, create_task);
    SET(TASK_SCHEDULE, switch_tasks);
    SET(SYNC_REGION, meet);
    SET(SYNC_REGION_WAIT, wait_in_region);
    SET(WORK, begin_work);
    SET(DISPATCH, dispatch);
    SET(MUTEX_ACQUIRE, acquire_mutex);
    SET(MUTEX_ACQUIRED, have_mutex);
    SET(MUTEX_RELEASED, release_mutex);
    SET(NEST_LOCK, nest_lock);
#undef SET
    __atomic_store_n(&is_told, 1, __ATOMIC_RELEASE);
    return 1;
}

static void finalize(union data *tool)
{
    (void)tool;
}

/* A tool of the program's own comes first. One in the program itself is found before this library; one in a library
 * that is visible to all is asked here; those that OMP_TOOL_LIBRARIES names would be asked after this one, so this one
 * stands back. Only a tool in a library that is loaded privately, together with a runtime of its own, is not found. */
EXPORT struct start_tool_result *ompt_start_tool(unsigned version, const char *runtime)
{
    static struct start_tool_result result = {initialize, finalize, {0}};
    struct start_tool_result *(*next)(unsigned, const char *);
    *(void **)&next = dlsym(RTLD_NEXT, "ompt_start_tool");
    struct start_tool_result *others = next ? next(version, runtime) : NULL;
    const char *libraries = getenv("OMP_TOOL_LIBRARIES");
    if (others || (libraries && *libraries) || !getenv("AMPSCHED_RECORD")) {
        return others;
    }
    hide_this(1); /* until the runtime has begun */
    return &result;
}
