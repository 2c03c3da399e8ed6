#!/usr/bin/env python3
"""Writes the programs and workloads of HFEE (subjects.py) and their table in the documentation.

    python lab/calibration/hfee/make_programs.py            writes the files
    python lab/calibration/hfee/make_programs.py --check    compares with the files; exit code 1 if they differ

Rule for behaviour: a program is its profile, but everything takes so many times the cycles that it runs at the
published instruction rate alone on a big core at 2 GHz. That keeps the profile's balance of core and memory, and so the
ratio of big and little. Deterministic: the same profiles and core model give the same bytes.
"""

import sys
from functools import cache
from pathlib import Path

from subjects import SUBJECTS, WORKLOADS, Subject

import ampsched

sys.path.append(str(Path(__file__).resolve().parents[1]))
from generated import command, replaced
from probe import INSTRUCTIONS, probe_ns

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "python" / "ampsched" / "data"
DOCUMENT = ROOT / "docs" / "explanation" / "hfee-programs.md"
GENERATED = "# Written by lab/calibration/hfee/make_programs.py; run it again instead of editing this file."
MACHINE = "exynos5422-2B2S"


@cache
def machines():
    """The big and the little cores, each alone."""
    machine = ampsched.Catalog.shipped().machine(MACHINE)
    return {"big": machine.only_big(), "little": machine.only_little()}


@cache
def ips_m(profile: str, kind: str, cycles: float = 1.0) -> float:
    """Million instructions per second of a profile at the highest frequency, by the core model."""
    return INSTRUCTIONS * 1e3 / probe_ns(machines()[kind], profile, f"cycles = {cycles!r}")


def cycles(subject: Subject) -> str:
    """How many times the cycles of its profile the program takes, with four digits."""
    return f"{ips_m(subject.profile, 'big') / subject.ips_m:.4g}"


def ratio(subject: Subject) -> float:
    """Speed on a big core / on a little one, both at their highest frequencies."""
    factor = float(cycles(subject))
    return ips_m(subject.profile, "big", factor) / ips_m(subject.profile, "little", factor)


def program(subject: Subject) -> str:
    """The program file."""
    which = "measured" if subject.measured else "of similar code (assumption: this program was not measured)"
    return (
        "\n".join(
            [
                GENERATED,
                "",
                f"# SPEC CPU2006 {subject.number}, class {subject.speed_class}. Published, alone on a big core at 2 GHz: "
                f"{subject.time_ms / 1000:.3f} s, {subject.ips_m:.1f} million",
                f"# instructions per s, EER {subject.eer:.2f}.",
                f'# Behaviour: the profile "{subject.profile}", {which},',
                f"# slowed to the published instruction rate; {ratio(subject):.2f} times as fast on a big core as on a little one.",
                f'name = "hfee-{subject.name}"',
                f'description = "HFEE (2020): SPEC CPU2006 {subject.number}.{subject.name}, class {subject.speed_class}."',
                'source = "the scripts published by the authors of HFEE, see the comment"',
                f"energy_ratio = {subject.eer:.2f}",
                "",
                "[params]",
                f"total = {subject.instructions}  # instructions",
                "",
                "[profiles.own]",
                f'like = "{subject.profile}"',
                f"cycles = {cycles(subject)}",
                "",
                "[[threads]]",
                'name = "main"',
                'body = [{ compute = "total", profile = "own" }]',
            ]
        )
        + "\n"
    )


def workloads() -> str:
    """The workload file."""
    lines = [
        GENERATED,
        "# HFEE (IEEE Transactions on Computers 2020), Table 3: six single-threaded programs each.",
    ]
    for name, (classes, programs) in WORKLOADS.items():
        lines += [
            "",
            f"[workloads.hfee-{name}]",
            f'description = "HFEE (2020), Table 3: {name.upper()}, {classes}."',
            "apps = [",
            *(f'  {{ program = "hfee-{each}", name = "{each}" }},' for each in programs.split()),
            "]",
        ]
    return "\n".join(lines) + "\n"


def table() -> str:
    """The programs as a table of the documentation."""
    rows = [
        "| program | class | s | M instructions/s | EER | profile | cycles | big / little |",
        "|---|---|---:|---:|---:|---|---:|---:|",
    ]
    for subject in SUBJECTS:
        profile = subject.profile if subject.measured else f"({subject.profile})"
        rows.append(
            f"| {subject.name} | {subject.speed_class} | {subject.time_ms / 1000:.1f} | {subject.ips_m:.1f} | {subject.eer:.2f} "
            f"| {profile} | {cycles(subject)} | {ratio(subject):.2f} |"
        )
    return "\n".join(rows)


def outputs() -> dict[Path, str]:
    """All files by path."""
    files = {DATA / "programs" / f"hfee-{each.name}.toml": program(each) for each in SUBJECTS}
    files[DATA / "workloads" / "hfee.toml"] = workloads()
    files[DOCUMENT] = replaced(DOCUMENT, "programs", table())
    return files


if __name__ == "__main__":
    sys.exit(command("Write the programs and workloads of HFEE.", outputs))
