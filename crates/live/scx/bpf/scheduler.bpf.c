/* SPDX-License-Identifier: GPL-2.0-only */
/* A sched_ext scheduler that executes Rules and Plan: what the kernel says happens becomes calls of calls.h and the
 * interpreter.
 *
 * Waiting threads are in the interpreter's queues, not in the kernel's; each queue has a lock (lock.h).
 * Tasks that are not ours (kernel threads) go straight to their core. Without a periodic tick of its own, the scheduler
 * looks at ends of turns whenever the kernel ticks. */
#define CONSTANT_RULES
#include "sched_ext.h"

#include "hotplug.h"

#define TEXT_MAX 256
#define CPUS_MAX 8192 /* numbers of CPUs: as many as Linux knows on any machine */

/* Set by the loader. src/kernel.rs has the same in Rust. */
struct settings {
    u64 timer_period_ns; /* period of run_periodic() */
    u64 epoch_limit_ns; /* longest time without a sign of life of the policy's slow plane; 0: no limit */
    u16 cpu_of_core[CORES_MAX];
    u16 core_of_cpu[CPUS_MAX];
    u32 weight_of_nice[64]; /* from nice -20 to 19, the rest is not used */
    u32 blames; /* whether the policy wants to know which thread lets which wait */
    u32 session; /* process whose threads are not ours: like interrupts, they wait for no thread; 0: none */
};
const volatile struct settings settings SEC(".rodata.settings");

const volatile struct rules constant_rules SEC(".rodata.rules");

const volatile u32 constant_tracking SEC(".rodata.track");

const volatile u32 constant_smt SEC(".rodata.smt");

const volatile u32 constant_recording SEC(".rodata.record");

/* Read by the loader. */
struct report {
    s64 exit_code;
    u32 exit_kind;
    u32 unused;
    char reason[TEXT_MAX];
    char message[TEXT_MAX];
};
struct report report SEC(".data.report");

/* The parts, of which each uses those above it. */
#include "scheduler/cores.h"

#include "scheduler/tasks.h"

#include "blame.h"

#include "scheduler/enqueue.h"

#include "scheduler/dispatch.h"

#include "scheduler/latency.h"

#include "scheduler/turns.h"

#include "scheduler/threads.h"

#include "scheduler/session.h"

#include "scheduler/plan.h"

#include "scheduler/hotplug.h"

SEC(".struct_ops.link")
struct sched_ext_ops ampsched_ops = {
    .select_cpu = (void *)ampsched_select_cpu,
    .enqueue = (void *)ampsched_enqueue,
    .dequeue = (void *)ampsched_dequeue,
    .dispatch = (void *)ampsched_dispatch,
    .tick = (void *)ampsched_tick,
    .running = (void *)ampsched_running,
    .stopping = (void *)ampsched_stopping,
    .quiescent = (void *)ampsched_quiescent,
    .set_weight = (void *)ampsched_set_weight,
    .set_cpumask = (void *)ampsched_set_cpumask,
    .cpu_online = (void *)ampsched_cpu_online,
    .cpu_offline = (void *)ampsched_cpu_offline,
    .init_task = (void *)ampsched_init_task,
    .exit_task = (void *)ampsched_exit_task,
    .enable = (void *)ampsched_enable,
    .disable = (void *)ampsched_disable,
    .init = (void *)ampsched_init,
    .exit = (void *)ampsched_exit,
    .flags = SCX_OPS_ENQ_LAST,
    .timeout_ms = 10000,
    .name = "ampsched",
};
