#!/usr/bin/env python3
"""Writes the programs and mixes of Prop-SP's Table 3 (subjects.py) and their table in the documentation.

    python lab/calibration/prop_sp/make_programs.py            writes the files
    python lab/calibration/prop_sp/make_programs.py --check    compares with the files; exit code 1 if they differ

Rule for speed-ups: a program runs at the speed-up that the core model gives its measured profile on the Opteron, if
that is in the published class, else at the middle of the class. What it takes to get there is said in misses of the L1
data cache and the L2, up to twice the profile's; more would be other code, so what is missing then is stated as a
ratio. A program with several inputs has two phases for each, of equal time on a fast core: with speed-ups above and
below that by half the width of a class, or as much as the clocks allow above it. Deterministic: the same profiles and
core model give the same bytes.
"""

import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from subjects import (
    MULTITHREADED,
    PARALLEL,
    RATIO_MAX,
    SINGLE,
    SINGLE_THREADED,
    THIRD,
    Mix,
    Parallel,
    Single,
    class_of,
    middle,
)

import ampsched

sys.path.append(str(Path(__file__).resolve().parents[1]))
from generated import command, replaced
from probe import probe_ns

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "python" / "ampsched" / "data"
DOCUMENT = ROOT / "docs" / "explanation" / "prop-sp-mixes.md"
GENERATED = (
    "# Written by lab/calibration/prop_sp/make_programs.py; run it again instead of editing this file."
)
MACHINE = "opteron-2FC-2SC-ideal"
TOLERANCE = 5e-4
MISSES_MAX = 2.0
SPREAD = 0.02
"""Of parallel parts between threads: that of swaptions' and fft's threads in the recordings."""
PIECES = 8
"""Per thread, of a loop that is divided dynamically (ours): what one core more would take is an eighth of a share."""
WORDS = {"H": "high", "M": "medium", "L": "low"}
KINDS = {"HP": "highly parallel", "PS": "partially sequential"}


@cache
def ratio(profile: str, misses: float = 1.0) -> float:
    """Speed-up of a profile with so many times its misses on the Opteron, by the core model."""
    machine = ampsched.Catalog.shipped().machine(MACHINE)
    slow, fast = (
        probe_ns(on, profile, f"misses = {misses!r}") for on in (machine.only_little(), machine.only_big())
    )
    return slow / fast


def misses_for(profile: str, wanted: float) -> float:
    """How many times the profile's misses give that speed-up, at most `MISSES_MAX`: more misses, less speed-up."""
    low, high = 0.0, MISSES_MAX
    if wanted >= RATIO_MAX:
        return low
    if ratio(profile, high) > wanted:
        return high
    while high - low > TOLERANCE:
        half = (low + high) / 2
        low, high = (half, high) if ratio(profile, half) > wanted else (low, half)
    return round(high, 3)


@dataclass(frozen=True)
class Phase:
    """A behaviour of a program."""

    name: str
    misses: float
    ratio: float
    stated: bool = False
    """Whether the ratio is stated because the misses alone do not give it."""


@dataclass(frozen=True)
class Behaviour:
    """The phases of a program, and where its mean speed-up comes from."""

    profile: str
    profile_ratio: float
    measured: bool
    speedup_class: str
    phases: tuple[Phase, ...]

    @property
    def agrees(self) -> bool:
        """Whether the profile is the program's and has the published class by itself."""
        return self.measured and class_of(self.profile_ratio) == self.speedup_class

    @property
    def mean(self) -> float:
        """Mean speed-up: the phases take equal times on a fast core."""
        return sum(phase.ratio for phase in self.phases) / len(self.phases)

    def text(self) -> list[str]:
        """Comment on it."""
        own = f"speed-up {self.profile_ratio:.2f}, class {class_of(self.profile_ratio)}"
        if self.agrees:
            return [f'# Behaviour: the measured profile "{self.profile}" ({own}, as published).']
        why = (
            f"which is not the published class {self.speedup_class}"
            if self.measured
            else "of similar code (assumption: this program was not measured)"
        )
        stated = any(phase.stated for phase in self.phases)
        return [
            f'# Behaviour: the profile "{self.profile}" ({own}), {why}.',
            f"# Misses are such that the mean speed-up is {self.mean:.2f}, the middle of class {self.speedup_class}.",
            *(["# Twice the misses are not enough for that; the ratio is stated."] if stated else []),
        ]

    def tables(self) -> list[str]:
        """Own profiles in the program file."""
        lines = []
        for phase in self.phases:
            if phase.name != self.profile:
                lines += [
                    "",
                    f"[profiles.{phase.name}]",
                    f'like = "{self.profile}"',
                    f"misses = {phase.misses:g}"
                    + ("" if phase.stated else f"  # speed-up {phase.ratio:.2f} on the Opteron"),
                    *([f"ratio = {phase.ratio:.2f}"] if phase.stated else []),
                ]
        return lines


