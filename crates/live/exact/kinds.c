/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Kinds of instructions by their bytes. Of an instruction of floating point or SIMD that computes and reads memory, the
 * computation is the kind; one that only moves to or from memory is memory's, and so is one of integers.
 * Sources: Intel's manual, volume 2, appendix A (opcode maps); Arm's manual for A-profile, C4.1 (A64 encoding).
 */
#include "machine.h"

static bool is_in(uint8_t byte, uint8_t first, uint8_t last)
{
    return byte >= first && byte <= last;
}

static bool is_prefix(uint8_t byte)
{
    switch (byte) {
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case 0x66:
    case 0x67:
    case 0xf0:
    case 0xf2:
    case 0xf3:
        return true;
    default:
        return false;
    }
}

/* Whether a ModRM byte names memory and not a register. */
static bool names_memory(uint8_t modrm)
{
    return modrm >> 6 != 3;
}

static bool one_byte_is_branch(uint8_t op, uint8_t modrm)
{
    uint8_t extension = modrm >> 3 & 7;
    return is_in(op, 0x70, 0x7f) || is_in(op, 0xe0, 0xe3) || op == 0xe8 || op == 0xe9 || op == 0xeb || op == 0xc2 ||
           op == 0xc3 || op == 0xca || op == 0xcb || op == 0xcf || (op == 0xff && is_in(extension, 2, 5));
}

static bool one_byte_has_modrm(uint8_t op)
{
    return (op < 0x40 && (op & 7) < 4) || op == 0x63 || op == 0x69 || op == 0x6b || is_in(op, 0x80, 0x8f) ||
           op == 0xc0 || op == 0xc1 || op == 0xc6 || op == 0xc7 || is_in(op, 0xd0, 0xd3) || op == 0xf6 || op == 0xf7 ||
           op == 0xfe || op == 0xff;
}

/* push, pop, moves to fixed addresses, strings, leave */
static bool one_byte_implies_memory(uint8_t op)
{
    return is_in(op, 0x50, 0x5f) || op == 0x68 || op == 0x6a || op == 0x9c || op == 0x9d || is_in(op, 0xa0, 0xa7) ||
           is_in(op, 0xaa, 0xaf) || op == 0xc8 || op == 0xc9;
}

static enum kind one_byte_kind(uint8_t op, uint8_t modrm)
{
    if (one_byte_is_branch(op, modrm))
        return BRANCH;
    if (is_in(op, 0xd8, 0xdf)) /* x87 */
        return FLOAT;
    if (one_byte_implies_memory(op))
        return MEMORY;
    bool is_lea = op == 0x8d;
    return one_byte_has_modrm(op) && names_memory(modrm) && !is_lea ? MEMORY : INTEGER;
}

static bool is_float_arithmetic(uint8_t op)
{
    return op == 0x2a || is_in(op, 0x2c, 0x2f) || is_in(op, 0x51, 0x53) || is_in(op, 0x58, 0x5f) || op == 0x7c ||
           op == 0x7d || op == 0xc2 || op == 0xd0 || op == 0xe6;
}

static bool is_vector_move(uint8_t op)
{
    return is_in(op, 0x10, 0x13) || op == 0x16 || op == 0x17 || op == 0x28 || op == 0x29 || op == 0x2b || op == 0x6e ||
           op == 0x6f || op == 0x7e || op == 0x7f || op == 0xd6 || op == 0xe7 || op == 0xf0;
}

static bool is_vector(uint8_t op)
{
    return is_in(op, 0x10, 0x17) || is_in(op, 0x28, 0x2f) || is_in(op, 0x50, 0x7f) || is_in(op, 0xc4, 0xc6) ||
           op >= 0xd0;
}

static bool two_byte_has_no_modrm(uint8_t op)
{
    return is_in(op, 0x05, 0x0b) || op == 0x0e || is_in(op, 0x30, 0x37) || op == 0x77 || is_in(op, 0xa0, 0xa2) ||
           is_in(op, 0xa8, 0xaa) || is_in(op, 0xc8, 0xcf);
}

/* Hints: prefetches and long nops name memory and do not touch it. */
static bool is_hint(uint8_t op)
{
    return op == 0x0d || is_in(op, 0x18, 0x1f);
}

