"""Predicting other machines and schedulers: `make -C lab truth-predictions`.

Each program of the mixes of `gain` is recorded alone, on four fast cores of an exact virtual machine under Linux.
From these recordings the mixes are predicted on machines of other cores, under Linux and under our policies, and
compared with what `gain` has measured there. Nothing is tuned: speed-ups are measured by running a program on
slow cores only, costs of the machine are those of the truth check.
"""

import argparse
import json
import shutil
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean

import ampsched
from ampsched.recording import load, save
from ampsched.vm.exact import Exact, Work, fastest, record, record_calls, slowest, with_speedup
from ampsched_lab.campaign.boot import KERNEL
from ampsched_lab.campaign.store import Store
from ampsched_lab.gain import machines
from ampsched_lab.gain.campaign import alone_names
from ampsched_lab.gain.machines import LINUX, SYSTEMS, X86, Workshop
from ampsched_lab.gain.mixes import MIXES, ROOT, Chosen, Real, Synthetic
from ampsched_lab.shared.page import replace_region

FILE = "predicted.json"
BEGIN = "<!-- begin: predictions, written by make -C lab truth-predictions -->"
END = "<!-- end: predictions, written by make -C lab truth-predictions -->"
RECORDED_ON = "2B2S"
PREDICTED = ("1B3S", "2B2S", "4B4S")
"""Machines of the same two kinds of cores; recordings are made on neither."""
POLICIES = {KERNEL: f"linux:kernel={LINUX}", "acfs": "acfs", "colab": "colab", "equal-progress": "equal-progress",
            "max-fair": "max-fair"}  # fmt: skip
"""What `make -C lab gain` has measured everywhere, and what stands for it."""
OFFSETS = range(1, 6)
DIFFERS = 0.05
"""Policies whose measured turnarounds differ by less are not asked to be in the right order."""
COSTS = Path("lab/ampsched_lab/truth/machines/exact-2B2S-eevdf-x86_64-6.18.toml")
IN_WORK = ("wake_ns", "fork_ns")
"""What is CPU time of recorded threads, so it is in their work already."""


@dataclass(frozen=True)
class Row:
    """A program of a mix on a machine under a scheduler: means over the offsets, in ms."""

    machine: str
    mix: str
    program: str
    scheduler: str
    measured_ms: float
    predicted_ms: float

    @property
    def error(self) -> float:
        """0.05: predicted to take 5 % too long."""
        return self.predicted_ms / self.measured_ms - 1


def record_all(workshop: Workshop, binaries: Path, folder: Path) -> None:
    """Records each program that differs once, and its speed-up."""
    folder.mkdir(parents=True, exist_ok=True)
    names = alone_names()
    exact = machines.exact(RECORDED_ON, X86)
    for mix in MIXES:
        for name, each in mix.programs.items():
            out = folder / f"{names[mix.name, name]}.ampr"
            if out.exists():
                continue
            print(f"recording {out.stem} ...", flush=True)
            found = (
                _calls(exact, each, binaries) if isinstance(each, Synthetic) else _told(exact, workshop, each)
            )
            save(found, out)


def _calls(exact: Exact, each: Synthetic, binaries: Path) -> ampsched.recording.Recording:
    """A C program, by its calls."""
    words = list(each.run("program").words)
    with tempfile.TemporaryDirectory(prefix="ampsched-truth-") as name:
        folder = Path(name)
        program = shutil.copy(binaries / Path(words[0]).name, folder)
        done, found = record_calls(exact, Work([str(program), *words[1:]], cwd=folder), machine=RECORDED_ON)
    if found is None:
        raise SystemExit(f"{each.program}: did not end: {done.console[-300:]}")
    return found