def behaviour(subject: Single | Parallel) -> Behaviour:
    """The behaviour of a program by the rule at the head of this file."""
    profile, own = subject.profile, ratio(subject.profile)
    agrees = subject.measured and class_of(own) == subject.speedup_class
    mean = own if agrees else middle(subject.speedup_class)
    swing = min(THIRD / 2, RATIO_MAX - mean) if isinstance(subject, Single) and subject.inputs > 1 else 0.0
    if swing:
        phases = (_phase("dense", profile, mean + swing), _phase("sparse", profile, mean - swing))
    elif agrees:
        phases = (Phase(profile, 1.0, own),)
    else:
        phases = (_phase("mean", profile, mean),)
    return Behaviour(profile, own, subject.measured, subject.speedup_class, phases)


def _phase(name: str, profile: str, wanted: float) -> Phase:
    misses = misses_for(profile, wanted)
    stated = misses == MISSES_MAX
    return Phase(name, misses, wanted if stated else ratio(profile, misses), stated)


def single(subject: Single) -> str:
    """The program file of a single-threaded program."""
    found = behaviour(subject)
    rounds = subject.inputs
    lines = [
        GENERATED,
        "",
        f"# SPEC CPU2006 {subject.number}.{subject.name}. Published: single-threaded, {WORDS[subject.speedup_class]} speed-up.",
        f"# Length: SPEC's reference time of {subject.reference_s} s / 1000, on a fast core.",
    ]
    if rounds > 1:
        lines += [
            f"# Phases: SPEC runs it with {rounds} inputs; that each has two phases of equal length, and how much they differ, is",
            "# assumed.",
        ]
        steps = [
            f"  {{ loop = {rounds}, body = [",
            *(
                f'    {{ run_us = "500 * length_ms / {rounds}", profile = "{phase.name}" }},'
                for phase in found.phases
            ),
            "  ] },",
        ]
    else:
        lines.append("# Phases: none; SPEC runs it with one input (assumption: it behaves alike throughout).")
        steps = [f'  {{ run_us = "1000 * length_ms", profile = "{found.phases[0].name}" }},']
    lines += [
        *found.text(),
        f'name = "prop-sp-{subject.name}"',
        f'description = "Prop-SP (2014): SPEC {subject.number}.{subject.name}, {WORDS[subject.speedup_class]} speed-up."',
        'source = "published class and SPEC\'s reference time, see the comment"',
        "",
        "[params]",
        f"length_ms = {subject.reference_s}  # on a fast core",
        *found.tables(),
        "",
        "[[threads]]",
        'name = "main"',
        "body = [",
        *steps,
        "]",
    ]
    return "\n".join(lines) + "\n"


