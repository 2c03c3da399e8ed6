/* SPDX-License-Identifier: GPL-2.0-only */
/* Per-entity load tracking: how busy a thread or core has been lately. After crates/policy/src/pelt.rs, in the same
 * whole numbers.
 *
 * The kernel's own averages are of no use here: p->se.avg belongs to the fair class, which alone brings it up to date
 * (Linux 6.18, kernel/sched/fair.c: update_load_avg, from enqueue_entity, dequeue_entity and entity_tick; arithmetic in
 * kernel/sched/pelt.c). Of a task of the extensible class it stands still. */
#ifndef AMPSCHED_PELT_H
#define AMPSCHED_PELT_H

#include "platform.h"

#define PELT_UNIT_NS 1024ull /* the kernel's cheap stand-in for 1 us, if time is not dilated */
#define PELT_UNITS 1024ull /* in a period */
#define PELT_HALF_LIFE 32ull /* periods after which activity counts half */
#define PELT_SUM_MAX 47742ull /* of an endless activity, in units */
#define PELT_FORGOTTEN (PELT_HALF_LIFE * 63) /* after that many periods nothing is left */
#define CAPACITY_ONE 1024ull

/* 2^32 x 2^(-n/32) for n = 0 to 31, rounded down. */
static const u32 pelt_y[PELT_HALF_LIFE] = {
    0xffffffff, 0xfa83b2da, 0xf5257d14, 0xefe4b99a, 0xeac0c6e6, 0xe5b906e6, 0xe0ccdeeb, 0xdbfbb796,
    0xd744fcc9, 0xd2a81d91, 0xce248c14, 0xc9b9bd85, 0xc5672a10, 0xc12c4cc9, 0xbd08a39e, 0xb8fbaf46,
    0xb504f333, 0xb123f581, 0xad583ee9, 0xa9a15ab4, 0xa5fed6a9, 0xa2704302, 0x9ef5325f, 0x9b8d39b9,
    0x9837f050, 0x94f4efa8, 0x91c3d373, 0x8ea4398a, 0x8b95c1e3, 0x88980e80, 0x85aac367, 0x82cd8698,
};

/* The averages of a thread or core. */
struct pelt {
    u64 updated_ns;
    u64 part; /* units of the current period that have passed */
    u64 load_sum;
    u64 runnable_sum;
    u64 util_sum;
};

/* What a thread does. */
enum activity { ACTIVITY_ASLEEP, ACTIVITY_WAITING, ACTIVITY_RUNNING };

/* A thread whose load is tracked. */
struct tracked_thread {
    struct pelt pelt;
    u64 estimated; /* start of the period in which its utilisation was estimated last, and 1; 0: never */
    u32 estimate; /* of what it will use when it wakes up */
    u32 weight;
    u32 core; /* of whose averages its own are a part */
    u8 attached; /* 1: there is such a core */
    u8 runnable; /* 1 or 0 */
    u8 running;
    u8 unused;
};

/* A core, with the time in which the averages of its threads are kept: while it is busy it advances with the work
 * done. */
struct tracked_core {
    struct pelt pelt;
    u64 real_ns;
    u64 scaled_ns;
    u64 lost_ns;
    u64 seen_ns; /* up to when its averages are kept */
    u64 load; /* of the threads on it together: their weights */
    u32 runnable; /* how many */
    u32 running; /* 1: one runs */
    u32 estimates; /* sum over the runnable ones */
    u32 capacity; /* at the highest frequency */
    u32 present; /* at the present one */
    u32 requested; /* at that which the policy has set */
};

typedef struct pelt __arena pelt_t;
typedef struct tracked_thread __arena tracked_thread_t;
typedef struct tracked_core __arena tracked_core_t;

/* Arithmetic without branches: the kernel's verifier follows each branch by itself, and load is tracked at every change
 * of state. Numbers are below 2^63. All bits if a < b, else none. */
static __always_inline u64 mask_below(u64 a, u64 b)
{
    u64 mask = a - b;
    /* Out of the compiler's sight, which would make branches of it. */
    asm("" : "+r"(mask));
    mask = (u64)((s64)mask >> 63);
    asm("" : "+r"(mask));
    return mask;
}

/* a - b, or 0. */
static __always_inline u64 sat_sub_branchless(u64 a, u64 b)
{
    return (a - b) & mask_below(b, a);
}

static __always_inline u64 select_by(u64 mask, u64 a, u64 b)
{
    return b ^ ((a ^ b) & mask);
}

/* Time that has passed since averages were brought up to date, and what it does to sums. */
struct elapsed {
    u64 updated_ns;
    u64 part;
    u64 halvings;
    u64 factor; /* what is left of a sum: sum / 2^halvings x factor / 2^32 */
    u64 active; /* what activity adds */
};

