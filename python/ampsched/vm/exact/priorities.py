"""A table of ACPI by which a guest's kernel knows which cores to use first (ITMT), as Linux does on hybrids of Intel's.

QEMU's processors say nothing of their performance. The table adds `_CPC` (ACPI 6.5, 8.4.6.1) to each: the highest
performance that a core can have, on a scale of its own. Linux's driver `amd-pstate`, which knows shared memory, tells
the scheduler of it if it differs (`sched_set_itmt_core_prio`), as `intel_pstate` does. The registers in which it would
ask for less performance lie where QEMU has nothing: what is written there has no effect.
"""

import struct
from collections.abc import Iterable, Sequence

from ampsched.vm.exact.devicetree import Cluster
from ampsched.vm.exact.siblings import indexes

OPTION = " amd_pstate=active"
"""What the kernel has to be told: this mode changes no frequency, so the time stamp counter stays its clock."""
KERNELS = ("6.16", "6.18", "7.0")
"""Whose driver takes the table; that of 7.3 does not load, so its kernel knows no priorities."""
HIGHEST = 255
"""Linux keeps performance in a byte."""
MHZ, LEVELS = 1000, 166
"""What all cores say of their frequency: so much at that level, to which Linux scales where cores are preferred."""
REGISTERS = 0xFEFF_0000
"""Between the local APIC and the firmware."""
SYSTEM_MEMORY, DWORD_BITS, DWORD = 0, 32, 3
HEADER_BYTES, CHECKSUM = 36, 9
SCOPE, METHOD, NAME, PACKAGE, BUFFER = b"\x10", b"\x14", b"\x08", b"\x12", b"\x11"
"""Operations of ACPI's machine language (ACPI 6.5, 20.2)."""
GRANTS = 0x4060
"""What `_OSC` leaves of the kernel's wishes: CPPC, its version 2, and registers in memory."""


def table(clusters: Sequence[Cluster]) -> bytes:
    """The table, for QEMU's option ``-acpitable file=``.

    Args:
        clusters: Cores with their speeds; those that share a core have the same.
    """
    fastest = max(cluster.speed for cluster in clusters)
    level_of = {
        core: max(1, round(HIGHEST * cluster.speed / fastest))
        for cluster in clusters
        for core in cluster.cores
    }
    pairs = [pair for cluster in clusters for pair in cluster.siblings]
    scopes = [_scope("\\_SB_", _capabilities())]
    scopes += [
        _scope(f"\\_SB_.CPUS.C{index:03X}", NAME + b"_CPC" + _performance(level_of[cpu]))
        for cpu, index in enumerate(indexes(len(level_of), pairs))
    ]
    return _with_header(b"".join(scopes))


def _performance(highest: int) -> bytes:
    none = _register(0, 0)
    desired, least, most, enable, autonomous, preference = (
        _register(DWORD_BITS, REGISTERS + 4 * number) for number in range(6)
    )
    levels = [_integer(number) for number in (23, 3, highest, LEVELS, 2, 1)]
    control = [none, desired, least, most, *[none] * 6, enable, autonomous, none, preference, none]
    rates = [_integer(MHZ // LEVELS), _integer(MHZ)]
    return _package([*levels, *control, *rates])


def _capabilities() -> bytes:
    """The method `_OSC`, which grants what CPPC needs: CreateDWordField (Arg3, 4, CAPS), And, Return (Arg3)."""
    field = b"\x8a\x6b" + _integer(4) + b"CAPS"
    masked = b"\x7bCAPS" + _integer(GRANTS) + b"CAPS"
    return _block(METHOD, b"_OSC" + bytes([4]) + field + masked + b"\xa4\x6b")


def _with_header(content: bytes) -> bytes:
    length = HEADER_BYTES + len(content)
    whole = bytearray(
        struct.pack("<4sIBB6s8sI4sI", b"SSDT", length, 2, 0, b"AMPSCH", b"PRIORITY", 1, b"AMPS", 1) + content
    )
    whole[CHECKSUM] = -sum(whole) & 0xFF
    return bytes(whole)


def _scope(path: str, content: bytes) -> bytes:
    *parents, last = path.removeprefix("\\").encode().split(b".")
    names = b"".join([*parents, last])
    count = len(parents) + 1
    prefix = b"" if count == 1 else b"\x2f" + bytes([count])
    return _block(SCOPE, b"\\" + prefix + names + content)


def _block(operation: bytes, content: bytes) -> bytes:
    """An operation with its length, which counts its own bytes: two, which do for 4 KiB."""
    length = len(content) + 2
    return operation + bytes([0x40 | length & 0xF, length >> 4]) + content


def _package(elements: Iterable[bytes]) -> bytes:
    listed = list(elements)
    return _block(PACKAGE, bytes([len(listed)]) + b"".join(listed))


def _register(bits: int, address: int) -> bytes:
    """A generic register descriptor and the end of its buffer (ACPI 6.5, 6.4.3.7); without bits, of no register."""
    size = DWORD if bits else 0
    descriptor = struct.pack("<BHBBBBQ", 0x82, 12, SYSTEM_MEMORY, bits, 0, size, address if bits else 0)
    content = descriptor + b"\x79\x00"
    return _block(BUFFER, _integer(len(content)) + content)


def _integer(number: int) -> bytes:
    for prefix, form in ((b"\x0a", "<B"), (b"\x0b", "<H"), (b"\x0c", "<I")):
        if number < 1 << 8 * struct.calcsize(form):
            return prefix + struct.pack(form, number)
    raise ValueError(number)
