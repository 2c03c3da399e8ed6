"""Measures how fast traces are imported, recordings lifted and replayed, and their size; prints Markdown.

Times of one process on this computer. The largest recordings of the calibration are what is worked on, and a trace in
text of a million events that is written here.
"""

import argparse
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time

from run import replace_measured

import ampsched
from ampsched.recording import lift, save
from ampsched.recording.imports import import_file

ROOT = Path(__file__).resolve().parents[2]
RECORDINGS = ROOT / "lab/calibration/recordings"
NAMES = ("fluidanimate", "fmm", "dedup")
MILLION = 1_000_000
ROUNDS = 3
IMPORT_S, LIFT_S, REPLAY_PER_S, BYTES = 5.0, 30.0, 2e6, 20.0
REGION = "<!-- recordings: begin -->", "<!-- recordings: end -->"


def seconds(what: Callable[[], object]) -> float:
    """CPU time of a call, the median of some."""
    times = []
    for _ in range(ROUNDS):
        begin = process_time()
        what()
        times.append(process_time() - begin)
    return median(times)


def text_trace(events: int) -> str:
    """A trace of two threads that wake each other, as ftrace writes it."""
    lines = io.StringIO()
    lines.write("# tracer: nop\n#\n")
    for number in range(events // 2):
        time_s = 100 + number * 10e-6
        mine, other = (101, 102) if number % 2 == 0 else (102, 101)
        lines.write(
            f"            work-{mine}     [000] d.... {time_s:.6f}: sched_waking: comm=work pid={other} prio=120 "
            f"target_cpu=000\n            work-{mine}     [000] d.... {time_s + 4e-6:.6f}: sched_switch: "
            f"prev_comm=work prev_pid={mine} prev_prio=120 prev_state=S ==> next_comm=work next_pid={other} "
            f"next_prio=120\n"
        )
    return lines.getvalue()


def rows(folder: Path) -> list[str]:
    """Lines of the table."""
    trace = folder / "trace.txt"
    trace.write_text(text_trace(MILLION), "utf-8")
    import_s = seconds(lambda: import_file(trace))
    lines = [f"| ftrace's text, {MILLION:,} events | {import_s:.1f} | | | |"]
    for name in NAMES:
        file = RECORDINGS / f"{name}.npz.zst"
        recording = import_file(file)
        count = recording.events
        per_million = MILLION / count
        own = folder / f"{name}.ampr"
        save(recording, own)
        import_s = seconds(lambda file=file: import_file(file)) * per_million
        lift_s = seconds(lambda recording=recording: lift(recording, check=False)) * per_million
        workload = ampsched.Catalog.shipped().workload(own)
        replay_s = seconds(lambda workload=workload: ampsched.simulate("4B4S", workload, "cfs"))
        lines.append(
            f"| {name}, {count:,} events | {import_s:.1f} | {lift_s:.1f} | {count / replay_s / 1e6:.1f} | "
            f"{own.stat().st_size / count:.1f} |"
        )
    return lines


def main() -> None:
    """Measures, prints and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", type=Path, help="page in which the table is replaced")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ampsched-bench-") as name:
        table = [
            "| recording | imported, s per million events | lifted, s per million | replayed, million events/s | "
            "bytes per event |",
            "|---|---|---|---|---|",
            *rows(Path(name)),
        ]
    text = "\n".join(table) + (
        f"\n\nTargets: {IMPORT_S:g} s, {LIFT_S:g} s, {REPLAY_PER_S / 1e6:g} million events/s, {BYTES:g} bytes."
    )
    print(text)
    if arguments.report:
        replace_measured(arguments.report, text, REGION)


if __name__ == "__main__":
    main()
