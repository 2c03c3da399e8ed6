/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Turns, quanta and time. One thread of QEMU executes all virtual CPUs in turn, so nothing here needs a lock: all of it
 * runs in that thread, except get_clock(), which the thread of the devices calls, too.
 *
 * Inline counters per CPU would be cheaper than a call per block, but when all share a thread, QEMU 10.0 takes the
 * index of the CPU that translates a block for that of the one that executes it. So the call itself looks which CPU
 * executes. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "machine.h"

EXPORTED int qemu_plugin_version = PLUGIN_VERSION;

/* A CPU that has used up its quantum executes a block each time that its turn comes. After this many, the others only
 * spin: they give their turn away again and again (pause, yield) and would never use theirs up. */
enum { TURNS_OVER_BUDGET = 4 };
/* If timers are due that only the devices' thread may call, it gets host time after this many looks. */
enum { LOOKS_MAX = 32, LOOKS_WITHOUT_WAITING = 4 };
static const long WAIT_HOST_NS = 100 * 1000;
/* Timers that are due earlier than a quantum's end shorten it, down to this. */
static const int64_t QUANTUM_NS_MIN = 1000;
static const int64_t NS_PER_MS = 1000 * 1000;

/* What a CPU may execute, in shares of an instruction. */
struct cpu {
    CPUState *state;
    int class;
    int64_t shares_per_ms;      /* its speed in this quantum */
    int64_t whole;              /* what that comes to in this quantum */
    int64_t busy_ppm;           /* for which part of the quantum before it was not halted; of siblings only */
    int64_t budget, left;       /* of this quantum; less than none is left if the last block was too long */
    int64_t slept;              /* of what is not left, what went by while it was halted */
    int64_t carry;              /* a remainder of the budget's division, in shares * NS_PER_MS */
    int turns_over_budget;
    struct cache l1;
};

static struct machine machine;
static struct cpu cpus[MAX_CPUS];
static struct cache l2_of_class[MAX_CLASSES];
static struct speed speed_of_class[MAX_CLASSES];
static int known;               /* CPUs that have come up */
static bool is_a64;

/* Time, in ns */
static int64_t now_ns;          /* what all have reached */
static int64_t told_ns;         /* the latest time that a CPU was given: the clock never goes back */
static int64_t begin_ns, end_ns; /* of the quantum */

static bool is_advancing, is_asking, end_is_due;

struct counts {
    uint64_t quanta, forced, early_turns, jumps;
    int64_t jumped_ns, virtual_ns;
    uint64_t executed[MAX_CPUS]; /* in shares */
};
/* What has happened, and what of it is reported. */
static struct counts seen, reported;
static const char *report;
static struct timespec began;

/* The CPU that executes, its class, and what is left to it: kept outside of its row, as every block needs them. */
static CPUState *running;
static int current = -1, class_of_current;
static int64_t left_to_current;

