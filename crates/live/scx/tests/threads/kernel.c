/* SPDX-License-Identifier: GPL-2.0-only */
/* What the scheduler in the kernel does when it is called (bpf/calls.h), called by many CPUs at once: each is a thread
 * of this program, others change the plan and look after everything. The kernel around it is modelled after
 * kernel/sched/ext.c of Linux 6.18 as far as locks go: each CPU has a run queue with a lock, under which all that
 * happens to its tasks is told; a task is sent only if the scheduler has it.
 *
 * Reads an empty state (tests/threads/main.rs). Ends with 1 and words if a task is lost or the books are wrong. */
#include "calls.h"

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CPUS_MAX 16
#define TASKS_MAX 64
#define NO_TASK (-1)

struct lock_word lock_words[LOCKS];

enum place { ASLEEP, WAKING, QUEUEING, CUSTODY, SENT, LOCAL, ON_CPU };

struct task {
    atomic_int place;
    atomic_int cpu;
    u32 thread;
    bool over; /* its turn: of whoever has its run queue's lock */
    u64 turns;
};

struct list {
    int tasks[TASKS_MAX];
    int count;
};

struct cpu {
    pthread_mutex_t queue; /* its run queue's lock */
    int current;
    struct list local;
    pthread_mutex_t sent_lock;
    struct list sent;
    atomic_bool idle;
    atomic_bool kicked;
    atomic_bool interrupted;
    unsigned int seed;
};

static sched_t *s;
static struct cpu cpus[CPUS_MAX];
static struct task tasks[TASKS_MAX];
static int cpu_count, task_count;
static atomic_bool ends; /* nobody wakes up any more, and the plan is as at first */
static atomic_bool is_over_for_all;

static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static u64 now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (u64)now.tv_sec * 1000000000 + (u64)now.tv_nsec;
}

static bool chance(unsigned int *seed, int one_in)
{
    return rand_r(seed) % one_in == 0;
}

static void append(struct list *list, int task)
{
    list->tasks[list->count++] = task;
}

static int take_first(struct list *list)
{
    if (list->count == 0)
        return NO_TASK;
    int first = list->tasks[0];
    memmove(list->tasks, list->tasks + 1, (size_t)--list->count * sizeof(int));
    return first;
}

/* scheduler/cores.h: tell() */
static void tell_cores(call_t *c)
{
    collect(s, c);
    for (int cpu = 0; cpu < cpu_count; cpu++) {
        if (has(&c->interrupt, cpu))
            atomic_store(&cpus[cpu].interrupted, true);
        if (has(&c->wake, cpu))
            atomic_store(&cpus[cpu].kicked, true);
    }
    empty(s, &c->wake);
    empty(s, &c->interrupt);
}

static call_t *call_on(int cpu)
{
    return call_of(s, cpu, now_ns());
}

/* scheduler/enqueue.h: the run queue of the task's CPU is locked. `here`: the CPU that executes this. */
static void ops_enqueue(int here, int task, bool wakeup)
{
    int home = atomic_load(&tasks[task].cpu);
    atomic_store(&tasks[task].place, QUEUEING);
    tasks[task].over = false;
    call_t *c = call_on(here);
    c->here = home;
    c->here_idles = wakeup && atomic_exchange(&cpus[home].idle, false);
    u32 core = hand_over(s, c, tasks[task].thread);
    if (c->begun) {
        atomic_store(&tasks[task].place, LOCAL);
        append(&cpus[home].local, task);
        atomic_store(c->here_idles ? &cpus[home].kicked : &cpus[home].interrupted, true);
    } else if (core != NONE) {
        atomic_store(&tasks[task].place, SENT);
        pthread_mutex_lock(&cpus[core].sent_lock);
        append(&cpus[core].sent, task);
        pthread_mutex_unlock(&cpus[core].sent_lock);
        atomic_store(&cpus[core].kicked, true);
    } else {
        atomic_store(&tasks[task].place, CUSTODY);
    }
    tell_cores(c);
}

