/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The file of settings. Lines, in this order:
 *   quantum_ns NS
 *   class RATE_KIPS INTEGER MEMORY BRANCH FLOAT SIMD     costs in shares of 1/64 instruction; once per class
 *   cache L1_KIB L2_KIB L2 MEMORY L2_STREAM MEMORY_STREAM STORE     of the class before it: costs of misses in shares;
 *                                                        of all classes or of none
 *   rates ADDRESS RATE_KIPS...                           of the class before it: the word at that physical address
 *                                                        of the guest's memory says which of these counts
 *   cpu CLASS [INDEX]                                    the first class is 0; once per CPU; QEMU's number of it, which
 *                                                        is the next one if it is left out
 *   siblings CPU CPU PPM                                 two CPUs that are threads of one core, by their places among
 *                                                        `cpu` lines; speed of each while both are busy, in millionths
 * With caches, CPUs of a class share an L2.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

enum { LINE_BYTES_MAX = 500, INDEX_MAX = 2 * MAX_CPUS };
static const int64_t RATE_KIPS_MAX = 100 * 1000 * 1000;
static const int64_t QUANTUM_NS_MIN = 1000, QUANTUM_NS_MAX = 10 * 1000 * 1000;
static const int32_t SHARES_MAX = 1000 * SHARES;
static const int64_t L1_KIB_MIN = 1, L2_KIB_MIN = 16, CACHE_KIB_MAX = 1024 * 1024;
static const int32_t MISS_SHARES_MAX = 100 * 1000 * SHARES;

static bool read_class(const char *line, struct machine *machine)
{
    if (machine->classes == MAX_CLASSES)
        return false;
    struct class *new = &machine->class[machine->classes++];
    int32_t *cost = new->shares;
    int read = sscanf(line, "class %" SCNd64 " %" SCNd32 " %" SCNd32 " %" SCNd32 " %" SCNd32 " %" SCNd32,
                      &new->rate_kips, &cost[INTEGER], &cost[MEMORY], &cost[BRANCH], &cost[FLOAT], &cost[SIMD]);
    bool is_right = read == 1 + STATED_KINDS && new->rate_kips > 0 && new->rate_kips <= RATE_KIPS_MAX;
    for (int kind = 0; kind < STATED_KINDS && is_right; kind++)
        is_right = cost[kind] > 0 && cost[kind] <= SHARES_MAX;
    cost[WAIT] = WAIT_SHARES;
    return is_right;
}

static bool is_in(int64_t value, int64_t first, int64_t last)
{
    return value >= first && value <= last;
}

static bool read_cache(const char *line, struct machine *machine)
{
    struct class *its = machine->classes ? &machine->class[machine->classes - 1] : NULL;
    if (!its || its->l1_kib)
        return false;
    struct miss_shares *cost = &its->miss;
    int read = sscanf(line, "cache %" SCNd64 " %" SCNd64 " %" SCNd32 " %" SCNd32 " %" SCNd32 " %" SCNd32 " %" SCNd32,
                      &its->l1_kib, &its->l2_kib, &cost->l2, &cost->memory, &cost->l2_stream, &cost->memory_stream,
                      &cost->store);
    const int32_t costs[] = {cost->l2, cost->memory, cost->l2_stream, cost->memory_stream, cost->store};
    bool is_right =
        read == 7 && is_in(its->l1_kib, L1_KIB_MIN, CACHE_KIB_MAX) && is_in(its->l2_kib, L2_KIB_MIN, CACHE_KIB_MAX);
    for (size_t i = 0; i < sizeof costs / sizeof *costs && is_right; i++)
        is_right = is_in(costs[i], 0, MISS_SHARES_MAX);
    return is_right;
}

/* A number at the end of what was read; false if there is none or it is out of range. */
static bool read_number(const char **rest, int base, uint64_t last, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(*rest, &end, base);
    bool is_right = end != *rest && !errno && *number <= last;
    *rest = end;
    return is_right;
}

static bool is_at_end(const char *rest)
{
    return !rest[strspn(rest, " \n")];
}

