/* SPDX-License-Identifier: GPL-2.0-only */
/* Rules, Plan and state of the scheduler, as loader and kernel share them. src/layout.rs has the same in Rust; a
 * test compares. */
#ifndef AMPSCHED_STATE_H
#define AMPSCHED_STATE_H

#include "pelt.h"
#include "words.h"

#define CORES_MAX 512
#define DOMAINS_MAX 16 /* clusters, of a machine whose energy is known */
#define POINTS_MAX 32
#define NONE 0xffffffffu
#define NO_CORE 0xfffffffeu
#define CALL_OF_TIMER CORES_MAX /* by a timer */
#define CALL_OF_PLAN (CORES_MAX + 1) /* by the loader */
#define CALLS (CORES_MAX + 2)
#define NEVER (~0ull)
#define OFF_CPU 0ull /* of a thread that is on no core, or has been sent to one and is not there yet */
#define WEIGHT_ONE 1024ull /* of nice 0 */
#define VIRTUAL_START (1ull << 40) /* queue: VIRTUAL_START */

struct set {
    u64 words[CORES_MAX / 64];
};

struct thread {
    /* Plan */
    struct set affinity; /* cores that it may use */
    struct set user_affinity; /* of those that are online, cores that the program itself allowed */
    u64 rank;
    u64 slice_ns; /* 0: as the rules say */
    u32 weight;
    u32 prefer;
    u32 speed[CLASSES_MAX];
    u32 held;
    /* State */
    u32 state;
    u32 core;
    u32 ran_on; /* NONE: it never has */
    u64 vruntime;
    u64 deadline;
    s64 lag;
    u64 since_ns;
    /* Its place in a queue */
    u64 key;
    u64 serial;
    u32 prev;
    u32 next;
    /* Counters */
    u64 run_ns[CLASSES_MAX];
    u64 ready_ns;
    u64 ready_ns_max;
    u64 blocked_ns;
    u64 blame_ns;
    u64 switches;
    u64 migrations;
    u64 migrated_at_ns;
    u64 woken_ns; /* when it was woken, if it has not had a CPU since (scheduler/latency.h), or 0 */
    struct tracked_thread tracked;
    /* Known to the kernel's scheduler only (scheduler.bpf.c) */
    u64 charged_ns; /* up to when it has been charged, or OFF_CPU */
    u64 on_since_ns; /* since when the kernel has run it without a break */
    u32 pid;
    u32 process;
    u32 bound_to; /* the only core that may pick it now, NO_CORE, or NONE if all may */
    u32 chosen; /* where it shall wait, decided before the kernel hands it over, or NONE */
    u32 pull_to; /* an idle core that waits for it, or NONE */
    u32 generation; /* how often this slot was given away */
    u32 execs; /* how many programs its process has executed */
    u8 in_use;
    u8 dequeued; /* ready, but in no queue: the kernel has taken it out for a moment */
    u8 must_move; /* must be placed anew when it leaves its core */
    u8 arriving; /* waits where the plan has put it, but the core on which it ran has not let it go yet */
    /* Whether or not cores are online (follow_online) */
    struct set allowed; /* by its program */
    struct set wanted; /* by the plan */
};

struct core {
    u32 running; /* NONE: idle */
    u32 last;
    u64 since_ns; /* since when that thread runs, or the core is idle */
    u64 busy_ns;
    u64 recheck_ns; /* when to look for work again */
    u64 turn_ns; /* for which the running thread has been charged since it was started, or its pace last changed */
    u64 turn_virtual_ns; /* what of its virtual run time that was */
    u32 queue;
    u32 cluster;
    u32 cluster_first; /* its lowest core */
    u32 cluster_last; /* its highest core */
    u32 class;
    u32 kind; /* big or little */
    u32 need_resched; /* has been kicked: it has to pick a thread */
    u32 interrupted; /* what runs has to give way */
    u32 others_run; /* whether a task that is not ours runs there */
    u32 last_generation; /* of the slot of the thread that ran last */
    u32 sibling; /* the other thread of its physical core, or NONE */
    u32 unanswered; /* at how many looks in a row it has had to look (scheduler/session.h) */
    u64 others_due_ns; /* when a task that is not ours and waits here comes before ours, or NEVER */
    struct tracked_core tracked;
};

struct queue {
    u64 load; /* sum of the weights of its waiting and running threads */
    u64 min_vruntime;
    u64 base; /* deadline order: what virtual run times in the next sum are relative to */
    s64 weighted; /* sum of weight x (virtual run time - base) */
    u64 rotated; /* the rotation that came to it last */
    u64 serial; /* of the last thread that came to wait */
    u32 first; /* waiting threads by (key, serial) */
    u32 last;
    u32 len;
    u32 running;
    u32 cores;
    u32 capacity;
    u32 newcomer;
    u32 arriving; /* how many of its waiting threads have yet to be let go by another core */
    u32 index; /* its own */
    u32 unused;
};

/* An operating point of a cluster: work per time, and power / that in 2^-20 mW. */
struct point {
    u64 cost;
    u32 capacity;
    u32 unused;
};

/* A cluster, as energy is estimated. */
struct domain {
    u32 capacity; /* of its cores at the highest frequency */
    u32 count;
    struct point points[POINTS_MAX]; /* the slowest first */
};

struct rounds {
    u64 latest;
    u32 waiting;
    u32 unused;
    u32 waiting_earlier;
    u32 waiting_latest;
    u64 run_ns_before[CORES_MAX];
};

