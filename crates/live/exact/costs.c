/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What translated blocks cost. Blocks with the same numbers of each kind share a row, so memory stays small however
 * often QEMU translates them anew.
 */
#include <stdlib.h>
#include <string.h>

#include "machine.h"

enum { BUCKETS = 1 << 14, X86_BYTES_MAX = 15 };

struct row {
    struct row *next;
    uint16_t count[KINDS];
    int32_t shares[MAX_CLASSES];
};

static struct row *buckets[BUCKETS];

static enum kind kind_of(const struct qemu_plugin_insn *insn, bool is_a64)
{
    uint32_t word = 0;
    uint8_t bytes[X86_BYTES_MAX];
    if (is_a64) {
        qemu_plugin_insn_data(insn, &word, sizeof word);
        return kind_of_a64(word);
    }
    return kind_of_x86(bytes, qemu_plugin_insn_data(insn, bytes, sizeof bytes));
}

static size_t bucket_of(const uint16_t *count)
{
    uint32_t hash = 2166136261u;
    for (int kind = 0; kind < KINDS; kind++)
        hash = (hash ^ count[kind]) * 16777619u;
    return hash % BUCKETS;
}

static struct row *new_row(const struct machine *machine, const uint16_t *count)
{
    struct row *row = calloc(1, sizeof *row);
    if (!row)
        give_up("out of memory");
    memcpy(row->count, count, sizeof row->count);
    for (int class = 0; class < machine->classes; class ++)
        for (int kind = 0; kind < KINDS; kind++)
            row->shares[class] += count[kind] * machine->class[class].shares[kind];
    return row;
}

const int32_t *cost_of_block(const struct machine *machine, const struct qemu_plugin_tb *tb, bool is_a64)
{
    uint16_t count[KINDS] = {0};
    size_t length = qemu_plugin_tb_n_insns(tb);
    for (size_t i = 0; i < length; i++)
        count[kind_of(qemu_plugin_tb_get_insn(tb, i), is_a64)]++;
    struct row **bucket = &buckets[bucket_of(count)];
    for (struct row *row = *bucket; row; row = row->next)
        if (!memcmp(row->count, count, sizeof row->count))
            return row->shares;
    struct row *row = new_row(machine, count);
    row->next = *bucket;
    *bucket = row;
    return row->shares;
}
