/* SPDX-License-Identifier: GPL-2.0-only */
/* What the scheduler in the kernel does when it is called (bpf/calls.h), called by many CPUs at once: each is a thread
 * of this program, others change the plan and look after everything.
 *
 * Reads an empty state (tests/threads/main.rs). Ends with 1 and words if a task is lost or the books are wrong, or a
 * core idles though its rules let it run a thread that waits. Writes what has been recorded, and the books. */
#include "model.h"

#define RECORDS_MAX (1u << 20)
#define PARTS 4
#define CALM_MS 5000
#define TURNS_MIN 30
#define TURNS_MS 20000

static void pause_ms(int ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l};
    nanosleep(&pause, NULL);
}

static void change_something(unsigned int *seed, int task)
{
    struct operation op = {.thread = tasks[task].thread, .generation = tasks[task].generation};
    switch (rand_r(seed) % 6) {
    case 0:
        op.kind = OP_CHANGE + CHANGE_AFFINITY;
        draw_cores(seed, &op.cores);
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
        for (int i = 0; i < 4 && !atomic_load(&is_calm); i++) {
            change_something(&seed, rand_r(&seed) % task_count);
        }
        tell_cores(call_of(s, CALL_OF_PLAN, now_ns()));
        struct timespec pause = {.tv_nsec = 20000};
        nanosleep(&pause, NULL);
    }
    for (int task = 0; task < task_count; task++) {
        struct operation op = {.kind = OP_CHANGE + CHANGE_HOLD, .thread = tasks[task].thread};
        op.generation = tasks[task].generation;
        change_plan(s, call_of(s, CALL_OF_PLAN, now_ns()), &op);
    }
    tell_cores(call_of(s, CALL_OF_PLAN, now_ns()));
    return NULL;
}

/* scheduler/session.h: on_timer() */
static void *look_after_all(void *pointer)
{
    (void)pointer;
    while (!atomic_load(&is_over_for_all)) {
        call_t *c = call_of(s, CALL_OF_TIMER, now_ns());
        run_periodic(s, c, s->rules.balance.period_ns > 0);
        tell_cores(c);
        struct timespec pause = {.tv_nsec = 200000};
        nanosleep(&pause, NULL);
    }
    return NULL;
}

/* The table of the scheduler, and behind it room for records. */
static void read_state(const char *path)
{
    /* Marks begin on a page. */
    u64 table = sizeof(struct sched) + TASKS_MAX * (sizeof(struct thread) + sizeof(u8)) + 4096;
    table = (table + 63) / 64 * 64;
    FILE *file = fopen(path, "rb");
    s = calloc(1, table + RECORDS_MAX * sizeof(struct record));
    if (!file || !s || fread(s, sizeof(struct sched), 1, file) != 1)
        fail("%s: no state", path);
    fclose(file);
    s->records_at = table;
    s->records_max = RECORDS_MAX;
    cpu_count = (int)s->core_count;
    if (cpu_count > CPUS_MAX)
        fail("%d CPUs", cpu_count);
}

/* Records up to the first that has found no room, and the books in the end. */
static void write_recording(const char *path)
{
    u64 count = min(record_count.given, RECORDS_MAX);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(&count, sizeof(count), 1, file) != 1 ||
        fwrite((u8 *)s + s->records_at, sizeof(struct record), count, file) != count ||
        fwrite(s, sizeof(struct sched) + s->thread_count * sizeof(struct thread), 1, file) != 1 || fclose(file) != 0)
        fail("%s: cannot be written", path);
}

/* Whether a core idles though its rules let it run a thread that waits. */
static bool idles_in_vain(u32 core)
{
    struct pick pick = {.now_ns = now_ns(), .core = core, .instead_of = NONE};
    if (!is_core_idle(s, core))
        return false;
    if (first_of(s, queue_of(s, core), core, NONE) != NONE)
        return true;
    pick_elsewhere(s, &pick);
    return pick.kind == PICK_RUN;
}

/* Nothing happens any more but what has begun: soon no core idles that could run a thread. */
static void check_calm(void)
{
    atomic_store(&is_calm, true);
    for (int ms = 0, core = 0; core < cpu_count; core++) {
        if (!idles_in_vain((u32)core))
            continue;
        if (++ms > CALM_MS)
            fail("core %d idles though it could run a thread that waits", core);
        pause_ms(1);
        core = -1;
    }
    atomic_store(&is_calm, false);
}

/* How often tasks have been given a core. */
static u64 turns_so_far(void)
{
    u64 turns = 0;
    for (int task = 0; task < task_count; task++)
        turns += atomic_load(&tasks[task].turns);
    return turns;
}

/* All tasks sleep, and the books say so. */
static void check(void)
{
    if (s->stuck)
        fail("a lock was never free");
    for (u32 i = 0; i < s->queue_count; i++) {
        queue_t *queue = &s->queues[i];
        if (queue->len || queue->running || queue->load || queue->arriving || queue->first != NONE || s->waiting[i])
            fail("queue %u: len %u, running %u, load %llu, coming %u", i, queue->len, queue->running,
                 (unsigned long long)queue->load, queue->arriving);
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

static void tell_who_is_lost(void)
{
    for (int task = 0; task < task_count; task++) {
        thread_t *own = thread_of(s, tasks[task].thread);
        if (atomic_load(&tasks[task].place) != ASLEEP)
            fprintf(stderr, "task %d on CPU %d is at %d: state %u, core %u, bound to %x, out %u, comes %u, held %u\n",
                    task, atomic_load(&tasks[task].cpu), atomic_load(&tasks[task].place), own->state, own->core,
                    own->bound_to, own->dequeued, own->arriving, own->held);
    }
    fail("lost");
}

int main(int argc, char **argv)
{
    if (argc != 6)
        fail("needs a state, a number of tasks, ms, a seed and where to write what is recorded");
    task_count = atoi(argv[2]);
    unsigned int seed = (unsigned int)atoi(argv[4]);
    read_state(argv[1]);
    struct set all;
    memset(&all, 0xff, sizeof(all));
    for (int task = 0; task < task_count; task++) {
        begin_task(task, WEIGHT_ONE, &all);
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
    for (int part = 0; part < PARTS; part++) {
        pause_ms(atoi(argv[3]) / PARTS);
        check_calm();
    }
    /* A busy computer gives these threads hardly any time. */
    for (int ms = 0; turns_so_far() < TURNS_MIN && ms < TURNS_MS; ms += 10)
        pause_ms(10);
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
    write_recording(argv[5]);
    u64 turns = turns_so_far();
    if (turns == 0)
        fail("nobody has run");
    printf("%llu turns\n", (unsigned long long)turns);
    return 0;
}
