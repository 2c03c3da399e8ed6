"""Threads that do a language's own work beside the program's, told by the names that runtimes give them."""

from __future__ import annotations

from ampsched._core import Recording, work_ns
from ampsched.naming import in_number

JIT, GC, BOTH = "compiling", "collecting garbage", "compiling and collecting garbage"
BEGINNINGS = {
    # HotSpot: src/hotspot/share/{compiler,gc} name threads so; the kernel keeps 15 bytes.
    "C1 CompilerThre": JIT,
    "C2 CompilerThre": JIT,
    "JVMCI CompilerT": JIT,
    "GC Thread#": GC,
    "G1 Main Marker": GC,
    "G1 Conc#": GC,
    "G1 Refine#": GC,
    "G1 Service": GC,
    "ZWorker": GC,
    "ZDriver": GC,
    "Shenandoah": GC,
    # Node.js: its platform's workers do both for V8.
    "V8 Worker": BOTH,
    "V8Worker": BOTH,
    # CoreCLR.
    ".NET Tiered Com": JIT,
    ".NET Server GC": GC,
    ".NET BGC": GC,
}
"""Beginnings of names. Go's and Python's threads have their program's name, so theirs cannot be told."""


def role_of(name: str) -> str | None:
    """What a thread of that name does for its language; None if it is not known to do that."""
    return next((role for beginning, role in BEGINNINGS.items() if name.startswith(beginning)), None)


def roles_text(recording: Recording) -> str | None:
    """Which share of a recording's work threads do for their language, in words; None if none do."""
    sums: dict[str, list[int]] = {}
    each_ns = work_ns(recording)
    for (name, *_), ns in zip(recording.threads, each_ns, strict=True):
        if role := role_of(name):
            row = sums.setdefault(role, [0, 0])
            row[0] += 1
            row[1] += ns
    if not sums:
        return None
    whole = max(sum(each_ns), 1)
    parts = [
        f"{count} {in_number(count, 'thread')} {role} ({ns / whole:.0%} of the work)"
        for role, (count, ns) in sums.items()
    ]
    return "its language's own: " + ", ".join(parts)
