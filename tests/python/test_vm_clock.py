"""The clock of the exact virtual machine, as far as it can be tested without QEMU: kinds of instructions, settings."""

import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "crates/live/exact"
pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="SKIPPED: there is no C compiler")

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "machine.h"

static const char *const NAMES[] = {"integer", "memory", "branch", "float", "simd", "wait"};

void give_up(const char *format, ...) { (void)format; exit(3); }

/* The guest's memory, of which one word is asked for. */
static uint32_t word;
void *cpu_physical_memory_map(uint64_t address, uint64_t *length, bool is_write)
{
    return address == 0x9ff00088 && *length == 4 && !is_write ? &word : NULL;
}

/* Rate and costs of misses of a class of the settings, one line for each number that the guest writes. */
static void choose_all(const struct class *class)
{
    struct speed speed = {0};
    set_speed(class, &speed);
    while (scanf(" %u", &word) == 1) {
        follow_choice(class, &speed);
        printf("%d: %d %d %d %d %d\n", (int)speed.rate_kips, speed.miss.l2, speed.miss.memory, speed.miss.l2_stream,
               speed.miss.memory_stream, speed.miss.store);
    }
}

/* Costs of accesses, one line each: "r" or "w", line of 64 bytes, physical line. L1 of 1 KiB, L2 of 16. */
static void access_all(void)
{
    struct cache l1, l2;
    struct miss_shares shares = {.l2 = 1, .memory = 2, .l2_stream = 3, .memory_stream = 4, .store = 5};
    make_l1(&l1, 1);
    make_l2(&l2, 16);
    printf("%d x %d, %d x %d\n", (int)l1.sets, l1.ways, (int)l2.sets, l2.ways);
    char kind;
    unsigned long line, physical;
    while (scanf(" %c %lu %lu", &kind, &line, &physical) == 3) {
        struct access access = {line, physical, kind == 'w'};
        printf("%d\n", hits(&l1, line) ? 0 : (int)cost_of_miss(&shares, &l1, &l2, access));
    }
}