void give_up(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    fputs("exact clock: ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    fflush(NULL);
    _exit(2); /* QEMU's own clean-up would wait for this thread */
}

/* Budgets -------------------------------------------------------------------------------------------------------- */

static int64_t left_to(int cpu)
{
    return cpu == current ? left_to_current : cpus[cpu].left;
}

static void set_left(int cpu, int64_t left)
{
    cpus[cpu].left = left;
    if (cpu == current)
        left_to_current = left;
}

/* How busy a CPU was in the quantum that ends. What it owed at its begin, it has worked off; what it owes now, it will
 * work off in the next one. */
static int64_t busy_ppm(int cpu)
{
    const struct cpu *its = &cpus[cpu];
    int64_t left = left_to(cpu), passed_ns = now_ns - begin_ns;
    int64_t busy_ns = (its->whole - its->slept - (left > 0 ? left : 0)) * NS_PER_MS / its->shares_per_ms;
    if (busy_ns >= passed_ns)
        return PPM;
    return busy_ns > 0 ? busy_ns * PPM / passed_ns : 0;
}

/* Its class's speed, less what its sibling took of it in the quantum before. */
static int64_t speed_of(int cpu)
{
    int64_t alone = speed_of_class[cpus[cpu].class].rate_kips * SHARES;
    int sibling = machine.sibling_of[cpu];
    if (sibling < 0)
        return alone;
    int64_t lost_ppm = (PPM - machine.shared_ppm[cpu]) * cpus[sibling].busy_ppm / PPM;
    int64_t speed = alone * (PPM - lost_ppm) / PPM;
    return speed > 0 ? speed : 1;
}

/* How far a CPU has come, by what it has executed. */
static int64_t time_of(int cpu)
{
    int64_t executed = cpus[cpu].budget - left_to(cpu);
    int64_t time_ns = now_ns + executed * NS_PER_MS / cpus[cpu].shares_per_ms;
    return time_ns < end_ns ? time_ns : end_ns;
}

static void refill(int cpu, int64_t quantum_ns)
{
    struct cpu *its = &cpus[cpu];
    int64_t left = left_to(cpu);
    seen.executed[cpu] += (uint64_t)(its->budget - left - its->slept);
    its->slept = 0;
    /* What was not used is lost: the CPU was idle. What was used too much is owed. */
    int64_t owed = left < 0 ? left : 0;
    its->shares_per_ms = speed_of(cpu);
    int64_t whole = its->shares_per_ms * quantum_ns + its->carry;
    its->carry = whole % NS_PER_MS;
    its->whole = whole / NS_PER_MS;
    its->budget = its->whole + owed;
    its->turns_over_budget = 0;
    set_left(cpu, its->budget);
}

/* A halted CPU goes on at some time of this quantum, not at its begin. */
static void sleep_until(int cpu, int64_t until_ns)
{
    int64_t slept = (until_ns - time_of(cpu)) * cpus[cpu].shares_per_ms / NS_PER_MS;
    if (slept <= 0)
        return;
    cpus[cpu].slept += slept;
    set_left(cpu, left_to(cpu) - slept);
}

static void begin_quantum(void)
{
    int64_t quantum_ns = machine.quantum_ns;
    int64_t due_ns = qemu_clock_deadline_ns_all(QEMU_CLOCK_VIRTUAL, QEMU_TIMER_ATTR_ALL);
    if (due_ns > 0 && due_ns < quantum_ns)
        quantum_ns = due_ns > QUANTUM_NS_MIN ? due_ns : QUANTUM_NS_MIN;
    for (int class = 0; class < machine.classes; class ++)
        follow_choice(&machine.class[class], &speed_of_class[class]);
    for (int cpu = 0; cpu < known && machine.has_siblings; cpu++)
        cpus[cpu].busy_ppm = busy_ppm(cpu);
    for (int cpu = 0; cpu < known; cpu++)
        refill(cpu, quantum_ns);
    begin_ns = now_ns;
    end_ns = now_ns + quantum_ns;
}

/* Once a guest has switched off, its CPUs go on until the devices' thread stops them, which takes it some of the host's
 * time. That is no part of the report, or two runs would differ. Called with QEMU's lock, which that thread holds from
 * when it takes the request until the machine is no longer said to run. */
static void report_if_on(void)
{
    static bool is_off;
    is_off = is_off || qemu_shutdown_requested_get();
    if (is_off || !runstate_is_running())
        return;
    seen.virtual_ns = now_ns;
    reported = seen;
}

/* QEMU's own way calls timers and wakes the devices' thread up, for nothing if no timer is due. */
static void advance_to(int64_t to_ns)
{
    is_advancing = true;
    int64_t due_ns = qemu_clock_deadline_ns_all(QEMU_CLOCK_VIRTUAL, QEMU_TIMER_ATTR_ALL);
    if (due_ns >= 0 && due_ns <= to_ns - now_ns)
        qemu_clock_advance_virtual_time(to_ns); /* calls set_clock() on the way */
    is_advancing = false;
    if (now_ns < to_ns)
        now_ns = to_ns;
    if (told_ns < now_ns)
        told_ns = now_ns;
    begin_quantum();
    report_if_on();
}

static bool is_idle(int cpu)
{
    is_asking = true;
    bool idle = cpu_thread_is_idle(cpus[cpu].state);
    is_asking = false;
    return idle;
}

/* The accelerator's functions ------------------------------------------------------------------------------------ */

static int index_of(const CPUState *state)
{
    for (int cpu = 0; cpu < known; cpu++)
        if (cpus[cpu].state == state)
            return cpu;
    return -1;
}

static int64_t get_clock(void)
{
    int cpu = current_cpu && !is_advancing ? index_of(current_cpu) : -1;
    if (cpu < 0)
        return now_ns; /* the devices' thread, which must not call a timer before its quantum ends */
    int64_t time_ns = time_of(cpu);
    if (told_ns < time_ns)
        told_ns = time_ns;
    return told_ns;
}

/* QEMU asks the host for the time in one more place: a CPU's translation buffer grows and shrinks by how full it was in
 * the last 100 ms. An entry that it still has may cost the guest a fault after the kernel has widened rights without
 * flushing. So a caller of this function gets the guest's time, which needs the plugin to be loaded before libc. */
EXPORTED int gettimeofday(struct timeval *restrict now, void *restrict zone);

EXPORTED int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    (void)zone;
    *now = (struct timeval){.tv_sec = now_ns / (1000 * NS_PER_MS), .tv_usec = now_ns / 1000 % NS_PER_MS};
    return 0;
}

