/* SPDX-License-Identifier: GPL-2.0-only */
/* Sets of cores: a bit for each, in as many words as the machine's cores need. */
#ifndef AMPSCHED_SET_H
#define AMPSCHED_SET_H

#include "state.h"

static __always_inline u64 bit(u32 core)
{
    return 1ull << (core % 64);
}

static __always_inline bool has(set_t *set, u32 core)
{
    return at(set->words, core / 64) & bit(core);
}

static __always_inline void include(set_t *set, u32 core)
{
    at(set->words, core / 64) |= bit(core);
}

static __always_inline void exclude(set_t *set, u32 core)
{
    at(set->words, core / 64) &= ~bit(core);
}

static __always_inline void empty(sched_t *s, set_t *set)
{
    for (u32 i = s->zero; i < s->words && can_loop; i += s->one)
        at(set->words, i) = opaque_zero();
}

static __always_inline void copy(sched_t *s, set_t *set, set_t *from)
{
    for (u32 i = s->zero; i < s->words && can_loop; i += s->one)
        at(set->words, i) = at(from->words, i);
}

static __always_inline void fill(sched_t *s, set_t *set)
{
    for (u32 i = s->zero; i < s->words && can_loop; i += s->one)
        at(set->words, i) = ~0ull;
}

/* Whether some core is in both of two sets. */
static __always_inline bool intersects(sched_t *s, set_t *a, set_t *b)
{
    u64 some = s->zero;
    for (u32 i = s->zero; i < s->words && can_loop; i += s->one)
        some |= at(a->words, i) & at(b->words, i);
    return some;
}

/* Makes a set those cores that are in both of two others; all of the second one if none is. Returns whether that
 * changes it. */
global_subprog bool intersect(__arg_arena sched_t *s, __arg_arena set_t *set, __arg_arena set_t *cores,
                              __arg_arena set_t *of)
{
    u64 all = intersects(s, cores, of) ? s->zero : ~0ull, changed = s->zero;
    for (u32 i = s->zero; i < s->words && can_loop; i += s->one) {
        u64 common = (at(cores->words, i) | all) & at(of->words, i);
        changed |= common ^ at(set->words, i);
        at(set->words, i) = common;
    }
    return changed;
}

#endif
