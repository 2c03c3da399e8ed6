/* SPDX-License-Identifier: GPL-2.0-only */
/* Placing by estimated energy: energy-aware scheduling. After crates/policy/src/sched/by_energy.rs. */
#ifndef AMPSCHED_BY_ENERGY_H
#define AMPSCHED_BY_ENERGY_H

#include "place.h"

#define HYSTERESIS_ONE 1024ull
#define TOO_MUCH (1ull << 62) /* energy, and utilisation, where a thread cannot be */

/* What is asked of a cluster about a thread that wakes up, and the answer. */
struct estimate {
    u64 now_ns;
    u64 util; /* of the thread */
    u32 cluster;
    u32 core; /* the one with the most capacity to spare of those where the thread may run and fits, or NONE */
    u64 base; /* energy of the cluster without the thread */
    u64 added; /* what it adds on that core, or TOO_MUCH */
    u64 stay; /* on its previous one */
};

/* Energy per time of a cluster, by the greatest utilisation of its cores and their sum: of the lowest operating point
 * that has a quarter more. */
global_subprog u64 energy(__arg_arena sched_t *s, __arg_arena domain_t *domain, u64 most, u64 sum)
{
    u32 i = s->zero;
    while (i + 1 < domain->count && can_loop && at(domain->points, i).capacity < most + most / 4)
        i += s->one;
    return at(domain->points, i).cost * sum;
}

/* The utilisation of a core without what a thread has left there. */
global_subprog u64 util_without(__arg_arena sched_t *s, u32 core, u32 thread, u64 now_ns)
{
    tracked_core_t *own = &core_of(s, core)->tracked;
    tracked_thread_t *its = &thread_of(s, thread)->tracked;
    u64 is_there = -(u64)its->attached & mask_below(its->core ^ core, 1), time_ns = core_time_at(own, now_ns);
    struct elapsed past;
    elapse(&past, &its->pelt, time_ns, s->unit_ns);
    u64 its_sum = decayed(its->pelt.util_sum, &past) + its->running * CAPACITY_ONE * past.active;
    elapse(&past, &own->pelt, time_ns, s->unit_ns);
    u64 sum = decayed(own->pelt.util_sum, &past) + own->running * CAPACITY_ONE * past.active;
    u64 used = sat_sub_branchless(sum, its_sum & is_there) / divider_at(past.part);
    u64 estimates = own->estimates - (its->estimate * (u64)its->runnable & is_there);
    return min(max(used, estimates), own->capacity);
}

/* What a thread adds to the energy of a cluster on a core of which so much is used; TOO_MUCH on none. */
static __always_inline u64 added(sched_t *s, struct estimate *of, u64 used, u64 most, u64 sum)
{
    domain_t *domain = &at(s->domains, of->cluster);
    u64 with = min(used + of->util, domain->capacity);
    u64 all = energy(s, domain, max(most, with), sum - used + with);
    return select_by(mask_below(used, TOO_MUCH), max(all, of->base) - of->base, TOO_MUCH);
}

/* Without branches, as what is kept from round to round would differ by them. */
static __noinline void estimate_energy(sched_t *s, u32 thread, struct estimate *of)
{
    domain_t *domain = &at(s->domains, of->cluster);
    u32 previous = thread_of(s, thread)->core;
    u64 most = s->zero, sum = s->zero, best = opaque(s, NONE);
    u64 least = opaque(s, TOO_MUCH), there = opaque(s, TOO_MUCH);
    for (u32 core = s->zero; core < s->core_count && can_loop; core += s->one) {
        if (core_of(s, core)->cluster != of->cluster)
            continue;
        u64 used = util_without(s, core, thread, of->now_ns);
        u64 fits = mask_below((used + of->util) * FITS_MARGIN, domain->capacity * CAPACITY_ONE);
        u64 may = fits & -(u64)allows(s, thread, core), takes = may & mask_below(used, least);
        most = select_by(mask_below(most, used), used, most);
        sum += used;
        there = select_by(may & mask_below(core ^ previous, 1), used, there);
        least = select_by(takes, used, least);
        best = select_by(takes, core, best);
    }
    of->core = best;
    of->base = energy(s, domain, most, sum);
    of->added = added(s, of, least, most, sum);
    of->stay = added(s, of, there, most, sum);
}

/* The core for a thread that wakes up; NONE if it is to be placed as without energies. */
static __noinline u32 cheapest(sched_t *s, u32 thread, u64 now_ns)
{
    thread_t *own = thread_of(s, thread);
    if (own->state == STATE_NEW || !s->knows_energy || is_overutilised(s, now_ns))
        return NONE;
    u32 previous = allows(s, thread, own->core) ? own->core : NONE;
    u64 least = opaque(s, TOO_MUCH), stay = opaque(s, TOO_MUCH), total = s->zero, best = opaque(s, NONE);
    struct estimate of = {.now_ns = now_ns, .util = util_of(s, thread, now_ns)};
    if (of.util == 0)
        return previous;
    for (u32 i = s->zero; i < s->domain_count && can_loop; i += s->one) {
        of.cluster = i;
        estimate_energy(s, thread, &of);
        total += of.base;
        stay = select_by(mask_below(of.stay, stay), of.stay, stay);
        best = select_by(mask_below(of.added, least), of.core, best);
        least = select_by(mask_below(of.added, least), of.added, least);
    }
    if (least == TOO_MUCH)
        return previous;
    /* A little saving is not worth a migration. */
    if (stay < TOO_MUCH && stay * HYSTERESIS_ONE <= least * HYSTERESIS_ONE + (stay + total) * rule(s, hysteresis))
        return own->core;
    return best;
}

/* ALLOCATOR_BY_ENERGY */
static __always_inline u32 place_by_energy(sched_t *s, u32 thread, u32 waker, u64 now_ns)
{
    u32 core = cheapest(s, thread, now_ns);
    return core != NONE ? core : place_wake_affine(s, thread, waker);
}

#endif