/* Rounded down. BPF has no products of 128 bits. */
static __always_inline u64 decayed(u64 sum, const struct elapsed *past)
{
    u64 halved = sum >> past->halvings;
    return (halved >> 32) * past->factor + ((halved & 0xffffffff) * past->factor >> 32);
}

/* 2^32 for no period, 0 for too many. */
static __always_inline u64 decay_factor(u64 periods)
{
    u64 factor = pelt_y[periods & (PELT_HALF_LIFE - 1)] + (mask_below(periods, 1) & 1);
    return factor & mask_below(periods, PELT_FORGOTTEN + 1);
}

static __always_inline void elapse(struct elapsed *past, pelt_t *pelt, u64 now_ns, u64 unit_ns)
{
    u64 begun = pelt->part;
    u64 units = sat_sub_branchless(now_ns, pelt->updated_ns) / unit_ns;
    u64 periods = (begun + units) / PELT_UNITS;
    past->updated_ns = pelt->updated_ns + units * unit_ns;
    past->part = (begun + units) % PELT_UNITS;
    past->halvings = periods / PELT_HALF_LIFE & 63; /* more periods leave nothing */
    past->factor = decay_factor(periods);
    past->active = decayed(PELT_UNITS - begun, past) + PELT_SUM_MAX + past->part;
    past->active -= decayed(PELT_SUM_MAX, past) + PELT_UNITS;
}

/* Greatest sum at that place in the period. */
static __always_inline u64 divider_at(u64 part)
{
    return PELT_SUM_MAX - PELT_UNITS + part;
}

/* Books what has been done since the last update. */
static __always_inline void pelt_update(pelt_t *pelt, u64 now_ns, u64 unit_ns, u64 load, u64 runnable, u64 running)
{
    struct elapsed past;
    elapse(&past, pelt, now_ns, unit_ns);
    pelt->load_sum = decayed(pelt->load_sum, &past) + load * past.active;
    pelt->runnable_sum = decayed(pelt->runnable_sum, &past) + runnable * CAPACITY_ONE * past.active;
    pelt->util_sum = decayed(pelt->util_sum, &past) + running * CAPACITY_ONE * past.active;
    pelt->updated_ns = past.updated_ns;
    pelt->part = past.part;
}

static __always_inline u64 util_avg(pelt_t *pelt)
{
    return pelt->util_sum / divider_at(pelt->part);
}

static __always_inline u64 runnable_avg(pelt_t *pelt)
{
    return pelt->runnable_sum / divider_at(pelt->part);
}

/* All bits if a core has never been idle as far as the sums tell. */
static __always_inline u64 mask_saturated(pelt_t *pelt)
{
    return ~mask_below(pelt->util_sum, (PELT_SUM_MAX - PELT_UNITS) * CAPACITY_ONE - PELT_SUM_MAX);
}

/* Averages without a past but for these: fully loaded, with a utilisation and as much runnable time. */
static __always_inline void begin_averages(pelt_t *pelt, u64 now_ns, u64 util)
{
    pelt->updated_ns = now_ns;
    pelt->part = 0;
    pelt->load_sum = divider_at(0);
    pelt->runnable_sum = pelt->util_sum = util * divider_at(0);
}

/* The utilisation of a new thread on a core, next to its present threads: at most half of what it has left. */
static __always_inline u64 forked_util(pelt_t *core, u32 weight, u64 capacity)
{
    u64 used = util_avg(core), limit = sat_sub_branchless(capacity, used) / 2;
    u64 like_others = used * weight / (core->load_sum / divider_at(core->part) + 1);
    return select_by(mask_below(0, used) & mask_below(like_others, limit), like_others, limit);
}

/* A thread comes to a core. Both are up to date, each in its own time. */
static __always_inline void attach_averages(pelt_t *core, pelt_t *own, u32 weight)
{
    u64 old_divider = divider_at(own->part), divider = divider_at(core->part);
    own->updated_ns = core->updated_ns;
    own->part = core->part;
    own->load_sum = own->load_sum * divider / old_divider;
    own->runnable_sum = own->runnable_sum * divider / old_divider;
    own->util_sum = own->util_sum * divider / old_divider;
    core->load_sum += weight * own->load_sum;
    core->runnable_sum += own->runnable_sum;
    core->util_sum += own->util_sum;
}

/* A thread leaves a core. Both are up to date, in the core's time. */
static __always_inline void detach_averages(pelt_t *core, pelt_t *own, u32 weight)
{
    core->load_sum = sat_sub_branchless(core->load_sum, weight * own->load_sum);
    core->runnable_sum = sat_sub_branchless(core->runnable_sum, own->runnable_sum);
    core->util_sum = sat_sub_branchless(core->util_sum, own->util_sum);
}

#endif