/* program x86 HEX... | a64 HEX... | settings FILE | choose FILE CLASS <NUMBERS | caches <ACCESSES */
int main(int count, char **words)
{
    if (!strcmp(words[1], "caches")) {
        access_all();
        return 0;
    }
    if (!strcmp(words[1], "choose")) {
        static struct machine machine;
        if (!read_machine(words[2], &machine))
            return 2;
        choose_all(&machine.class[atoi(words[3])]);
        return 0;
    }
    if (!strcmp(words[1], "settings")) {
        static struct machine machine;
        bool is_right = read_machine(words[2], &machine);
        for (int cpu = 0; is_right && cpu < machine.cpus; cpu++)
            printf("%d %d\n", cpu, (int)machine.class[machine.class_of[cpu]].rate_kips);
        for (int cpu = 0; is_right && machine.has_siblings && cpu < machine.cpus; cpu++)
            printf("at %d with %d %d\n", machine.index_of[cpu], machine.sibling_of[cpu], (int)machine.shared_ppm[cpu]);
        for (int class = 0; is_right && has_caches(&machine) && class < machine.classes; class++)
            printf("caches %d %d\n", (int)machine.class[class].l1_kib, (int)machine.class[class].miss.store);
        return is_right ? 0 : 2;
    }
    for (int word = 2; word < count; word++) {
        uint8_t bytes[15];
        size_t length = strlen(words[word]) / 2;
        for (size_t i = 0; i < length; i++) {
            char digits[3] = {words[word][2 * i], words[word][2 * i + 1], 0};
            bytes[i] = (uint8_t)strtol(digits, NULL, 16);
        }
        bool is_a64 = !strcmp(words[1], "a64");
        puts(NAMES[is_a64 ? kind_of_a64((uint32_t)strtoul(words[word], NULL, 16)) : kind_of_x86(bytes, length)]);
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clock")
    (folder / "test.c").write_text(PROGRAM)
    sources = [
        folder / "test.c",
        *(FOLDER / name for name in ("caches.c", "kinds.c", "rates.c", "settings.c")),
    ]
    flags = ["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror"]
    command = ["cc", *flags, f"-I{FOLDER}", "-o", str(folder / "test"), *map(str, sources)]
    subprocess.run(command, check=True)
    return folder / "test"


def run(program: Path, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *words], input=given, capture_output=True, text=True, check=False)


X86 = {
    "4801d8": "integer",  # add %rbx,%rax
    "488d0408": "integer",  # lea (%rax,%rcx),%rax
    "0f1f440000": "integer",  # nopl 0(%rax,%rax)
    "0fafc3": "integer",  # imul %ebx,%eax
    "f3480fb8c1": "integer",  # popcnt %rcx,%rax
    "c4e2f0f2c3": "integer",  # andn %rbx,%rcx,%rax (BMI)
    "0fa2": "integer",  # cpuid
    "90": "integer",  # nop
    "f390": "wait",  # pause
    "488b03": "memory",  # mov (%rbx),%rax
    "48890424": "memory",  # mov %rax,(%rsp)
    "4157": "memory",  # push %r15
    "f348ab": "memory",  # rep stos
    "f0480fb10b": "memory",  # lock cmpxchg %rcx,(%rbx)
    "0fb603": "memory",  # movzbl (%rbx),%eax
    "f20f1003": "memory",  # movsd (%rbx),%xmm0
    "c5fa6f03": "memory",  # vmovdqu (%rbx),%xmm0
    "eb05": "branch",  # jmp
    "0f8500000000": "branch",  # jne
    "c3": "branch",  # ret
    "ffd0": "branch",  # call *%rax
    "ff03": "memory",  # incl (%rbx)
    "f20f58c1": "float",  # addsd %xmm1,%xmm0
    "f20f5903": "float",  # mulsd (%rbx),%xmm0
    "660f2ec1": "float",  # ucomisd %xmm1,%xmm0
    "d9c0": "float",  # fld %st(0)
    "c5f358c2": "float",  # vaddsd %xmm2,%xmm1,%xmm0
    "c4e2f1b8c2": "float",  # vfmadd231pd %xmm2,%xmm1,%xmm0
    "62f1f54858c2": "float",  # vaddpd %zmm2,%zmm1,%zmm0
    "660ffec1": "simd",  # paddd %xmm1,%xmm0
    "660fefc0": "simd",  # pxor %xmm0,%xmm0
    "f20f10c1": "simd",  # movsd %xmm1,%xmm0
    "660f3800c1": "simd",  # pshufb %xmm1,%xmm0
    "c5f5fec2": "simd",  # vpaddd %ymm2,%ymm1,%ymm0
}

A64 = {
    "8b010000": "integer",  # add x0, x0, x1
    "9b017c00": "integer",  # mul x0, x0, x1
    "d503201f": "integer",  # nop
    "d503203f": "wait",  # yield
    "d503205f": "wait",  # wfe
    "f9400020": "memory",  # ldr x0, [x1]
    "a9bf7bfd": "memory",  # stp x29, x30, [sp, #-16]!
    "3dc00020": "memory",  # ldr q0, [x1]
    "14000001": "branch",  # b
    "54000040": "branch",  # b.eq
    "b4000040": "branch",  # cbz x0
    "d65f03c0": "branch",  # ret
    "1e612800": "float",  # fadd d0, d0, d1
    "1f420c20": "float",  # fmadd d0, d1, d2, d3
    "4ea18400": "simd",  # add v0.4s, v0.4s, v1.4s
    "4e211c00": "simd",  # and v0.16b, v0.16b, v1.16b
}


@pytest.mark.parametrize(("architecture", "kinds"), [("x86", X86), ("a64", A64)])
def test_kinds_of_instructions(program: Path, architecture: str, kinds: dict[str, str]) -> None:
    found = run(program, architecture, *kinds).stdout.split()
    assert dict(zip(kinds, found, strict=True)) == kinds


SETTINGS = """quantum_ns 50000
class 1000000 64 64 64 64 64
class 400000 64 128 64 192 64
cpu 0
cpu 1
"""


def test_settings_are_read(program: Path, tmp_path: Path) -> None:
    (tmp_path / "set").write_text(SETTINGS)
    assert run(program, "settings", str(tmp_path / "set")).stdout == "0 1000000\n1 400000\n"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("quantum_ns 50000", "quantum_ns 10", 1),
        ("class 1000000", "class 0", 2),
        ("class 400000 64 128", "class 400000 64 0", 3),
        ("cpu 1", "cpu 2", 5),
        ("cpu 0", "core 0", 4),
    ],
)
def test_wrong_settings_are_refused_by_line(
    program: Path, tmp_path: Path, old: str, new: str, line: int
) -> None:
    file = tmp_path / "set"
    file.write_text(SETTINGS.replace(old, new))
    ended = run(program, "settings", str(file))
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"exact clock: {file}:{line}: wrong or out of range: {new}")