static bool read_rates(const char *line, struct machine *machine)
{
    struct class *its = machine->classes ? &machine->class[machine->classes - 1] : NULL;
    if (!its || its->choice.rates)
        return false;
    struct choice *choice = &its->choice;
    const char *rest = line + strlen("rates ");
    if (!read_number(&rest, 16, UINT64_MAX, &choice->address) || choice->address % sizeof(uint32_t))
        return false;
    while (!is_at_end(rest)) {
        uint64_t rate_kips;
        if (choice->rates == MAX_RATES || !read_number(&rest, 10, (uint64_t)its->rate_kips, &rate_kips) || !rate_kips)
            return false;
        choice->rate_kips[choice->rates++] = (int64_t)rate_kips;
    }
    return choice->rates;
}

bool has_caches(const struct machine *machine)
{
    return machine->class[0].l1_kib;
}

static bool all_or_none_have_caches(const struct machine *machine)
{
    for (int class = 0; class < machine->classes; class ++)
        if (!machine->class[class].l1_kib != !has_caches(machine))
            return false;
    return true;
}

static bool read_cpu(const char *line, struct machine *machine)
{
    int cpu = machine->cpus, class, next = cpu ? machine->index_of[cpu - 1] + 1 : 0, index = next;
    if (cpu == MAX_CPUS || sscanf(line, "cpu %d %d", &class, &index) < 1 || class < 0 || class >= machine->classes)
        return false;
    machine->class_of[cpu] = class;
    machine->index_of[cpu] = index;
    machine->sibling_of[cpu] = -1;
    machine->cpus++;
    return index >= next && index < INDEX_MAX;
}

static bool is_alone(const struct machine *machine, int cpu)
{
    return cpu >= 0 && cpu < machine->cpus && machine->sibling_of[cpu] < 0;
}

static bool read_siblings(const char *line, struct machine *machine)
{
    int one, other;
    int64_t ppm;
    if (sscanf(line, "siblings %d %d %" SCNd64, &one, &other, &ppm) != 3 || one == other || !is_alone(machine, one) ||
        !is_alone(machine, other) || !is_in(ppm, 1, PPM))
        return false;
    machine->has_siblings = true;
    machine->sibling_of[one] = other;
    machine->sibling_of[other] = one;
    machine->shared_ppm[one] = machine->shared_ppm[other] = ppm;
    return true;
}

static bool read_quantum(const char *line, struct machine *machine)
{
    int64_t *quantum_ns = &machine->quantum_ns;
    return sscanf(line, "quantum_ns %" SCNd64, quantum_ns) == 1 && *quantum_ns >= QUANTUM_NS_MIN &&
           *quantum_ns <= QUANTUM_NS_MAX;
}

static bool read_line(const char *line, struct machine *machine)
{
    if (!strncmp(line, "class ", 6))
        return read_class(line, machine);
    if (!strncmp(line, "cache ", 6))
        return read_cache(line, machine);
    if (!strncmp(line, "rates ", 6))
        return read_rates(line, machine);
    if (!strncmp(line, "cpu ", 4))
        return read_cpu(line, machine);
    if (!strncmp(line, "siblings ", 9))
        return read_siblings(line, machine);
    return read_quantum(line, machine);
}

bool read_machine(const char *path, struct machine *machine)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "exact clock: %s: cannot be read\n", path);
        return false;
    }
    char line[LINE_BYTES_MAX];
    bool is_right = true;
    memset(machine, 0, sizeof *machine);
    for (int number = 1; is_right && fgets(line, sizeof line, file); number++) {
        is_right = read_line(line, machine);
        if (!is_right)
            fprintf(stderr, "exact clock: %s:%d: wrong or out of range: %s", path, number, line);
    }
    fclose(file);
    if (is_right && (!machine->quantum_ns || !machine->cpus)) {
        fprintf(stderr, "exact clock: %s: needs quantum_ns and cpu\n", path);
        is_right = false;
    }
    if (is_right && !all_or_none_have_caches(machine)) {
        fprintf(stderr, "exact clock: %s: some classes have a cache and others have none\n", path);
        is_right = false;
    }
    return is_right;
}