/* Sends a task to a CPU if the scheduler has it. */
static void send(int task, int cpu)
{
    int expected;
    do {
        while (atomic_load(&tasks[task].place) == QUEUEING)
            sched_yield();
        expected = CUSTODY;
    } while (!atomic_compare_exchange_strong(&tasks[task].place, &expected, SENT) && expected == QUEUEING);
    if (expected != CUSTODY)
        return;
    pthread_mutex_lock(&cpus[cpu].sent_lock);
    append(&cpus[cpu].sent, task);
    pthread_mutex_unlock(&cpus[cpu].sent_lock);
}

/* Takes what was sent to a CPU, whose run queue is locked but for a moment in which the task's own is. */
static bool receive(int cpu)
{
    pthread_mutex_lock(&cpus[cpu].sent_lock);
    int task = take_first(&cpus[cpu].sent);
    pthread_mutex_unlock(&cpus[cpu].sent_lock);
    if (task == NO_TASK)
        return false;
    int home = atomic_load(&tasks[task].cpu);
    if (home != cpu) {
        pthread_mutex_unlock(&cpus[cpu].queue);
        pthread_mutex_lock(&cpus[home].queue);
        atomic_store(&tasks[task].cpu, cpu);
        pthread_mutex_unlock(&cpus[home].queue);
        pthread_mutex_lock(&cpus[cpu].queue);
    }
    atomic_store(&tasks[task].place, LOCAL);
    append(&cpus[cpu].local, task);
    return true;
}

/* scheduler/dispatch.h. Returns whether the task that has run until now goes on. */
static bool ops_dispatch(int cpu, int previous)
{
    u32 before = previous == NO_TASK ? NONE : tasks[previous].thread;
    if (before == NONE && has_no_work(s, cpu)) {
        receive(cpu);
        return false;
    }
    call_t *c = call_on(cpu);
    u32 thread = look(s, c, cpu, before);
    tell_cores(c);
    if (thread != NONE && thread == before)
        return !receive(cpu);
    if (thread != NONE)
        send((int)thread, cpu);
    receive(cpu);
    return false;
}

static void ops_running(int cpu, int task)
{
    u32 thread = tasks[task].thread;
    if (has_got_there(s, thread, cpu, now_ns()))
        return;
    call_t *c = call_on(cpu);
    is_running(s, c, thread, cpu);
    tell_cores(c);
}

/* The CPU chooses its next task; its run queue is locked. */
static void choose(int cpu)
{
    struct cpu *own = &cpus[cpu];
    int previous = own->current;
    if (previous != NO_TASK && !tasks[previous].over)
        return;
    bool goes_on = false;
    for (int i = 0; i < 3 && own->local.count == 0 && !goes_on; i++)
        goes_on = ops_dispatch(cpu, previous);
    if (goes_on) {
        tasks[previous].over = false;
        return;
    }
    if (previous != NO_TASK) {
        lose_cpu(s, tasks[previous].thread, now_ns());
        own->current = NO_TASK;
        ops_enqueue(cpu, previous, false);
    }
    int next = take_first(&own->local);
    own->current = next;
    atomic_store(&own->idle, next == NO_TASK);
    if (next == NO_TASK)
        return;
    atomic_store(&tasks[next].place, ON_CPU);
    tasks[next].turns++;
    ops_running(cpu, next);
}

/* The task on a CPU sleeps. */
static void block(int cpu)
{
    struct cpu *own = &cpus[cpu];
    int task = own->current;
    call_t *c = call_on(cpu);
    take_out(s, c, tasks[task].thread, STATE_BLOCKED);
    tell_cores(c);
    own->current = NO_TASK;
    atomic_store(&tasks[task].place, ASLEEP);
}

/* try_to_wake_up() by a CPU. */
static void wake(int here, int task)
{
    int expected = ASLEEP;
    if (!atomic_compare_exchange_strong(&tasks[task].place, &expected, WAKING))
        return;
    u32 thread = tasks[task].thread;
    int home = atomic_load(&tasks[task].cpu);
    call_t *c = call_on(here);
    u32 core = wake_up(s, c, thread, here);
    bool begins = c->begun;
    if (core != NONE) {
        home = (int)core;
        tell_cores(c);
    }
    atomic_store(&tasks[task].cpu, home);
    pthread_mutex_lock(&cpus[home].queue);
    if (begins) {
        tasks[task].over = false;
        atomic_store(&tasks[task].place, LOCAL);
        append(&cpus[home].local, task);
    } else {
        ops_enqueue(here, task, true);
    }
    atomic_store(&cpus[home].kicked, true);
    pthread_mutex_unlock(&cpus[home].queue);
}

