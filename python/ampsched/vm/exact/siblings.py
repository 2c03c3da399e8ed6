"""Cores with two threads (SMT): CPUs of a guest that share a core, and how QEMU and the clock number them.

On x86-64 a kernel tells siblings by their APIC numbers, and QEMU gives every core as many threads. So each core gets
room for two, and a core with one thread leaves its second number out, as real ones do: CPUs of the guest have the
numbers of the machine's cores, QEMU's own numbers have gaps. On arm64 the device tree says who shares a core.
"""

from collections.abc import Sequence

Pairs = Sequence[tuple[int, int, float]]
"""Two CPUs of a core each, and the speed of each while both are busy, 1 for alone."""
PPM = 1_000_000


def places(cores: int, pairs: Pairs) -> list[tuple[int, int]]:
    """Core and thread of each CPU, by the CPUs' numbers.

    Args:
        cores: Number of CPUs.
        pairs: Those that share a core.
    """
    second = {other for _, other, _ in pairs}
    found: list[tuple[int, int]] = []
    for cpu in range(cores):
        core = found[-1][0] if found else -1
        found.append((core, 1) if cpu in second else (core + 1, 0))
    return found


def indexes(cores: int, pairs: Pairs) -> list[int]:
    """QEMU's number of each CPU on x86-64; it has gaps where cores have one thread, if others have two.

    Args:
        cores: Number of CPUs.
        pairs: Those that share a core.
    """
    return [2 * core + thread if pairs else core for core, thread in places(cores, pairs)]


def topology(cores: int, pairs: Pairs, model: str) -> tuple[str, list[str]]:
    """What QEMU's option ``-smp`` says of a computer with these siblings, and further words that add its CPUs.

    Args:
        cores: Number of CPUs.
        pairs: Those that share a core.
        model: QEMU's model of its cores, without options.
    """
    if not pairs:
        return str(cores), []
    _, *others = each = places(cores, pairs)
    last = each[-1][0] + 1
    words = [
        word
        for core, thread in others
        for word in ("-device", f"{model}-x86_64-cpu,socket-id=0,core-id={core},thread-id={thread}")
    ]
    return f"1,sockets=1,cores={last},threads=2,maxcpus={2 * last}", words


def clock_lines(classes: Sequence[int], pairs: Pairs, *, has_gaps: bool) -> list[str]:
    """What the clock is told of each CPU.

    Args:
        classes: The class of each.
        pairs: Those that share a core.
        has_gaps: QEMU leaves out numbers for cores with one thread.
    """
    lines = [f"cpu {each}" for each in classes]
    if pairs and has_gaps:
        numbers = indexes(len(classes), pairs)
        lines = [f"{line} {number}" for line, number in zip(lines, numbers, strict=True)]
    return [*lines, *(f"siblings {one} {other} {round(PPM * speed)}" for one, other, speed in pairs)]