/* The map behind 0f, and VEX's and EVEX's map 1 */
static enum kind two_byte_kind(uint8_t op, uint8_t modrm)
{
    if (is_in(op, 0x80, 0x8f))
        return BRANCH;
    if (two_byte_has_no_modrm(op) || is_hint(op))
        return INTEGER;
    if (is_vector_move(op) && names_memory(modrm))
        return MEMORY;
    if (is_float_arithmetic(op) || op == 0x5a || op == 0x5b)
        return FLOAT;
    if (is_vector(op))
        return SIMD;
    return names_memory(modrm) ? MEMORY : INTEGER;
}

/* The map behind 0f 38, and map 2: fused multiplications; movbe, crc32, adcx and bit manipulation from f0 on */
static enum kind map_2_kind(uint8_t op, uint8_t modrm)
{
    if (is_in(op, 0x96, 0x9f) || is_in(op, 0xa6, 0xaf) || is_in(op, 0xb6, 0xbf) || op == 0x13)
        return FLOAT;
    if (op < 0xf0)
        return SIMD;
    return names_memory(modrm) ? MEMORY : INTEGER;
}

/* The map behind 0f 3a, and map 3: rounding; rorx */
static enum kind map_3_kind(uint8_t op)
{
    if (is_in(op, 0x08, 0x0b))
        return FLOAT;
    return op == 0xf0 ? INTEGER : SIMD;
}

static enum kind kind_in_map(int map, uint8_t op, uint8_t modrm)
{
    switch (map) {
    case 1:
        return two_byte_kind(op, modrm);
    case 2:
        return map_2_kind(op, modrm);
    case 3:
        return map_3_kind(op);
    default:
        return SIMD;
    }
}

/* Reads on behind a first byte of 0f, VEX or EVEX. at(n) is the n-th byte from there on, 0 behind the end. */
static enum kind escaped_kind(const uint8_t *at)
{
    switch (at[0]) {
    case 0xc5:
        return kind_in_map(1, at[2], at[3]);
    case 0xc4:
        return kind_in_map(at[1] & 31, at[3], at[4]);
    case 0x62:
        return kind_in_map(at[1] & 7, at[4], at[5]);
    default:
        if (at[1] == 0x38)
            return kind_in_map(2, at[2], at[3]);
        if (at[1] == 0x3a)
            return kind_in_map(3, at[2], at[3]);
        return kind_in_map(1, at[1], at[2]);
    }
}

enum kind kind_of_x86(const uint8_t *bytes, size_t length)
{
    uint8_t rest[8] = {0}; /* no more are read; those behind the end are 0 */
    size_t begin = 0;
    while (begin < length && is_prefix(bytes[begin]))
        begin++;
    if (begin && begin < length && bytes[begin - 1] == 0xf3 && bytes[begin] == 0x90) /* pause */
        return WAIT;
    if (begin < length && is_in(bytes[begin], 0x40, 0x4f)) /* REX */
        begin++;
    for (size_t i = 0; i < sizeof rest && begin + i < length; i++)
        rest[i] = bytes[begin + i];
    bool is_escaped = rest[0] == 0x0f || rest[0] == 0xc4 || rest[0] == 0xc5 || rest[0] == 0x62;
    return is_escaped ? escaped_kind(rest) : one_byte_kind(rest[0], rest[1]);
}

static bool a64_is_branch(uint32_t word)
{
    return (word & 0x7c000000) == 0x14000000 || (word & 0xff000000) == 0x54000000 ||
           (word & 0x7c000000) == 0x34000000 || (word & 0xfe000000) == 0xd6000000;
}

enum kind kind_of_a64(uint32_t word)
{
    unsigned int group = word >> 25 & 15;
    if (word == 0xd503203f || word == 0xd503205f) /* yield, wfe */
        return WAIT;
    if ((group & 5) == 4)
        return MEMORY;
    if ((group & 7) == 7) {
        bool is_scalar_float = (word & 0x5e000000) == 0x1e000000;
        return is_scalar_float ? FLOAT : SIMD;
    }
    return a64_is_branch(word) ? BRANCH : INTEGER;
}
