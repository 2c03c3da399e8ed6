/* SPDX-License-Identifier: GPL-2.0-only */
/* The part of the kernel's sched_ext interface that is used here (Linux 6.18, include/linux/sched/ext.h,
 * kernel/sched/ext.c). Only the fields that are needed are declared: the loader finds them by name in the running
 * kernel's BTF, so no header of a kernel is needed. */
#ifndef AMPSCHED_SCHED_EXT_H
#define AMPSCHED_SCHED_EXT_H

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define from_btf __attribute__((preserve_access_index))

struct cpumask {
    unsigned long bits[1];
} from_btf;

struct sched_ext_entity {
    u64 slice;
    u64 dsq_vtime;
    u32 flags;
} from_btf;

struct task_struct {
    int pid;
    int tgid;
    unsigned int flags;
    int static_prio;
    int exit_state;
    u32 on_cpu; /* unsigned, as the loader can then follow kernels in which it is shorter (7.3) */
    const struct cpumask *cpus_ptr;
    u64 self_exec_id;
    struct sched_ext_entity scx;
} from_btf;

enum scx_exit_kind { SCX_EXIT_NONE };

struct scx_exit_info {
    enum scx_exit_kind kind;
    s64 exit_code;
    const char *reason;
    char *msg;
} from_btf;

struct bpf_iter_scx_dsq {
    u64 opaque[6];
} __attribute__((aligned(8)));

struct scx_init_task_args;
struct scx_exit_task_args;

struct sched_ext_ops {
    s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
    void (*enqueue)(struct task_struct *p, u64 enq_flags);
    void (*dequeue)(struct task_struct *p, u64 deq_flags);
    void (*dispatch)(s32 cpu, struct task_struct *prev);
    void (*tick)(struct task_struct *p);
    void (*running)(struct task_struct *p);
    void (*stopping)(struct task_struct *p, bool runnable);
    void (*quiescent)(struct task_struct *p, u64 deq_flags);
    void (*set_weight)(struct task_struct *p, u32 weight);
    void (*set_cpumask)(struct task_struct *p, const struct cpumask *cpumask);
    void (*cpu_online)(s32 cpu);
    void (*cpu_offline)(s32 cpu);
    s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
    void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
    void (*enable)(struct task_struct *p);
    void (*disable)(struct task_struct *p);
    s32 (*init)(void);
    void (*exit)(struct scx_exit_info *info);
    u64 flags;
    u32 timeout_ms;
    u64 hotplug_seq;
    char name[128];
};

#define SCX_DSQ_LOCAL (1ull << 63 | 2)
#define SCX_DSQ_LOCAL_ON (1ull << 63 | 1ull << 62)
#define SCX_SLICE_DFL 20000000ull
#define SCX_SLICE_INF (~0ull)
#define SCX_ENQ_WAKEUP 1
#define SCX_ENQ_PREEMPT (1ull << 32)
#define SCX_DEQ_SLEEP 1
#define SCX_KICK_IDLE 1
#define SCX_KICK_PREEMPT 2
#define SCX_TASK_QUEUED 1
#define SCX_CPUPERF_ONE 1024
#define SCX_OPS_ENQ_LAST (1ull << 1)
#define SCX_OPS_SWITCH_PARTIAL (1ull << 3)
#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000
#define BPF_MAP_TYPE_TASK_STORAGE 29
#define BPF_F_NO_PREALLOC 1
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1
#define CLOCK_MONOTONIC 1
#define BPF_F_TIMER_ABS 1

s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __ksym;
void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym;
bool scx_bpf_dsq_move_to_local(u64 dsq_id) __ksym;
s32 scx_bpf_dsq_nr_queued(u64 dsq_id) __ksym;
s32 bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags) __ksym;
struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) __ksym;
void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __ksym;
bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id, u64 enq_flags) __ksym;
void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym;
const struct cpumask *scx_bpf_get_idle_cpumask(void) __ksym;
void scx_bpf_put_idle_cpumask(const struct cpumask *idle_mask) __ksym;
bool scx_bpf_test_and_clear_cpu_idle(s32 cpu) __ksym;
u32 scx_bpf_cpuperf_cur(s32 cpu) __ksym;
void scx_bpf_cpuperf_set(s32 cpu, u32 perf) __ksym;
s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;
void scx_bpf_exit_bstr(s64 exit_code, char *fmt, unsigned long long *data, u32 data_size) __ksym;
void scx_bpf_error_bstr(char *fmt, unsigned long long *data, u32 data_size) __ksym;
struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
void bpf_task_release(struct task_struct *p) __ksym;
bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *cpumask) __ksym;

#endif