static void set_clock(int64_t to_ns)
{
    now_ns = to_ns;
}

/* A CPU is interrupted. If another one does that within a quantum and this one is halted, it wakes up at that time. */
static void interrupt(CPUState *state, int mask)
{
    int by = current_cpu && current_cpu != state && !is_advancing ? index_of(current_cpu) : -1, whom = index_of(state);
    if (by >= 0 && whom >= 0 && is_idle(whom))
        sleep_until(whom, time_of(by));
    tcg_handle_interrupt(state, mask);
}

static bool anybody_works(void)
{
    for (int cpu = 0; cpu < known; cpu++)
        if (!is_idle(cpu))
            return true;
    return false;
}

/* QEMU asks for each CPU whether its thread may sleep, the last one last. Then all are halted, and time jumps. */
static bool may_sleep(CPUState *state)
{
    if (is_asking || state != cpus[known - 1].state)
        return true;
    if (now_ns < told_ns)
        now_ns = told_ns;
    for (int look = 0; look < LOOKS_MAX; look++) {
        int64_t due_ns = qemu_clock_deadline_ns_all(QEMU_CLOCK_VIRTUAL, QEMU_TIMER_ATTR_ALL);
        if (due_ns < 0)
            return true; /* no timer at all: only a device can wake a CPU up */
        seen.jumps++;
        seen.jumped_ns += due_ns;
        advance_to(now_ns + (due_ns ? due_ns : 1));
        if (anybody_works())
            return false;
        if (look >= LOOKS_WITHOUT_WAITING)
            nanosleep(&(struct timespec){.tv_nsec = WAIT_HOST_NS}, NULL);
    }
    return false;
}

/* Places in the table, counted from the function that starts CPUs. QEMU 10: start, kick, is idle, five that
 * synchronise, handle an interrupt, get the clock, set the clock, get elapsed ticks, and then the debugger's. */
enum { KICK = 1, IS_IDLE = 2, INTERRUPT = 8, GET_CLOCK = 9, SET_CLOCK = 10, GET_TICKS = 11, BEHIND = 12 };
enum { TABLE_WORDS_MAX = 24 };

