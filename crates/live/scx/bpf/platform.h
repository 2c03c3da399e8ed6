/* SPDX-License-Identifier: GPL-2.0-only */
/* What differs between BPF, where the state is in an arena and every loop must be bounded, and an ordinary program. */
#ifndef AMPSCHED_PLATFORM_H
#define AMPSCHED_PLATFORM_H

#ifdef __bpf__

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;
typedef _Bool bool;
#define true 1
#define false 0

/* Memory of the arena, which the kernel and the loader see at the same addresses, and where it begins. */
#define arena __attribute__((address_space(1)))
#define ARENA_AT (1ull << 44)

/* An element of an array in the arena. The address is computed as a number, out of the compiler's sight, as the
 * verifier accepts `pointer + number` only, not `number + pointer`. */
#define at(array, index) \
    (*({ \
        __auto_type element = &(array)[index]; \
        asm("" : "+r"(element)); \
        element; \
    }))

/* A word that is read, or written, though somebody else may do so at the same time. */
#define get(word) (*(volatile __typeof__(word) *)&(word))
#define put(word, value) (get(word) = (value))

/* Loops until the kernel's patience (several million rounds, a quarter of a second) is at an end. */
#define can_go_on \
    ({ \
        __label__ out, go_on; \
        bool yes = true; \
        asm volatile goto("may_goto %l[out]" : : : : out); \
        goto go_on; \
    out: \
        yes = false; \
    go_on:; \
        yes; \
    })

#else

#include <stdbool.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;
#define arena
#define at(array, index) ((array)[index])
#define can_go_on true
#define get(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)
#define put(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELAXED)

#endif

#define inlined static inline __attribute__((always_inline, unused))
/* Apart, so that the verifier's stack and call depth stay within limits. */
#define apart static __attribute__((noinline, unused))

/* Looked at once by the verifier, by itself and for all arguments, instead of on each path to each of its calls: what
 * it takes to load a program is then the sum of its functions, not their product. Of its parameters those that point
 * into the arena are `shared`, and used; the others are numbers. It always returns something: DONE if it has nothing to
 * say. It may not be called while a lock of the kernel's is held, and before Linux 6.15 not with interrupts off. */
#ifdef __bpf__
#define once __attribute__((noinline, unused))
#define shared __attribute__((btf_decl_tag("arg:arena")))
#else
#define once apart
#define shared
#endif

typedef enum done { DONE } done_t;

/* 0, out of the compiler's sight: of two zeroes it would make one memset, and clang 19 writes that to an address that
 * it has not cast from the arena's, which the verifier refuses. */
inlined u64 nothing(void)
{
    u64 nothing = 0;
    asm("" : "+r"(nothing));
    return nothing;
}

inlined u64 least_of(u64 a, u64 b)
{
    return a < b ? a : b;
}

inlined u64 greatest_of(u64 a, u64 b)
{
    return a > b ? a : b;
}

/* a - b, or 0. */
inlined u64 less(u64 a, u64 b)
{
    return a > b ? a - b : 0;
}

/* a + b, or the greatest number. */
inlined u64 plus(u64 a, u64 b)
{
    return a + b < a ? ~0ull : a + b;
}

inlined u64 div_up(u64 a, u64 b)
{
    return a / b + (a % b != 0);
}

/* Quotient of a signed and an unsigned number, rounded towards 0. (BPF before version 4 divides unsigned numbers
 * only.) */
inlined s64 div_to_zero(s64 a, u64 b)
{
    return a < 0 ? -(s64)((u64)-a / b) : (s64)((u64)a / b);
}

/* The same, rounded down. */
inlined s64 div_down(s64 a, u64 b)
{
    return a < 0 ? -(s64)div_up((u64)-a, b) : (s64)((u64)a / b);
}

#endif