def test_settings_need_a_cpu(program: Path, tmp_path: Path) -> None:
    (tmp_path / "set").write_text("quantum_ns 50000\n")
    assert "needs quantum_ns and cpu" in run(program, "settings", str(tmp_path / "set")).stderr


SIBLINGS = SETTINGS.replace("cpu 0\n", "cpu 0\ncpu 0 1\n").replace(
    "cpu 1\n", "cpu 1 4\nsiblings 0 1 620000\n"
)


def test_siblings_are_read(program: Path, tmp_path: Path) -> None:
    """Two threads of a core, and a core that leaves out the number of its second one and of another core."""
    (tmp_path / "set").write_text(SIBLINGS)
    said = run(program, "settings", str(tmp_path / "set")).stdout.splitlines()[3:]
    assert said == ["at 0 with 1 620000", "at 1 with 0 620000", "at 4 with -1 0"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("cpu 1 4", "cpu 1 1"),
        ("cpu 1 4", "cpu 1 1024"),
        ("siblings 0 1 620000", "siblings 0 0 620000"),
        ("siblings 0 1 620000", "siblings 0 3 620000"),
        ("siblings 0 1 620000", "siblings 0 1 1000001"),
        ("siblings 0 1 620000", "siblings 0 1 0"),
        ("siblings 0 1 620000", "siblings 0 1"),
        ("siblings 0 1 620000\n", "siblings 0 1 620000\nsiblings 1 2 620000\n"),
    ],
)
def test_wrong_siblings_are_refused(program: Path, tmp_path: Path, old: str, new: str) -> None:
    (tmp_path / "set").write_text(SIBLINGS.replace(old, new))
    ended = run(program, "settings", str(tmp_path / "set"))
    assert ended.returncode == 2
    assert f"wrong or out of range: {new.splitlines()[-1]}" in ended.stderr


CACHES = SETTINGS.replace("class 400000", "cache 32 2048 90 900 30 300 60\nclass 400000").replace(
    "cpu 0", "cache 16 512 40 400 20 200 50\ncpu 0"
)


def test_settings_of_caches_are_read(program: Path, tmp_path: Path) -> None:
    (tmp_path / "set").write_text(CACHES)
    said = run(program, "settings", str(tmp_path / "set")).stdout
    assert said == "0 1000000\n1 400000\ncaches 32 60\ncaches 16 50\n"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("cache 32 2048", "cache 0 2048", ":3: wrong or out of range"),
        ("cache 32 2048", "cache 32 8", ":3: wrong or out of range"),
        ("cache 32 2048 90", "cache 32 2048 -1", ":3: wrong or out of range"),
        ("300 60\n", "300\n", ":3: wrong or out of range"),
        ("class 1000000", "cache 1 16 1 1 1 1 1\nclass 1000000", ":2: wrong or out of range"),
        ("cache 16 512 40 400 20 200 50\n", "", ": some classes have a cache and others have none"),
    ],
)
def test_wrong_caches_are_refused(program: Path, tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in CACHES
    file = tmp_path / "set"
    file.write_text(CACHES.replace(old, new, 1))
    ended = run(program, "settings", str(file))
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"exact clock: {file}{said}")


