/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * An L1 data cache per CPU and an L2 per class of core, with the least recently used line leaving first. What is in
 * them decides what a load or a store costs beside its instruction; nothing else is kept. Stores of one CPU leave the
 * lines of the others alone, and instructions are fetched for nothing.
 */
#include <stdlib.h>

#include "machine.h"

enum { L1_WAYS_MIN = 4, L2_WAYS_MIN = 16, LINES_PER_KIB = 1024 / LINE_BYTES };

static void make_cache(struct cache *cache, int64_t kib, int ways_min)
{
    int64_t lines = kib * LINES_PER_KIB;
    cache->sets = 1;
    while (cache->sets * 2 * ways_min <= lines)
        cache->sets *= 2;
    cache->ways = (int)(lines / cache->sets);
    cache->lines = calloc((size_t)(cache->sets * cache->ways), sizeof *cache->lines);
    if (!cache->lines)
        give_up("out of memory");
}

void make_l1(struct cache *cache, int64_t kib)
{
    make_cache(cache, kib, L1_WAYS_MIN);
}

void make_l2(struct cache *cache, int64_t kib)
{
    make_cache(cache, kib, L2_WAYS_MIN);
}

bool hits(struct cache *cache, uint64_t line)
{
    uint64_t *set = set_of(cache, line);
    uint64_t moving = line; /* into the first way; what was there goes one further, until the line's old place */
    for (int way = 0; way < cache->ways; way++) {
        uint64_t was = set[way];
        set[way] = moving;
        if (was == line)
            return true;
        moving = was;
    }
    return false;
}

static bool has(const struct cache *cache, uint64_t line)
{
    const uint64_t *set = set_of(cache, line);
    for (int way = 0; way < cache->ways; way++)
        if (set[way] == line)
            return true;
    return false;
}

int32_t cost_of_miss(const struct miss_shares *shares, const struct cache *l1, struct cache *l2, struct access access)
{
    bool is_stream = has(l1, access.line - 1); /* the line before it was used: a prefetcher is at work */
    bool is_near = hits(l2, access.physical_line);
    if (access.is_store)
        return is_near ? 0 : shares->store;
    if (is_stream)
        return is_near ? shares->l2_stream : shares->memory_stream;
    return is_near ? shares->l2 : shares->memory;
}