enum pick_kind { PICK_IDLE, PICK_RUN, PICK_PULL };

/* A core's question, and the answer. */
struct pick {
    u64 now_ns;
    u64 recheck_ns; /* idle: when to ask again, or NEVER */
    u32 core;
    u32 instead_of; /* with rounds: the thread that it would run otherwise, or NONE */
    u32 kind;
    u32 thread;
    u32 except; /* the preference that the step of stealing leaves out */
    u32 some; /* by load: whether there was any thread that its load might let go */
    u64 key; /* by load: of the thread that comes first, with its number */
    u64 begun; /* record.h: how many records there were when it was looked for */
    u32 passes; /* whether it is looked for only where no queue is locked */
    u32 passed; /* whether any was passed over because it was */
};

/* What one call by the kernel works with: BPF functions can neither return structures nor have much of a stack. */
struct call {
    struct pick pick;
    u64 now_ns;
    struct set wake; /* idle cores that must look for work, when no lock is held any more */
    struct set interrupt; /* cores that must look for other work than what they run */
    struct set cores; /* on which the kernel lets a thread run */
    u32 has_kicks; /* whether any core is in the first two */
    u32 wake_idle; /* whether all idle cores must, if the rules say so */
    u32 rekick_idle; /* whether those must that wait for nothing */
    u32 here; /* the core on whose CPU the kernel has put the thread that it hands over, or NONE */
    u32 here_idles; /* whether that CPU has been idle */
    u32 started; /* whether the thread has begun there */
    u32 back; /* whether the thread that becomes runnable comes back into a queue, or wakes up */
    u32 unused;
};

/* How load is tracked: not at all; by the work that cores do, as Linux does since 5.1; by real time. */
enum tracking { TRACKING_OFF, TRACKING_BY_WORK, TRACKING_BY_TIME };

/* Cores that are balanced among themselves. */
struct group {
    struct set receivers; /* cores whose queues have received a thread */
    u64 settled_ns; /* threads that have migrated since then do not go to another cluster */
    u64 least; /* the extremes of their loads */
    u64 most;
    u32 kind; /* PREFER_ANY: all cores */
    u32 tolerance_percent;
    u32 by_preference;
    u32 thread; /* that has been found to be moved */
    u32 source; /* the core from whose queue */
    u32 unused;
};

struct sched {
    struct rules rules;
    u32 core_count;
    u32 queue_count;
    u32 thread_count; /* slots that have ever been used */
    u32 threads_max;
    u32 cursors[3];
    u32 free_slot; /* first of a list linked through `behind`, or NONE */
    u32 top_class;
    u32 pulls_running; /* whether a step of stealing takes running threads */
    u32 zero; /* where loops begin: 0, which the verifier must not know (queue.h: unknown) */
    u32 one; /* how far they step: 1 */
    u32 stuck; /* how many have waited for a lock in vain, at least */
    u32 domain_count; /* clusters */
    u64 rotations;
    u64 rotation_due_ns;
    struct set online; /* cores that there are at present */
    u64 operations_at; /* where the loader's operations begin, in bytes from here */
    u64 alive_ns; /* when the slow plane last gave a sign of life (CLOCK_MONOTONIC), written by the loader */
    u64 records_at; /* where records are (record.h), in bytes from here */
    u64 records_max; /* for how many there is room */
    u64 records_read; /* how many of them the loader has read, written by it */
    u64 records_lost; /* whether there was no room for one */
    u64 unit_ns; /* of load tracking: PELT_UNIT_NS, or as many times longer as the policy's time is dilated */
    u64 marks_at; /* where marks of threads begin (note_change), in bytes from here */
    u32 words; /* of a set of this machine's cores */
    u32 slots; /* capacity in threads of the memory that is mapped */
    u32 stranded; /* a core for which another one has to look, or NONE */
    u32 has_smt; /* whether some physical core has two threads */
    u32 tracking;
    u32 knows_energy; /* whether powers of all clusters are known */
    u8 idle[CORES_MAX]; /* cores: online, and without a running thread */
    u8 waiting[CORES_MAX]; /* queues: a thread waits there */
    struct rounds rounds;
    struct core cores[CORES_MAX];
    struct queue queues[CORES_MAX];
    struct call calls[CALLS]; /* of CPUs, by core, and of others */
    struct group group;
    struct domain domains[DOMAINS_MAX];
    /* Sorted cores, for balancing. */
    u32 targets[CORES_MAX];
    u32 sources[CORES_MAX];
    struct thread threads[];
};

typedef struct sched __arena sched_t;
typedef struct set __arena set_t;
typedef struct thread __arena thread_t;
typedef struct core __arena core_t;
typedef struct queue __arena queue_t;
typedef struct group __arena group_t;
typedef struct domain __arena domain_t;
typedef struct pick __arena pick_t;
typedef struct call __arena call_t;
typedef struct steal __arena steal_t;

/* A rule. To a program for one policy they are constants, and the verifier leaves out what they rule out. */
#ifdef CONSTANT_RULES
extern const volatile struct rules constant_rules;
#define rule(s, name) (constant_rules.name)
extern const volatile u32 constant_tracking;
#define tracking(s) constant_tracking
extern const volatile u32 constant_smt;
#define has_smt(s) constant_smt
#else
#define has_smt(s) ((s)->has_smt)
#define tracking(s) ((s)->tracking)
#define rule(s, name) ((s)->rules.name)
#endif

#endif
