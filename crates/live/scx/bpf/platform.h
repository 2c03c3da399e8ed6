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

/* Types that libbpf's headers expect. */
typedef u8 __u8;
typedef u16 __u16, __be16;
typedef u32 __u32, __be32, __wsum;
typedef u64 __u64;
typedef s32 __s32;
typedef s64 __s64;

#include <bpf/bpf_helpers.h>

/* Memory of the arena, which the kernel and the loader see at the same addresses, and where it begins. */
#define __arena __attribute__((address_space(1)))
#define ARENA_AT (1ull << 44)

/* An element of an array in the arena. The address is computed as a number, out of the compiler's sight, as the
 * verifier accepts `pointer + number` only, not `number + pointer`. */
#define at(array, index) \
    (*({ \
        __auto_type element = &(array)[index]; \
        asm("" : "+r"(element)); \
        element; \
    }))

/* Accesses to a word that other CPUs may access at the same time: the compiler neither tears, merges nor repeats them.
 * As in the kernel they order nothing; what needs an order takes a lock or an atomic instruction (lock.h). */
#define READ_ONCE(word) (*(volatile __typeof__(word) *)&(word))
#define WRITE_ONCE(word, value) (READ_ONCE(word) = (value))

/* True until the kernel's limit for loops of a program (several million rounds, a quarter of a second) is reached. */
#define can_loop \
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
#define __arena
#define at(array, index) ((array)[index])
#define can_loop true
#define READ_ONCE(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)
#define WRITE_ONCE(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELAXED)

#endif

#undef __always_inline
#define __always_inline inline __attribute__((always_inline, unused))
/* Keeps the verifier's stack and call depth within limits. */
#undef __noinline
#define __noinline __attribute__((noinline, unused))

/* A global function: the verifier checks it once, by itself and for all arguments, instead of on each path to each of
 * its calls. What it takes to load a program is then the sum of its functions, not their product. Its pointers into
 * the arena are marked `__arg_arena`, and used; its other parameters are numbers. It always returns something: DONE if
 * it has nothing to say. It may not be called while a lock of the kernel's is held, and before Linux 6.15 not with
 * interrupts off. */
#ifdef __bpf__
#define global_subprog __noinline
#ifndef __arg_arena
#define __arg_arena __attribute__((btf_decl_tag("arg:arena")))
#endif
#else
#define global_subprog static __noinline
#define __arg_arena
#endif

typedef enum done { DONE } done_t;

/* 0, out of the compiler's sight: of two zeroes it would make one memset, and clang 19 writes that to an address that
 * it has not cast from the arena's, which the verifier refuses. */
static __always_inline u64 opaque_zero(void)
{
    u64 nothing = 0;
    asm("" : "+r"(nothing));
    return nothing;
}

static __always_inline u64 min(u64 a, u64 b)
{
    return a < b ? a : b;
}

static __always_inline u64 max(u64 a, u64 b)
{
    return a > b ? a : b;
}

/* a - b, or 0. */
static __always_inline u64 sat_sub(u64 a, u64 b)
{
    return a > b ? a - b : 0;
}

/* a + b, or the greatest number. */
static __always_inline u64 sat_add(u64 a, u64 b)
{
    return a + b < a ? ~0ull : a + b;
}

static __always_inline u64 div_round_up(u64 a, u64 b)
{
    return a / b + (a % b != 0);
}

/* Quotient of a signed and an unsigned number, rounded towards 0. (BPF before version 4 divides unsigned numbers
 * only.) */
static __always_inline s64 div_to_zero(s64 a, u64 b)
{
    return a < 0 ? -(s64)((u64)-a / b) : (s64)((u64)a / b);
}

/* The same, rounded down. */
static __always_inline s64 div_floor(s64 a, u64 b)
{
    return a < 0 ? -(s64)div_round_up((u64)-a, b) : (s64)((u64)a / b);
}

#endif
