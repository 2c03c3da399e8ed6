/* SPDX-License-Identifier: GPL-2.0-only */
/* CPUs and tasks of a kernel, modelled after kernel/sched/ext.c of Linux 6.18 as far as locks go: each CPU has a run
 * queue with a lock, under which all that happens to its tasks is told; a task is sent only if the scheduler has it. */
#ifndef AMPSCHED_MODEL_H
#define AMPSCHED_MODEL_H

#define RECORDS
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
struct record_count record_count;

enum place { ASLEEP, WAKING, QUEUEING, CUSTODY, SENT, LOCAL, ON_CPU };

struct task {
    atomic_int place;
    atomic_int cpu;
    _Atomic u32 thread;
    _Atomic u32 generation;
    bool over; /* its turn: guarded by its run queue's lock */
    _Atomic u64 turns;
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
static atomic_int task_of[TASKS_MAX]; /* by thread */
static atomic_bool ends; /* no task wakes up any more, and the plan is as at first */
static atomic_bool is_over_for_all;
static atomic_bool is_calm; /* no task wakes up, sleeps or is changed */

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

/* scheduler/threads.h: enable() */
static void begin_task(int task, u32 weight, struct set *cores)
{
    u32 thread = init_thread(s, weight, cores);
    if (thread == NONE)
        fail("no room for a thread");
    atomic_store(&task_of[thread], task);
    atomic_store(&tasks[task].generation, thread_of(s, thread)->generation);
    atomic_store(&tasks[task].thread, thread);
}

static void draw_cores(unsigned int *seed, struct set *cores)
{
    memset(cores, 0, sizeof(*cores));
    for (int cpu = 0; cpu < cpu_count; cpu++)
        if (chance(seed, 2))
            include(cores, cpu);
    include(cores, rand_r(seed) % cpu_count);
}

/* scheduler/cores.h: kick_cores() */
static void tell_cores(call_t *c)
{
    collect_kicks(s, c);
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
    if (c->started) {
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
    u32 prev = previous == NO_TASK ? NONE : tasks[previous].thread;
    if (prev == NONE && has_no_work(s, cpu)) {
        receive(cpu);
        return false;
    }
    call_t *c = call_on(cpu);
    u32 thread = pick_next(s, c, cpu, prev);
    tell_cores(c);
    if (thread != NONE && thread == prev)
        return !receive(cpu);
    if (thread != NONE)
        send(atomic_load(&task_of[thread]), cpu);
    receive(cpu);
    return false;
}

/* scheduler/turns.h. `here`: the CPU that executes this. */
static void ops_running(int here, int cpu, int task)
{
    u32 thread = tasks[task].thread;
    if (note_arrival(s, thread, cpu, now_ns()))
        return;
    call_t *c = call_on(here);
    note_running(s, c, thread, cpu);
    tell_cores(c);
}

/* The CPU chooses its next task; its run queue is locked. */
static void choose(int cpu)
{
    struct cpu *own = &cpus[cpu];
    int previous = own->current;
    if (previous != NO_TASK && !tasks[previous].over)
        return;
    bool continue_exiting = false;
    for (int i = 0; i < 3 && own->local.count == 0 && !continue_exiting; i++)
        continue_exiting = ops_dispatch(cpu, previous);
    if (continue_exiting) {
        tasks[previous].over = false;
        return;
    }
    if (previous != NO_TASK) {
        charge_off_cpu(s, tasks[previous].thread, now_ns());
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
    ops_running(cpu, cpu, next);
}

/* The task on a CPU sleeps. */
static void block_task(int cpu)
{
    struct cpu *own = &cpus[cpu];
    int task = own->current;
    call_t *c = call_on(cpu);
    dequeue_thread(s, c, tasks[task].thread, STATE_BLOCKED);
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
    bool begins = c->started;
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

/* A task that sleeps ends, and another one begins. */
static void end_task(int here, int task, unsigned int *seed)
{
    int expected = ASLEEP;
    if (!atomic_compare_exchange_strong(&tasks[task].place, &expected, WAKING))
        return;
    call_t *c = call_on(here);
    exit_thread(s, c, tasks[task].thread);
    tell_cores(c);
    struct set cores;
    draw_cores(seed, &cores);
    begin_task(task, chance(seed, 2) ? WEIGHT_ONE : 15 + (u32)rand_r(seed) % 5000, &cores);
    atomic_store(&tasks[task].place, ASLEEP);
}

/* What the task's program changes about it, when no CPU has it. Returns whether it may not use its CPU any more. */
static bool set_something(int here, int task, unsigned int *seed)
{
    struct set cores;
    draw_cores(seed, &cores);
    call_t *c = call_on(here);
    bool weighs = chance(seed, 3);
    if (weighs)
        change_weight(s, tasks[task].thread, 15 + (u32)rand_r(seed) % 5000);
    else
        restrict_to(s, c, tasks[task].thread, &cores);
    tell_cores(c);
    return !weighs && !has(&cores, atomic_load(&tasks[task].cpu));
}

/* kernel/sched/core.c: __do_set_cpus_allowed(). A task that runs or waits is taken out for a moment. */
static void disturb(int here, int task, unsigned int *seed)
{
    int expected = ASLEEP;
    if (atomic_compare_exchange_strong(&tasks[task].place, &expected, WAKING)) {
        set_something(here, task, seed);
        atomic_store(&tasks[task].place, ASLEEP);
        return;
    }
    int home = atomic_load(&tasks[task].cpu);
    pthread_mutex_lock(&cpus[home].queue);
    expected = CUSTODY;
    bool runs = cpus[home].current == task,
         waits = !runs && atomic_load(&tasks[task].cpu) == home &&
                 atomic_compare_exchange_strong(&tasks[task].place, &expected, QUEUEING);
    if (runs || waits) {
        if (runs)
            charge_off_cpu(s, tasks[task].thread, now_ns());
        call_t *c = call_on(here);
        suspend(s, c, tasks[task].thread);
        tell_cores(c);
        bool leaves = set_something(here, task, seed);
        if (runs) {
            ops_running(here, home, task);
            tasks[task].over |= leaves;
        } else {
            ops_enqueue(here, task, false);
        }
    }
    pthread_mutex_unlock(&cpus[home].queue);
}

/* What tasks do that run on a CPU. */
static void act_on_tasks(int cpu)
{
    unsigned int *seed = &cpus[cpu].seed;
    for (int i = 0; i < 2; i++)
        wake(cpu, rand_r(seed) % task_count);
    if (chance(seed, 16))
        disturb(cpu, rand_r(seed) % task_count, seed);
    if (chance(seed, 16))
        end_task(cpu, rand_r(seed) % task_count, seed);
}

static void *run_cpu(void *pointer)
{
    int cpu = (int)(intptr_t)pointer;
    struct cpu *own = &cpus[cpu];
    while (!atomic_load(&is_over_for_all)) {
        bool ending = atomic_load(&ends), calm = atomic_load(&is_calm);
        pthread_mutex_lock(&own->queue);
        atomic_exchange(&own->kicked, false);
        bool interrupted = atomic_exchange(&own->interrupted, false);
        if (own->current != NO_TASK && !calm && (ending || chance(&own->seed, 3)))
            block_task(cpu);
        else if (own->current != NO_TASK)
            tasks[own->current].over |=
                interrupted || (!calm && tick_ends_turn(s, tasks[own->current].thread, now_ns()));
        choose(cpu);
        pthread_mutex_unlock(&own->queue);
        if (!ending && !calm)
            act_on_tasks(cpu);
        if (chance(&own->seed, 8))
            sched_yield();
    }
    return NULL;
}

#endif
