/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Threads that load from caches of the exact virtual machine (crates/live/exact/caches.c), one L1 each and one L2 for
 * all, in the order of their own clocks: who is behind goes next. An instruction takes a cycle, and what its load
 * misses beside that. Each thread has data of its own.
 *
 * usage: shared_l2 L2_KIB L2_CYCLES MEMORY_CYCLES INSTRUCTIONS PATTERN:KIB:LOADS...
 *
 * For each thread a line: cycles, L1 misses and L2 misses per instruction, after as many to warm up.
 *
 * uniform: any line of the data; skewed: ranks whose logarithm is uniform; stream: one line after the other.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

enum { THREADS_MAX = 8, L1_KIB = 32 };

struct thread {
    struct cache l1;
    char pattern;
    uint64_t first, lines, at, random;
    double loads, due, cycles, begun;
    int64_t executed, l1_misses, l2_misses;
    double shown[3];
};

void give_up(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    exit(2);
}

static double uniform(struct thread *thread)
{
    thread->random ^= thread->random << 13;
    thread->random ^= thread->random >> 7;
    thread->random ^= thread->random << 17;
    return (double)(thread->random >> 11) / 9007199254740992.0;
}

static uint64_t next_line(struct thread *thread)
{
    double lines = (double)thread->lines;
    switch (thread->pattern) {
    case 's':
        thread->at = (thread->at + 1) % thread->lines;
        return thread->first + thread->at;
    case 'k':
        return thread->first + (uint64_t)pow(lines, uniform(thread)) % thread->lines;
    default:
        return thread->first + (uint64_t)(uniform(thread) * lines);
    }
}

static void step(struct thread *thread, struct cache *l2, const struct miss_shares *costs)
{
    thread->executed++;
    thread->cycles++;
    thread->due += thread->loads;
    if (thread->due < 1)
        return;
    thread->due--;
    uint64_t line = next_line(thread);
    if (hits(&thread->l1, line))
        return;
    struct access access = {.line = line, .physical_line = line};
    int32_t cost = cost_of_miss(costs, &thread->l1, l2, access);
    thread->l1_misses++;
    thread->l2_misses += cost == costs->memory;
    thread->cycles += cost;
}

static void read_thread(struct thread *thread, int number, const char *text)
{
    char pattern[16];
    unsigned long kib;
    if (sscanf(text, "%15[a-z]:%lu:%lf", pattern, &kib, &thread->loads) != 3)
        give_up("%s: PATTERN:KIB:LOADS\n", text);
    thread->pattern = strcmp(pattern, "stream") == 0 ? 's' : strcmp(pattern, "skewed") == 0 ? 'k' : 'u';
    thread->lines = kib * 1024 / LINE_BYTES;
    thread->first = ((uint64_t)number + 1) << 32;
    thread->random = 88172645463325252u + (uint64_t)number;
    make_l1(&thread->l1, L1_KIB);
}

int main(int count, char **words)
{
    if (count < 6 || count > 5 + THREADS_MAX)
        give_up("usage: shared_l2 L2_KIB L2_CYCLES MEMORY_CYCLES INSTRUCTIONS PATTERN:KIB:LOADS...\n");
    static struct thread threads[THREADS_MAX];
    struct cache l2;
    int running = count - 5, left = running;
    int32_t near = atoi(words[2]), far = atoi(words[3]);
    int64_t instructions = atoll(words[4]);
    struct miss_shares costs = {near, far, near, far, 0};
    make_l2(&l2, atoll(words[1]));
    for (int number = 0; number < running; number++)
        read_thread(&threads[number], number, words[5 + number]);
    while (left > 0) {
        struct thread *thread = threads;
        for (struct thread *other = threads + 1; other < threads + running; other++)
            if (other->cycles < thread->cycles)
                thread = other;
        step(thread, &l2, &costs);
        if (thread->executed == instructions) {
            thread->begun = thread->cycles;
            thread->l1_misses = thread->l2_misses = 0;
        } else if (thread->executed == 2 * instructions) {
            thread->shown[0] = (thread->cycles - thread->begun) / (double)instructions;
            thread->shown[1] = (double)thread->l1_misses / (double)instructions;
            thread->shown[2] = (double)thread->l2_misses / (double)instructions;
            left--;
        }
    }
    for (int number = 0; number < running; number++)
        printf("%.6f %.6f %.6f\n", threads[number].shown[0], threads[number].shown[1], threads[number].shown[2]);
    return 0;
}
