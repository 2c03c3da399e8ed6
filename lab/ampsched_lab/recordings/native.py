"""Recording and replaying on this computer: `make -C lab truth-recordings`.

A measurement, not a test: nothing is tuned to make it agree. The figures are kept; recordings stay in the build folder.
"""

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from statistics import mean, median

from ampsched import Catalog, InputError
from ampsched.recording import load
from ampsched.recording.check import check
from ampsched.recording.replay import MISS_MAX
from ampsched.recording.summary import coverage
from ampsched_lab.recordings.measure import RUNS, Timed, measure, missing
from ampsched_lab.recordings.programs import PROGRAMS, Program, chosen, write_inputs
from ampsched_lab.shared.page import replace_region
from ampsched_lab.truth.host.measure import Host, host
from ampsched_lab.truth.host.run import policy_of

BEGIN = "<!-- begin: native, written by make -C lab truth-recordings -->"
END = "<!-- end: native, written by make -C lab truth-recordings -->"
AIM = 0.05
SEEDS = 5
FILE = "native.json"


@dataclass(frozen=True)
class Row:
    """What was found of a program.

    Attributes:
        plain_s: Median of the plain runs.
        recorded_s: Median of the recorded runs, as the recordings tell it.
        replayed_s: Median over the recordings of their replays.
        own_error: Median over the recordings of their replays against the very run that was recorded.
        foreign: The most that others took of a run.
        refused: Whether `ampsched advise` would refuse the recordings, as their replays miss them or break a law.
    """

    name: str
    recorder: str
    what: str
    threads: int
    events: int
    bytes_per_event: float
    blocks_per_s: float
    known: float
    plain_s: float
    recorded_s: float
    replayed_s: float
    own_error: float
    foreign: float
    refused: bool

    @property
    def error(self) -> float:
        """Replay against the plain runs: 0.05 is 5 % too long."""
        return self.replayed_s / self.plain_s - 1

    @property
    def slowdown(self) -> float:
        """Recorded runs against plain ones."""
        return self.recorded_s / self.plain_s


def row(
    program: Program, plain: Sequence[Timed], recorded: Sequence[Timed], folder: Path, policy: str
) -> Row:
    """What the runs of a program show."""
    paths = [folder / run.recording for run in recorded]
    recordings = [load(path) for path in paths]
    walls_s = [json.loads(recording.info)["wall_ns"] / 1e9 for recording in recordings]
    catalog = Catalog.shipped()
    checks = [check(each, path, catalog, policy, SEEDS) for each, path in zip(recordings, paths, strict=True)]
    first, own_error = recordings[0], median(found.error for found in checks)
    known = coverage(first)
    return Row(
        name=program.name,
        recorder=program.recorder,
        what=program.what,
        threads=len(first.threads),
        events=first.events,
        bytes_per_event=paths[0].stat().st_size / max(first.events, 1),
        blocks_per_s=first.blocks / walls_s[0],
        known=1.0 if known is None else known,
        plain_s=median(run.wall_s for run in plain),
        recorded_s=median(walls_s),
        replayed_s=median(found.replayed_s for found in checks),
        foreign=max(run.foreign for run in (*plain, *recorded)),
        own_error=own_error,
        refused=abs(own_error) > MISS_MAX or any(found.violations for found in checks),
    )


def again(known: Row, folder: Path, policy: str) -> Row:
    """The same with replays of the kept recordings by the simulator as it is now."""
    paths = sorted(folder.glob(f"{known.name}-[0-9]*.ampr"))
    if not paths:
        raise InputError(f"{folder}: there is no recording of {known.name}")
    catalog = Catalog.shipped()
    checks = [check(load(path), path, catalog, policy, SEEDS) for path in paths]
    own_error = median(found.error for found in checks)
    return replace(
        known,
        replayed_s=median(found.replayed_s for found in checks),
        own_error=own_error,
        refused=abs(own_error) > MISS_MAX or any(found.violations for found in checks),
    )