def parallel(subject: Parallel) -> str:
    """The program file of a program with several threads."""
    found = behaviour(subject)
    profile = found.phases[0].name
    mean = "1000 * work_ms * (1 - sequential) / rounds / n"
    static = f'{{ run_us = {{ mean = "{mean} * (1 - dynamic)", cv = {SPREAD} }}, profile = "{profile}" }}'
    piece = f'{{ run_us = "{mean} / {PIECES}", profile = "{profile}" }}'
    part = f'{static}, {{ dynamic = "loop", body = [{piece}] }}'
    lines = [
        GENERATED,
        "",
        f"# {subject.what}. Published: {KINDS[subject.kind]}, {WORDS[subject.speedup_class]} speed-up.",
        f"# Work: {subject.work_source}.",
        f"# Sequential: {subject.sequential_source}.",
        "# In every round the main thread works alone, then all threads share the rest evenly (a parallel loop with a static",
        f"# schedule) and meet at a barrier. {subject.rounds} rounds: assumption. Threads that wait are blocked.",
        f"# With dynamic = 1 a loop is cut into {PIECES} pieces per thread instead, which threads take one by one.",
        *found.text(),
        f'name = "prop-sp-{subject.name}"',
        f'description = "Prop-SP (2014): {subject.what}, {KINDS[subject.kind]}, {WORDS[subject.speedup_class]} speed-up."',
        'source = "published class and kind, the rest see the comment"',
        "",
        "[params]",
        "n = 4  # threads, the main thread included; at least 2",
        f"work_ms = {subject.work_s * 1000:.0f}  # of all threads, on a fast core",
        f"sequential = {subject.sequential}  # share of the work",
        f"rounds = {subject.rounds}",
        "dynamic = 0  # or 1",
        *found.tables(),
        "",
        f'[pools.loop]\ntotal = "{PIECES} * n * dynamic"\nparticipants = "n"\n',
        "[barriers.begin]",
        "[barriers.end]",
        "",
        "[[threads]]",
        'name = "main"',
        "body = [",
        '  { loop = "rounds", body = [',
        f'    {{ run_us = "1000 * work_ms * sequential / rounds", profile = "{profile}" }}, {{ barrier = "begin" }},',
        f'    {part}, {{ barrier = "end" }},',
        "  ] },",
        "]",
        "",
        "[[threads]]",
        'name = "worker"',
        'count = "n - 1"',
        "body = [",
        '  { loop = "rounds", body = [',
        f'    {{ barrier = "begin" }}, {part}, {{ barrier = "end" }},',
        "  ] },",
        "]",
    ]
    return "\n".join(lines) + "\n"


def workloads() -> str:
    """The workload file of all mixes."""
    lines = [
        GENERATED,
        "# Prop-SP (Saez et al., Euro-Par 2014 workshops), Table 3. Threads are the published ones: as many as cores, 4 on",
        "# 2FC-2SC and 12 on 2FC-10SC. A ninth mix with multithreaded programs is not known; two labels are reconstructed.",
    ]
    for mixes, machine in ((SINGLE_THREADED, "2FC-2SC"), (MULTITHREADED, "2FC-10SC")):
        for mix in mixes:
            lines += [
                "",
                f"[workloads.{mix.name}]",
                f'description = "{_description(mix, machine)}"',
                "apps = [",
            ]
            for program, threads in mix.programs:
                params = f", params = {{ n = {threads} }}" if threads > 1 else ""
                lines.append(f'  {{ program = "prop-sp-{program}", name = "{program}"{params} }},')
            lines.append("]")
    return "\n".join(lines) + "\n"


def _description(mix: Mix, machine: str) -> str:
    note = f"; {mix.note}" if mix.note else ""
    return f"Prop-SP (2014), Table 3: {mix.label} on {machine}{note}."


def table() -> str:
    """The programs as a table of the documentation."""
    rows = [
        "| program | published | length or work, s | rounds | profile | its speed-up | modelled speed-up |",
        "|---|---|---:|---:|---|---|---|",
    ]
    for subject in (*SINGLE, *PARALLEL):
        found = behaviour(subject)
        serial = isinstance(subject, Single)
        rounds = subject.inputs if serial else subject.rounds
        length_s = subject.reference_s / 1000 if serial else subject.work_s
        kind = "ST" if serial else subject.kind
        mark = "≠ " if found.measured and not found.agrees else ""
        own = f"{found.profile_ratio:.2f} ({mark}{class_of(found.profile_ratio)})"
        ratios = " / ".join(f"{phase.ratio:.2f}" for phase in found.phases)
        profile = found.profile if found.measured else f"({found.profile})"
        rows.append(
            f"| {subject.name} | {kind}{subject.speedup_class} | {length_s:.2f} | {rounds} | {profile} | {own} | {ratios} |"
        )
    return "\n".join(rows)


def outputs() -> dict[Path, str]:
    """All files by path."""
    files = {DATA / "programs" / f"prop-sp-{each.name}.toml": single(each) for each in SINGLE}
    files |= {DATA / "programs" / f"prop-sp-{each.name}.toml": parallel(each) for each in PARALLEL}
    files[DATA / "workloads" / "prop-sp-table3.toml"] = workloads()
    files[DOCUMENT] = replaced(DOCUMENT, "programs", table())
    return files


if __name__ == "__main__":
    sys.exit(command("Write the programs and mixes of Prop-SP's Table 3.", outputs))