static void *run_cpu(void *pointer)
{
    int cpu = (int)(intptr_t)pointer;
    struct cpu *own = &cpus[cpu];
    while (!atomic_load(&is_over_for_all)) {
        bool ending = atomic_load(&ends);
        pthread_mutex_lock(&own->queue);
        atomic_exchange(&own->kicked, false);
        bool interrupted = atomic_exchange(&own->interrupted, false);
        if (own->current != NO_TASK && (ending || chance(&own->seed, 3)))
            block(cpu);
        else if (own->current != NO_TASK)
            tasks[own->current].over |= interrupted || is_over(s, tasks[own->current].thread, now_ns());
        choose(cpu);
        pthread_mutex_unlock(&own->queue);
        for (int i = 0; !ending && i < 2; i++)
            wake(cpu, rand_r(&own->seed) % task_count);
        if (chance(&own->seed, 8))
            sched_yield();
    }
    return NULL;
}

static void change_something(unsigned int *seed, u32 thread)
{
    struct operation op = { .thread = thread, .generation = thread_of(s, thread)->generation };
    switch (rand_r(seed) % 6) {
    case 0:
        op.kind = OP_CHANGE + CHANGE_AFFINITY;
        for (int cpu = 0; cpu < cpu_count; cpu++)
            if (chance(seed, 2))
                include(&op.cores, cpu);
        include(&op.cores, rand_r(seed) % cpu_count);
        break;
    case 1:
        op.kind = OP_CHANGE + CHANGE_MOVE;
        op.a = rand_r(seed) % 3;
        break;
    case 2:
        op.kind = OP_CHANGE + CHANGE_RANK;
        op.a = rand_r(seed) % 10;
        break;
    case 3:
        op.kind = OP_CHANGE + CHANGE_WEIGHT;
        op.a = 15 + rand_r(seed) % 5000;
        break;
    case 4:
        op.kind = OP_CHANGE + CHANGE_SPEED;
        op.core = rand_r(seed) % CLASSES_MAX;
        op.a = 512 + rand_r(seed) % 4096;
        break;
    default:
        op.kind = OP_CHANGE + CHANGE_HOLD;
        op.a = chance(seed, 4);
    }
    change_plan(s, call_of(s, CALL_OF_PLAN, now_ns()), &op);
}

/* scheduler/plan.h: apply() */
static void *change_plans(void *pointer)
{
    unsigned int seed = (unsigned int)(intptr_t)pointer;
    while (!atomic_load(&ends)) {
        for (int i = 0; i < 4; i++)
            change_something(&seed, rand_r(&seed) % task_count);
        tell_cores(call_of(s, CALL_OF_PLAN, now_ns()));
    }
    for (int task = 0; task < task_count; task++) {
        struct operation op = { .kind = OP_CHANGE + CHANGE_HOLD, .thread = tasks[task].thread };
        op.generation = thread_of(s, op.thread)->generation;
        change_plan(s, call_of(s, CALL_OF_PLAN, now_ns()), &op);
    }
    tell_cores(call_of(s, CALL_OF_PLAN, now_ns()));
    return NULL;
}