def text_of(rows: Sequence[Row], computer: Host, policy: str, day: str) -> str:
    """The page's part."""
    counted = [each for each in rows if not each.refused]
    within = sum(abs(each.error) <= AIM for each in counted)
    lines = [
        f"Measured on {day}: {computer.cpu}, {len(os.sched_getaffinity(0))} CPUs"
        f"{', virtual' if computer.is_virtual else ''}, Linux {computer.kernel}; replayed under `{policy}`. "
        f"{RUNS} plain runs and {RUNS} recordings of each program, in turns; medians. "
        f"**{within} of {len(counted)} programs within {AIM:.0%}, the worst "
        f"{max((abs(each.error) for each in counted), default=0):.1%}, the mean "
        f"{mean(abs(each.error) for each in counted) if counted else 0:.1%}; "
        f"{len(rows) - len(counted)} refused.** Against the very runs that were recorded "
        f"{sum(abs(each.own_error) <= AIM for each in counted)} are within {AIM:.0%}.",
        "",
        "| program | recorder | threads | events | bytes per event | blocks/s | blocked time with a known cause | plain, s | "
        "recorded / plain | replay, s | error | error against the recorded run | others took |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for each in rows:
        refused = " (refused)" if each.refused else ""
        lines.append(
            f"| {each.name}: {each.what} | {each.recorder} | {each.threads} | {each.events:,} | "
            f"{each.bytes_per_event:.1f} | {each.blocks_per_s:,.0f} | {each.known:.0%} | {each.plain_s:.3f} | "
            f"{each.slowdown:.2f} | {each.replayed_s:.3f} | {each.error:+.1%}{refused} | {each.own_error:+.1%} | {each.foreign:.1%} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measures, replays, prints and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=Path, required=True, help="folder for what the programs work on")
    parser.add_argument("--recordings", type=Path, required=True, help="folder of the recordings")
    parser.add_argument("--results", type=Path, required=True, help="folder of what is kept")
    parser.add_argument("--report", type=Path, help="page in which the table is replaced")
    parser.add_argument(
        "--programs", default="", help="only these, such as pigz,xz; the others' figures stay"
    )
    parser.add_argument(
        "--patience", type=float, default=60, help="seconds to wait for an idle computer (%(default)s)"
    )
    parser.add_argument(
        "--replay-only", action="store_true", help="run nothing: replay the kept recordings once more"
    )
    arguments = parser.parse_args()
    taken = chosen(parser, PROGRAMS, arguments.programs)
    if absent := missing(taken):
        parser.error(f"programs are missing (Debian: apt install {' '.join(absent)})")
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) > 2:
        cpus = cpus[:2]
        os.sched_setaffinity(0, cpus)
    computer = host()
    policy = policy_of(computer)
    write_inputs(arguments.inputs)
    arguments.recordings.mkdir(parents=True, exist_ok=True)
    arguments.results.mkdir(parents=True, exist_ok=True)
    file = arguments.results / FILE
    kept = json.loads(file.read_text("utf-8"))["rows"] if file.exists() else {}
    for program in taken:
        if arguments.replay_only:
            kept[program.name] = asdict(again(Row(**kept[program.name]), arguments.recordings, policy))
        else:
            plain, recorded = measure(
                program, arguments.inputs, arguments.recordings, cpus, arguments.patience
            )
            kept[program.name] = asdict(row(program, plain, recorded, arguments.recordings, policy))
        day = datetime.now().astimezone().date().isoformat()
        file.write_text(
            json.dumps({"day": day, "host": asdict(computer), "rows": kept}, indent=1) + "\n", "utf-8"
        )
        print(f"{program.name}: {Row(**kept[program.name]).error:+.1%}", flush=True)
    found = json.loads(file.read_text("utf-8"))
    rows = [Row(**found["rows"][program.name]) for program in PROGRAMS if program.name in found["rows"]]
    text = text_of(rows, Host(**found["host"]), policy, found["day"])
    print(text)
    if arguments.report:
        replace_region(arguments.report, BEGIN, END, text)


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        raise SystemExit(f"error: {error}") from None