RATES = CACHES.replace("class 400000", "rates 9ff00088 1000000 750000 500000\nclass 400000")


def test_the_guest_chooses_a_rate(program: Path, tmp_path: Path) -> None:
    """The L2 keeps its cost in instructions of that core, memory costs as many fewer as the core is slower."""
    (tmp_path / "set").write_text(RATES)
    assert run(program, "settings", str(tmp_path / "set")).stdout.startswith("0 1000000\n1 400000\n")
    said = run(program, "choose", str(tmp_path / "set"), "0", given="0 2 1 2 77 0").stdout.splitlines()
    full, three_quarters, half = (
        "1000000: 90 900 30 300 60",
        "750000: 90 697 30 232 45",
        "500000: 90 495 30 165 30",
    )
    assert said == [full, half, three_quarters, half, half, full]
    assert (
        run(program, "choose", str(tmp_path / "set"), "1", given="2").stdout == "400000: 40 400 20 200 50\n"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("9ff00088", "9ff00087"),
        ("9ff00088", "x"),
        ("1000000 750000", "1000001 750000"),
        ("750000 500000", "750000 0"),
        ("750000 500000", "750000 one"),
        (" 1000000 750000 500000\n", "\n"),
        ("500000\n", "500000" + " 1" * 30 + "\n"),
        ("500000\n", "500000\nrates 9ff00088 1\n"),
    ],
)
def test_wrong_rates_are_refused(program: Path, tmp_path: Path, old: str, new: str) -> None:
    file, whose = tmp_path / "set", RATES.index("rates")
    file.write_text(RATES[:whose] + RATES[whose:].replace(old, new, 1))
    ended = run(program, "settings", str(file))
    assert ended.returncode == 2
    assert "wrong or out of range: rates" in ended.stderr


def accessed(program: Path, *accesses: tuple[str, int, int]) -> list[int]:
    """Costs: 0 hits the L1, or is a store that hits the L2; 1 the L2, 2 memory, 3 and 4 in streams, 5 stores."""
    given = "".join(f"{kind} {line} {physical}\n" for kind, line, physical in accesses)
    geometry, *costs = run(program, "caches", given=given).stdout.splitlines()
    assert geometry == "4 x 4, 16 x 16"
    return [int(cost) for cost in costs]


def test_what_was_used_last_stays_in_the_l1(program: Path) -> None:
    ways = [("r", 100 + 4 * way, 1000 + way) for way in range(4)]
    fifth = ("r", 116, 1004)
    # The first is used again, so the fifth line of its set takes the place of the second.
    assert accessed(program, *ways, ways[0], fifth, ways[0], ways[1]) == [2, 2, 2, 2, 0, 2, 0, 1]


def test_the_l2_goes_by_physical_addresses(program: Path) -> None:
    assert accessed(program, ("r", 100, 7), ("r", 200, 7), ("r", 300, 8)) == [2, 1, 2]


def test_lines_behind_one_another_are_a_stream(program: Path) -> None:
    first = [("r", line, line) for line in range(100, 120)]
    assert accessed(program, *first) == [2] + [4] * 19
    # Back again: 100 and 101 have left the L1, and 99 was never there.
    again = accessed(program, *first, ("r", 100, 100), ("r", 101, 101))
    assert again[-2:] == [1, 3]


def test_stores_cost_only_what_memory_can_take(program: Path) -> None:
    assert accessed(program, ("w", 100, 100), ("r", 300, 300), ("w", 500, 300)) == [5, 2, 0]