/* scheduler/session.h: on_look() */
static void *look_after_all(void *pointer)
{
    (void)pointer;
    while (!atomic_load(&is_over_for_all)) {
        call_t *c = call_of(s, CALL_OF_LOOK, now_ns());
        look_after(s, c, s->rules.balance.period_ns > 0);
        tell_cores(c);
        struct timespec pause = { .tv_nsec = 200000 };
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void read_state(const char *path, u32 threads_max)
{
    FILE *file = fopen(path, "rb");
    /* Marks begin on a page. */
    s = calloc(1, sizeof(struct sched) + threads_max * (sizeof(struct thread) + sizeof(u8)) + 4096);
    if (!file || !s || fread(s, sizeof(struct sched), 1, file) != 1)
        fail("%s: no state", path);
    fclose(file);
    cpu_count = (int)s->core_count;
    if (cpu_count > CPUS_MAX)
        fail("%d CPUs", cpu_count);
}

/* Everybody sleeps, and the books say so. */
static void check(void)
{
    if (s->stuck)
        fail("a lock was never free");
    for (u32 i = 0; i < s->queue_count; i++) {
        queue_t *queue = &s->queues[i];
        if (queue->len || queue->running || queue->load || queue->coming || queue->first != NONE || s->waiting[i])
            fail("queue %u: len %u, running %u, load %llu, coming %u", i, queue->len, queue->running,
                 (unsigned long long)queue->load, queue->coming);
    }
    for (int core = 0; core < cpu_count; core++)
        if (s->cores[core].running != NONE || !s->idle[core])
            fail("core %d runs %u", core, s->cores[core].running);
}

static bool all_sleep(void)
{
    for (int task = 0; task < task_count; task++)
        if (atomic_load(&tasks[task].place) != ASLEEP)
            return false;
    return true;
}

static void pause_ms(int ms)
{
    struct timespec pause = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l };
    nanosleep(&pause, NULL);
}

static void tell_who_is_lost(void)
{
    for (int task = 0; task < task_count; task++) {
        thread_t *own = thread_of(s, tasks[task].thread);
        if (atomic_load(&tasks[task].place) != ASLEEP)
            fprintf(stderr, "task %d on CPU %d is at %d: state %u, core %u, bound to %x, out %u, comes %u, held %u\n",
                    task, atomic_load(&tasks[task].cpu), atomic_load(&tasks[task].place), own->state, own->core,
                    own->bound_to, own->taken_out, own->comes, own->held);
    }
    fail("lost");
}

int main(int argc, char **argv)
{
    if (argc != 5)
        fail("needs a state, a number of tasks, ms and a seed");
    task_count = atoi(argv[2]);
    unsigned int seed = (unsigned int)atoi(argv[4]);
    read_state(argv[1], TASKS_MAX);
    struct set all;
    memset(&all, 0xff, sizeof(all));
    for (int task = 0; task < task_count; task++) {
        tasks[task].thread = welcome(s, WEIGHT_ONE, &all);
        atomic_store(&tasks[task].cpu, task % cpu_count);
    }
    pthread_t runners[CPUS_MAX], planner, keeper;
    for (int cpu = 0; cpu < cpu_count; cpu++) {
        cpus[cpu].current = NO_TASK;
        cpus[cpu].seed = seed * CPUS_MAX + (unsigned int)cpu;
        atomic_store(&cpus[cpu].idle, true);
        pthread_mutex_init(&cpus[cpu].queue, NULL);
        pthread_mutex_init(&cpus[cpu].sent_lock, NULL);
    }
    for (int cpu = 0; cpu < cpu_count; cpu++)
        pthread_create(&runners[cpu], NULL, run_cpu, (void *)(intptr_t)cpu);
    pthread_create(&planner, NULL, change_plans, (void *)(intptr_t)(seed + 1));
    pthread_create(&keeper, NULL, look_after_all, NULL);
    pause_ms(atoi(argv[3]));
    atomic_store(&ends, true);
    pthread_join(planner, NULL);
    for (int ms = 0; !all_sleep(); ms += 10) {
        if (ms > 10000)
            tell_who_is_lost();
        pause_ms(10);
    }
    atomic_store(&is_over_for_all, true);
    for (int cpu = 0; cpu < cpu_count; cpu++)
        pthread_join(runners[cpu], NULL);
    pthread_join(keeper, NULL);
    check();
    u64 turns = 0;
    for (int task = 0; task < task_count; task++)
        turns += tasks[task].turns;
    if (turns == 0)
        fail("nobody has run");
    printf("%llu turns\n", (unsigned long long)turns);
    return 0;
}