static void **known_table(void)
{
    void **table = cpus_get_accel();
    for (int start = 0; table && start < TABLE_WORDS_MAX; start++) {
        void **at = table + start;
        if (at[0] != (void *)rr_start_vcpu_thread)
            continue;
        bool is_known = at[KICK] && !at[IS_IDLE] && at[INTERRUPT] == (void *)tcg_handle_interrupt && !at[GET_CLOCK] &&
                        !at[SET_CLOCK] && !at[GET_TICKS] && at[BEHIND];
        return is_known ? at : NULL;
    }
    return NULL;
}

static void take_clock(void)
{
    void **at = known_table();
    if (!at)
        give_up("this QEMU's table of functions is unknown: needs version 10 and -accel tcg,thread=single");
    at[IS_IDLE] = (void *)may_sleep;
    at[INTERRUPT] = (void *)interrupt;
    at[GET_CLOCK] = (void *)get_clock;
    at[SET_CLOCK] = (void *)set_clock;
    at[GET_TICKS] = (void *)get_clock; /* the x86 time stamp counter: one tick per ns */
}

/* Execution ------------------------------------------------------------------------------------------------------ */

static void __attribute__((noinline)) switch_to(CPUState *state)
{
    if (current >= 0) {
        seen.early_turns += left_to_current > 0;
        cpus[current].left = left_to_current;
    }
    current = index_of(state);
    class_of_current = cpus[current].class;
    left_to_current = cpus[current].left;
    running = state;
}

/* Runs between two blocks of the CPU that was last to use its quantum up. */
static void end_quantum(CPUState *state, run_on_cpu_data data)
{
    (void)state, (void)data;
    end_is_due = false;
    seen.quanta++;
    advance_to(end_ns);
}

static bool all_others_are_done(int cpu)
{
    for (int other = 0; other < known; other++)
        if (other != cpu && left_to(other) > 0 && !is_idle(other))
            return false;
    return true;
}

static void __attribute__((noinline)) used_up(int cpu)
{
    if (!end_is_due) {
        bool is_done = all_others_are_done(cpu);
        bool is_forced = !is_done && ++cpus[cpu].turns_over_budget >= TURNS_OVER_BUDGET;
        seen.forced += is_forced;
        end_is_due = is_done || is_forced;
        if (end_is_due)
            async_run_on_cpu(cpus[cpu].state, end_quantum, (run_on_cpu_data){.target_ptr = 0});
    }
    cpu_exit(cpus[cpu].state); /* the next one's turn */
}

static void on_block(unsigned int vcpu, void *cost)
{
    (void)vcpu;
    if (__builtin_expect(current_cpu != running, false))
        switch_to(current_cpu);
    left_to_current -= ((const int32_t *)cost)[class_of_current];
    if (__builtin_expect(left_to_current <= 0, false))
        used_up(current);
}

static void __attribute__((noinline)) miss(qemu_plugin_meminfo_t info, uint64_t address)
{
    struct cache *l1 = &cpus[current].l1;
    struct access access = {.line = address / LINE_BYTES, .is_store = qemu_plugin_mem_is_store(info)};
    if (hits(l1, access.line))
        return;
    /* The L2 is shared by programs that have different things at the same address. */
    const struct qemu_plugin_hwaddr *where = qemu_plugin_get_hwaddr(info, address);
    access.physical_line = (where ? qemu_plugin_hwaddr_phys_addr(where) : address) / LINE_BYTES;
    const struct miss_shares *cost = &speed_of_class[class_of_current].miss;
    left_to_current -= cost_of_miss(cost, l1, &l2_of_class[class_of_current], access);
}