def _told(exact: Exact, workshop: Workshop, each: Real) -> ampsched.recording.Recording:
    """A program of Debian's archive, as the kernel tells it: on fast cores, and on slow ones for its speed-up."""
    files = workshop.guest(RECORDED_ON, X86).files
    found = []
    with tempfile.TemporaryDirectory(prefix="ampsched-truth-") as name:
        for machine in (fastest(exact), slowest(exact)):
            assert machine is not None
            work = Work(["chroot", str(ROOT), *each.words], cwd=Path(name), placed=files)
            done, recording = record(machine, work, name=Path(each.words[0]).name, machine=RECORDED_ON)
            if recording is None:
                raise SystemExit(f"{each.words[0]}: did not end: {done.console[-300:]}")
            found.append(recording)
    return with_speedup(*found)


def predict(folder: Path, machine: str, mix: Chosen, policy: str) -> list[float]:
    """Mean turnaround of each program of a mix over the offsets, in ms."""
    names = alone_names()
    paths = [(folder / f"{names[mix.name, name]}.ampr").absolute() for name in mix.programs]
    speedups = [json.loads(load(path).info)["speedup"] for path in paths]
    turnarounds = []
    with tempfile.TemporaryDirectory(prefix="ampsched-truth-") as name:
        own = Path(name) / "machine.toml"
        own.write_text(machine_text(machine), "utf-8")
        for offset in OFFSETS:
            rows = "".join(
                f'  {{ name = "{number}", program = "{path}", start_ms = {start_us / 1e3}, '
                f"params = {{ speedup = {speedup} }} }},\n"
                for number, (path, speedup, start_us) in enumerate(
                    zip(paths, speedups, mix.mix().starts_us(offset), strict=True)
                )
            )
            workload = Path(name) / "mix.workload.toml"
            workload.write_text(f'[workloads.mix]\ndescription = "A mix"\napps = [\n{rows}]\n', "utf-8")
            outcome = ampsched.simulate(own, workload, policy, limit_s=60, core_order="as-is", seed=offset)
            turnarounds.append([app.turnaround_ns / 1e6 for app in outcome.apps])
    return [fmean(each) for each in zip(*turnarounds, strict=True)]


def machine_text(machine: str, factor: float = 1.0) -> str:
    """A machine of the campaign: its cores, and what scheduling costs there, measured, times a factor."""
    return text_of_machine(machine, machines.exact(machine, X86), factor)


def text_of_machine(name: str, exact: Exact, factor: float) -> str:
    """The same of any exact machine."""
    ranks = [rank for *_, rank in exact.machine.clusters]
    costs = _costs()
    lines = [f'name = "{name}"', 'description = "An exact virtual machine."']
    for number, (cluster, rank) in enumerate(zip(exact.clusters(), ranks, strict=True)):
        lines += [
            "[[clusters]]",
            f'name = "cluster-{number}"',
            'core_type = "generic"',
            f"cores = {cluster.cores}",
            f"class = {rank}",
            f"opps = [{{ mhz = {round(cluster.speed / 1000)}, volt = 1.0 }}]",
            "[clusters.costs]",
            *(
                line
                for line in _lines(costs[0 if rank == max(ranks) else 1], factor)
                if not line.startswith("tick_ns")
            ),
        ]
    lines += [
        "[costs]",
        *_lines(costs[0], factor),
        "[kernel]",
        'sees = "nothing"',
        'last_level_cache = "machine"',
    ]
    return "\n".join(lines) + "\n"


