/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The machine that is to be imitated, and what its instructions cost. What a core can execute is counted in shares: 64
 * are one instruction of cost 1.
 */
#ifndef AMPSCHED_MACHINE_H
#define AMPSCHED_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "qemu.h"

enum { PPM = 1000 * 1000 };
enum { SHARES = 64, MAX_CPUS = 512, MAX_CLASSES = 16, MAX_RATES = 32 };

/* WAIT: hints by which a CPU that spins gives its turn away (pause; yield, wfe). Its cost is WAIT_SHARES. */
enum kind { INTEGER, MEMORY, BRANCH, FLOAT, SIMD, WAIT, KINDS };
enum { STATED_KINDS = WAIT };

/* Intel's optimization manual (2.5.4 for Skylake client): pause takes up to 140 cycles. Without such a cost, a thread
 * that spins would look a hundred times as often as on real cores, and QEMU would change turns with every look. */
enum { WAIT_SHARES = 140 * SHARES };

/* What an access that misses the L1 costs beside its instruction. */
struct miss_shares {
    int32_t l2, memory; /* a load that hits the L2; one that does not */
    int32_t l2_stream, memory_stream; /* the same behind a line that was used just before */
    int32_t store; /* a store that misses the L2, too */
};

/* Rates among which the guest chooses, by their number in a word of its memory. */
struct choice {
    uint64_t address; /* physical, a multiple of 4 */
    int rates; /* 0 without a choice */
    int64_t rate_kips[MAX_RATES];
};

struct class
{
    int64_t rate_kips; /* thousand instructions of cost 1 per second; at most, if there is a choice */
    int32_t shares[KINDS]; /* cost of an instruction of each kind */
    int64_t l1_kib, l2_kib; /* 0 without caches */
    struct miss_shares miss; /* at that rate */
    struct choice choice;
};

/* How fast the CPUs of a class are now, and what misses cost at that rate. */
struct speed {
    int64_t rate_kips;
    struct miss_shares miss;
    const volatile uint32_t *word; /* of the choice, once it is known where QEMU has it */
};

struct machine {
    int64_t quantum_ns;
    int classes;
    struct class class[MAX_CLASSES];
    int cpus;
    int class_of[MAX_CPUS];
    int index_of[MAX_CPUS]; /* QEMU's number of each, ascending: it leaves out numbers where a core has one thread */
    int sibling_of[MAX_CPUS]; /* the other thread of its core, -1 for none */
    int64_t shared_ppm[MAX_CPUS]; /* its speed while its sibling is busy, in millionths of its speed alone */
    bool has_siblings;
};

/* Reads the file of settings. Says on stderr what is wrong, and returns false, if something is. */
bool read_machine(const char *path, struct machine *machine);

/* Whether what loads and stores cost depends on caches. */
bool has_caches(const struct machine *machine);

/* Ends QEMU with one line on stderr. */
void give_up(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* The speed at power-on, and that which the guest has chosen meanwhile; more than there are is the last one. */
void set_speed(const struct class *class, struct speed *speed);
void follow_choice(const struct class *class, struct speed *speed);

/* The kind of an x86-64 or A64 instruction, by its bytes. */
enum kind kind_of_x86(const uint8_t *bytes, size_t length);
enum kind kind_of_a64(uint32_t word);

enum { LINE_BYTES = 64 };

struct cache {
    uint64_t *lines; /* sets of ways, the last used first; addresses / LINE_BYTES, 0 for none */
    int64_t sets; /* a power of two */
    int ways;
};

struct access {
    uint64_t line, physical_line;
    bool is_store;
};

static inline uint64_t *set_of(const struct cache *cache, uint64_t line)
{
    return cache->lines + (int64_t)(line & (uint64_t)(cache->sets - 1)) * cache->ways;
}

void make_l1(struct cache *cache, int64_t kib);
void make_l2(struct cache *cache, int64_t kib);

/* Whether a cache has a line. It has it afterwards. */
bool hits(struct cache *cache, uint64_t line);

/* What an access costs that has just missed the L1. */
int32_t cost_of_miss(const struct miss_shares *shares, const struct cache *l1, struct cache *l2, struct access access);

/* What a translated block costs: shares[class]. The row lives as long as QEMU does. */
const int32_t *cost_of_block(const struct machine *machine, const struct qemu_plugin_tb *tb, bool is_a64);

#endif