/* A load or a store, in a block that on_block() was called for. */
static void on_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
    (void)vcpu, (void)data;
    uint64_t line = address / LINE_BYTES;
    if (__builtin_expect(*set_of(&cpus[current].l1, line) != line, false))
        miss(info, address);
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    for (size_t i = 0; has_caches(&machine) && i < qemu_plugin_tb_n_insns(tb); i++)
        qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, i), on_access, QEMU_PLUGIN_CB_NO_REGS,
                                         QEMU_PLUGIN_MEM_RW, NULL);
    void *cost = (void *)cost_of_block(&machine, tb, is_a64);
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, cost);
}

/* The CPU to which QEMU gives a number. */
static int cpu_at(unsigned int index)
{
    for (int cpu = 0; cpu < machine.cpus; cpu++)
        if ((unsigned int)machine.index_of[cpu] == index)
            return cpu;
    give_up("has settings for %d CPUs, but there is one more, with the number %u", machine.cpus, index);
}

static void on_cpu(qemu_plugin_id_t id, unsigned int index)
{
    (void)id;
    int cpu = cpu_at(index);
    if (!known) {
        take_clock();
        clock_gettime(CLOCK_MONOTONIC, &began);
    }
    struct cpu *new = &cpus[cpu];
    new->state = qemu_get_cpu((int)index);
    new->class = machine.class_of[cpu];
    set_speed(&machine.class[new->class], &speed_of_class[new->class]);
    if (has_caches(&machine)) {
        const struct class *class = &machine.class[new->class];
        make_l1(&new->l1, class->l1_kib);
        if (!l2_of_class[new->class].lines)
            make_l2(&l2_of_class[new->class], class->l2_kib);
    }
    if (known <= cpu)
        known = cpu + 1;
    end_ns = now_ns + machine.quantum_ns;
    refill(cpu, machine.quantum_ns);
}

/* Begin and end -------------------------------------------------------------------------------------------------- */

static void on_exit_report(qemu_plugin_id_t id, void *data)
{
    (void)id, (void)data;
    FILE *file = report ? fopen(report, "w") : NULL;
    if (!file)
        return;
    struct timespec ended;
    clock_gettime(CLOCK_MONOTONIC, &ended);
    double host_s = (double)(ended.tv_sec - began.tv_sec) + (double)(ended.tv_nsec - began.tv_nsec) / 1e9;
    const struct counts *all = &reported;
    fprintf(file, "virtual_ns %" PRId64 "\nhost_s %.3f\n", all->virtual_ns, host_s);
    fprintf(file, "quanta %" PRIu64 "\nforced %" PRIu64 "\nearly_turns %" PRIu64 "\n", all->quanta, all->forced,
            all->early_turns);
    fprintf(file, "jumps %" PRIu64 "\njumped_ns %" PRId64 "\n", all->jumps, all->jumped_ns);
    for (int cpu = 0; cpu < known; cpu++)
        fprintf(file, "cpu%d_instructions %" PRIu64 "\n", cpu, all->executed[cpu] / SHARES);
    fclose(file);
}

static const char *value_of(const char *argument, const char *name)
{
    size_t length = strlen(name);
    return !strncmp(argument, name, length) && argument[length] == '=' ? argument + length + 1 : NULL;
}

EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv);

EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    const char *settings = NULL;
    for (int i = 0; i < argc; i++) {
        settings = value_of(argv[i], "settings") ? value_of(argv[i], "settings") : settings;
        report = value_of(argv[i], "report") ? value_of(argv[i], "report") : report;
    }
    bool is_x86 = !strcmp(info->target_name, "x86_64");
    is_a64 = !strcmp(info->target_name, "aarch64");
    if (!info->system_emulation || (!is_x86 && !is_a64)) {
        fprintf(stderr, "exact clock: knows whole x86_64 and aarch64 machines, not %s\n", info->target_name);
        return -1;
    }
    if (!settings || !read_machine(settings, &machine)) {
        fprintf(stderr, "exact clock: needs settings=FILE\n");
        return -1;
    }
    qemu_plugin_register_vcpu_init_cb(id, on_cpu);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_atexit_cb(id, on_exit_report, NULL);
    return 0;
}
