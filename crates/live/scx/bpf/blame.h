/* SPDX-License-Identifier: GPL-2.0-only */
/* Blame (COLAB, section 4.1): the time that a thread has waited for a futex is charged to the thread that wakes it.
 * Loaded and attached only for policies that want it.
 *
 * The kernel itself matches waiters and wakers by the futex's address, so it is asked where it has done so.
 * futex_wake_mark() is called by the waker for each waiter that it takes off a futex, whatever the calls: WAIT,
 * WAIT_BITSET and futex_waitv wait; WAKE, WAKE_BITSET, both halves of WAKE_OP, the first half of REQUEUE and
 * CMP_REQUEUE wake; a thread that was moved to another futex is charged to its waker there. A thread that ends wakes
 * those that join it, and is blamed as the simulator does. Time-outs, signals and other wake-ups do not pass through it
 * and blame no thread. Calls for which no thread waits cost nothing.
 *
 * Futexes with inheritance of priority end in a real-time mutex instead, of which a futex sees the beginning and the
 * end only: there the address decides, of LOCK_PI against that of UNLOCK_PI. */
#ifndef AMPSCHED_BLAME_H
#define AMPSCHED_BLAME_H

#include "sched_ext.h"

struct futex_q {
    struct task_struct *task;
} from_btf;

struct wake_q_head;

/* A thread of ours lets another one go on, which has waited since it blocked. One that has not blocked yet has not
 * waited. */
static __always_inline void blame(u32 waker, u32 wakee)
{
    if (waker == NONE || wakee == NONE || waker == wakee)
        return;
    sched_t *s = shared_state();
    u64 now_ns = bpf_ktime_get_ns();
    /* It is charged by itself only, and what is seen of the other one may be over in a moment. */
    thread_t *own = thread_of(s, wakee);
    if (own->state == STATE_BLOCKED) {
        thread_of(s, waker)->blame_ns += sat_sub(now_ns, own->since_ns);
        note_change(s, waker);
    }
}

SEC("fentry/futex_wake_mark")
int BPF_PROG(ampsched_futex_woken, struct wake_q_head *wake_q, struct futex_q *q)
{
    blame(thread_of_task(bpf_get_current_task_btf()), thread_of_task(q->task));
    return 0;
}

/* The address of the futex that a task is about to lock, or to unlock. */
struct pi_call {
    u64 locks;
    u64 unlocks;
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct pi_call);
} pi_calls SEC(".maps");

static __always_inline s32 alloc_pi_call(struct task_struct *p)
{
    return bpf_task_storage_get(&pi_calls, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE) ? 0 : -12 /* ENOMEM */;
}

/* What the calling thread is inside of; no address: of neither. */
static __always_inline int pi_call(u64 locks, u64 unlocks)
{
    struct pi_call *call = bpf_task_storage_get(&pi_calls, bpf_get_current_task_btf(), 0, 0);
    if (call) {
        call->locks = locks;
        call->unlocks = unlocks;
    }
    return 0;
}

SEC("fentry/futex_lock_pi")
int BPF_PROG(ampsched_futex_locks, void *address)
{
    return pi_call((u64)address, 0);
}

SEC("fexit/futex_lock_pi")
int BPF_PROG(ampsched_futex_locked, void *address)
{
    return pi_call(0, 0);
}

SEC("fentry/futex_unlock_pi")
int BPF_PROG(ampsched_futex_unlocks, void *address)
{
    return pi_call(0, (u64)address);
}

SEC("fexit/futex_unlock_pi")
int BPF_PROG(ampsched_futex_unlocked, void *address)
{
    return pi_call(0, 0);
}

/* A thread wakes another one, which is not yet runnable. Processes that share a futex map it where they like. */
static __always_inline void blame_for_pi(struct task_struct *waker, struct task_struct *wakee)
{
    struct pi_call *by = bpf_task_storage_get(&pi_calls, waker, 0, 0);
    struct pi_call *of = bpf_task_storage_get(&pi_calls, wakee, 0, 0);
    if (!by || !of || !by->unlocks || !of->locks)
        return;
    if (by->unlocks == of->locks || waker->tgid != wakee->tgid)
        blame(thread_of_task(waker), thread_of_task(wakee));
}

#endif