def _costs() -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Of fast and of slow cores."""
    found = tomllib.loads(COSTS.read_text("utf-8"))
    fast = found["costs"]
    slow = {**fast, **next(cluster["costs"] for cluster in found["clusters"] if cluster["class"] == 0)}
    return fast, slow


def _lines(costs: Mapping[str, int], factor: float) -> list[str]:
    def value(name: str) -> int:
        scaled = costs[name] if name == "tick_ns" else round(costs[name] * factor)
        return 0 if name in IN_WORK else scaled

    return [f"{name} = {value(name)}" for name in costs]


def compare(folder: Path, results: Path) -> list[Row]:
    """All programs of all mixes that are recorded, everywhere."""
    store, names, rows = Store(results), alone_names(), []
    for machine in PREDICTED:
        for scheduler, policy in POLICIES.items():
            runs = store.read(machine, SYSTEMS[X86], scheduler)
            for mix in MIXES:
                if not all((folder / f"{names[mix.name, name]}.ampr").exists() for name in mix.programs):
                    continue
                measured = [
                    runs[mix.name, offset]["programs"] for offset in OFFSETS if (mix.name, offset) in runs
                ]
                predicted = predict(folder, machine, mix, policy)
                for number, name in enumerate(mix.programs):
                    ms = fmean(programs[number]["turnaround_ns"] for programs in measured) / 1e6
                    rows.append(Row(machine, mix.name, name, scheduler, ms, predicted[number]))
    return rows


def pairs(rows: Sequence[Row]) -> tuple[int, int]:
    """Pairs of schedulers whose mean turnarounds of a mix on a machine differ: in the right order, and all."""
    right = count = 0
    keys = dict.fromkeys((row.machine, row.mix) for row in rows)
    for machine, mix in keys:
        own = [row for row in rows if (row.machine, row.mix) == (machine, mix)]
        means = {
            scheduler: (
                fmean(row.measured_ms for row in own if row.scheduler == scheduler),
                fmean(row.predicted_ms for row in own if row.scheduler == scheduler),
            )
            for scheduler in POLICIES
        }
        for one, other in combinations(means.values(), 2):
            if abs(one[0] / other[0] - 1) > DIFFERS:
                count += 1
                right += (one[0] < other[0]) == (one[1] < other[1])
    return right, count


def text_of(rows: Sequence[Row]) -> str:
    """The page's part."""
    right, count = pairs(rows)
    error = fmean(abs(row.error) for row in rows)
    lines = [
        f"{len(rows)} turnarounds of programs in mixes: **the mean error is {error:.1%}; of {count} pairs of schedulers "
        f"whose measured mean turnarounds of a mix differ by more than {DIFFERS:.0%}, {right} ({right / count:.0%}) are "
        "predicted in the right order.** Errors of means over five start offsets:",
        "",
        "| mix: program | " + " | ".join(f"{machine}: mean, worst" for machine in PREDICTED) + " |",
        "|---|" + "---|" * len(PREDICTED),
    ]
    for mix, program in dict.fromkeys((row.mix, row.program) for row in rows):
        cells = []
        for machine in PREDICTED:
            errors = [
                row.error for row in rows if (row.mix, row.program, row.machine) == (mix, program, machine)
            ]
            cells.append(f"{fmean(map(abs, errors)):.1%}, {max(errors, key=abs):+.1%}")
        lines.append(f"| {mix}: {program} | " + " | ".join(cells) + " |")
    lines += ["", "| scheduler | mean error | mean, signed |", "|---|---|---|"]
    for scheduler in POLICIES:
        errors = [row.error for row in rows if row.scheduler == scheduler]
        lines.append(f"| {scheduler} | {fmean(map(abs, errors)):.1%} | {fmean(errors):+.1%} |")
    return "\n".join(lines)


def main() -> None:
    """Records, predicts, prints and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--programs", type=Path, required=True, help="folder of the compiled C programs (dynamic)"
    )
    parser.add_argument("--inputs", type=Path, required=True, help="folder for the inputs of real programs")
    parser.add_argument(
        "--recordings", type=Path, required=True, help="folder of the recordings; missing ones are made"
    )
    parser.add_argument("--results", type=Path, required=True, help="what make -C lab gain has measured")
    parser.add_argument("--report", type=Path, help="page in which the table is replaced")
    arguments = parser.parse_args()
    workshop = Workshop(arguments.programs, arguments.programs, arguments.inputs)
    record_all(workshop, arguments.programs, arguments.recordings)
    rows = compare(arguments.recordings, arguments.results)
    text = text_of(rows)
    print(text)
    if arguments.report:
        kept = json.dumps({"rows": [asdict(row) for row in rows]}, indent=1)
        arguments.report.with_name(FILE).write_text(kept + "\n", "utf-8")
        replace_region(arguments.report, BEGIN, END, text)


if __name__ == "__main__":
    main()
