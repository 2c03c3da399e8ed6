/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Rates that the guest chooses: a class of CPUs may have a word in the guest's memory that says which of its rates
 * counts. To the guest it is a register of a frequency controller. It is read when a quantum begins, so a new rate
 * counts from the next quantum on.
 */
#include "machine.h"

void set_speed(const struct class *class, struct speed *speed)
{
    speed->rate_kips = class->rate_kips;
    speed->miss = class->miss;
}

static int32_t scaled(int32_t shares, const struct class *class, int64_t rate_kips)
{
    return (int32_t)(shares * rate_kips / class->rate_kips);
}

/* The L2 has the clock of the cores, memory has its own: the slower the cores, the fewer instructions it costs. */
static void slow_down(const struct class *class, struct speed *speed)
{
    const struct miss_shares *at_most = &class->miss;
    struct miss_shares *now = &speed->miss;
    now->memory = at_most->l2 + scaled(at_most->memory - at_most->l2, class, speed->rate_kips);
    now->memory_stream =
        at_most->l2_stream + scaled(at_most->memory_stream - at_most->l2_stream, class, speed->rate_kips);
    now->store = scaled(at_most->store, class, speed->rate_kips);
}

/* The guest's memory stays where it is as long as QEMU runs. */
static const volatile uint32_t *word_at(uint64_t address)
{
    uint64_t length = sizeof(uint32_t);
    const volatile uint32_t *word = cpu_physical_memory_map(address, &length, false);
    if (!word || length < sizeof *word)
        give_up("the guest has no memory at %#llx", (unsigned long long)address);
    return word;
}

void follow_choice(const struct class *class, struct speed *speed)
{
    const struct choice *choice = &class->choice;
    if (!choice->rates)
        return;
    if (!speed->word)
        speed->word = word_at(choice->address);
    uint32_t number = *speed->word;
    int64_t rate_kips = choice->rate_kips[number < (uint32_t)choice->rates ? (int)number : choice->rates - 1];
    if (rate_kips == speed->rate_kips)
        return;
    speed->rate_kips = rate_kips;
    slow_down(class, speed);
}
