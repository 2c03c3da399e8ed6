"""Lifted programs beside recordings, with as many threads and with twice as many: `make -C lab truth-lifted`.

Each program is recorded with 4 and with 8 threads. The recording with 4 is lifted; the lifted program with n = 4 is
compared with that recording, and with n = 8 with the new one. What a recording says is its replay on its own cores,
which no other program on the computer disturbs; how good replays are is the table of native.py.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from ampsched import Catalog, InputError
from ampsched.recording import lift, load
from ampsched.recording.check import makespan_s, reproduce
from ampsched.recording.machine import recorded_machine
from ampsched_lab.recordings.measure import missing, recorded
from ampsched_lab.recordings.native import SEEDS
from ampsched_lab.recordings.programs import PROGRAMS, THREADS, Program, write_inputs
from ampsched_lab.shared.page import replace_region
from ampsched_lab.truth.host.measure import host, wait_until_quiet
from ampsched_lab.truth.host.run import policy_of

BEGIN = "<!-- begin: lifted, written by make -C lab truth-lifted -->"
END = "<!-- end: lifted, written by make -C lab truth-lifted -->"
FILE = "lifted.json"
AIM, AIM_TWICE = 0.10, 0.15


@dataclass(frozen=True)
class Row:
    """What was found of a program; times in s.

    Attributes:
        literal: Share of the work that is ordered by semaphores of pairs alone.
        replayed_s, lifted_s: With 4 threads.
        replayed_twice_s, lifted_twice_s: With 8; the lifted one is none if it has no such parameter.
    """

    name: str
    groups: int
    literal: float
    replayed_s: float
    lifted_s: float
    replayed_twice_s: float
    lifted_twice_s: float | None

    @property
    def error(self) -> float:
        """0.05: the lifted program takes 5 % longer."""
        return self.lifted_s / self.replayed_s - 1

    @property
    def error_twice(self) -> float | None:
        """The same with twice the threads."""
        return None if self.lifted_twice_s is None else self.lifted_twice_s / self.replayed_twice_s - 1


def row(program: Program, once: Path, twice: Path, policy: str) -> Row:
    """Lifts a recording and compares it with both."""
    catalog = Catalog.shipped()
    recordings = [load(path) for path in (once, twice)]
    found = lift(recordings[0])
    replays = [
        reproduce(each, path, catalog, policy, SEEDS).replayed_s
        for each, path in zip(recordings, (once, twice), strict=True)
    ]
    machine = recorded_machine(json.loads(recordings[0].info), catalog, str(once))
    with tempfile.TemporaryDirectory(prefix="ampsched-truth-") as name:
        toml = Path(name) / "lifted.toml"
        toml.write_text(found.toml, "utf-8")
        has_n = "\nn = " in found.toml
        return Row(
            name=program.name,
            groups=len(found.report["groups"]),
            literal=found.report["literal_share"],
            replayed_s=replays[0],
            lifted_s=makespan_s(machine, toml, policy, SEEDS),
            replayed_twice_s=replays[1],
            lifted_twice_s=makespan_s(machine, f"{toml}:n={2 * THREADS}", policy, SEEDS) if has_n else None,
        )


def text_of(rows: Sequence[Row], day: str) -> str:
    """The page's part."""
    good = sum(abs(each.error) <= AIM for each in rows)
    scaled = [each for each in rows if each.error_twice is not None]
    good_twice = sum(abs(each.error_twice or 0) <= AIM_TWICE for each in scaled)
    lines = [
        f"Recorded on {day}. **{good} of {len(rows)} lifted programs are within {AIM:.0%} of the recording, "
        f"{good_twice} of {len(scaled)} with twice the threads within {AIM_TWICE:.0%} of a new one.**",
        "",
        f"| program | groups | literal work | {THREADS} threads: recording, s | lifted, s | error | "
        f"{2 * THREADS} threads: recording, s | lifted, s | error |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for each in rows:
        twice = "no `n`" if each.lifted_twice_s is None else f"{each.lifted_twice_s:.3f}"
        error = "" if each.error_twice is None else f"{each.error_twice:+.1%}"
        lines.append(
            f"| {each.name} | {each.groups} | {each.literal:.0%} | {each.replayed_s:.3f} | {each.lifted_s:.3f} | "
            f"{each.error:+.1%} | {each.replayed_twice_s:.3f} | {twice} | {error} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Records, lifts, prints and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=Path, required=True, help="folder for what the programs work on")
    parser.add_argument(
        "--recordings", type=Path, required=True, help="folder of the recordings; missing ones are made"
    )
    parser.add_argument("--results", type=Path, required=True, help="folder of what is kept")
    parser.add_argument("--report", type=Path, help="page in which the table is replaced")
    arguments = parser.parse_args()
    chosen = [program for program in PROGRAMS if program.is_scalable]
    if absent := missing(chosen):
        parser.error(f"programs are missing (Debian: apt install {' '.join(absent)})")
    cpus = sorted(os.sched_getaffinity(0))[:2]
    os.sched_setaffinity(0, cpus)
    policy = policy_of(host())
    write_inputs(arguments.inputs)
    for folder in (arguments.recordings, arguments.results):
        folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for program in chosen:
        paths = []
        for threads in (THREADS, 2 * THREADS):
            paths.append(arguments.recordings / f"{program.name}-n{threads}.ampr")
            if not paths[-1].exists():
                wait_until_quiet(cpus, 30)
                recorded(program, arguments.inputs, paths[-1], cpus, threads)
        rows.append(row(program, paths[0], paths[1], policy))
        twice = rows[-1].error_twice
        print(
            f"{program.name}: {rows[-1].error:+.1%}, {'no n' if twice is None else f'{twice:+.1%}'}",
            flush=True,
        )
    day = datetime.now().astimezone().date().isoformat()
    kept = {"day": day, "rows": [asdict(each) for each in rows]}
    (arguments.results / FILE).write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    text = text_of(rows, day)
    print(text)
    if arguments.report:
        replace_region(arguments.report, BEGIN, END, text)


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        raise SystemExit(f"error: {error}") from None
