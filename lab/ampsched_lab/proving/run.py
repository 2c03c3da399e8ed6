"""Puts ``ampsched selftest``, and what ``advise --check`` measures, to the test in exact virtual machines.

``make -C lab selftest``. The guests' cores are known exactly, and nothing disturbs them: what is measured there is how
good predictions and intervals are. Linux is told of no differences between cores there; the product is told by files
which kinds there are, see `inside`.
"""

import argparse
import json
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import zstandard

from ampsched.proving import programs
from ampsched.recording import load
from ampsched.recording.advice import advise
from ampsched_lab.proving.guest import HOME, MEMORY_MB, run_python
from ampsched_lab.settings import judge, plan
from ampsched_lab.settings.run import RESULTS as RECORDED

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "lab/data/proving/measured.json.zst"
CHECKER = Path(__file__).with_name("checker.py")
PLACES = tuple(place for place in plan.PLACES if place.name in ("4B4S", "2P4E"))
MIPS = 500.0
"""Of the fastest core in a self-test: Python starts in 0.1 s."""
ROUNDS = 40
"""Of key derivation in a unit of the self-test's work, 1000 elsewhere: a run takes some seconds to simulate."""
CHECKED = ("layers", "crack", "fixed", "tree", "stencil")
"""Programs for which another setting is advised on both machines."""
CHECK_S, SELFTEST_S = 120.0, 60.0
COMMAND = """
from ampsched.cli import main, proving
proving.QUICK_S = {time_s}
main(["selftest", "--quick", "--report", "{report}"])
"""
LEVEL = 19


def read(path: Path = RESULTS) -> dict[str, Any]:
    """What was measured: by machine, the reports of self-tests, and the rows of checks."""
    if not path.exists():
        return {"selftest": {}, "checks": {}}
    found: dict[str, Any] = json.loads(zstandard.decompress(path.read_bytes()))
    return found


def keep(values: dict[str, Any], path: Path = RESULTS) -> None:
    """Writes what was measured."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(zstandard.compress(json.dumps(values, indent=1).encode(), LEVEL))


def with_little_work(source: str) -> str:
    """The self-test's programs with `ROUNDS` of their own."""
    text, count = re.subn(r"(?m)^ROUNDS = \d+$", f"ROUNDS = {ROUNDS}", source)
    assert count == 1
    return text


def selftest(place: plan.Place, time_s: float) -> dict[str, Any]:
    """The report of a self-test in a machine, in so much of the guest's time."""
    source = Path(programs.__file__).resolve()
    exact = replace(plan.exact(place.name, MIPS), memory_mb=MEMORY_MB)
    with tempfile.TemporaryDirectory(prefix="ampsched-proving-") as name:
        changed, out = Path(name) / "programs.py", Path(name) / "out"
        changed.write_text(with_little_work(source.read_text("utf-8")), "utf-8")
        words = ["-c", COMMAND.format(time_s=time_s, report=HOME / "report.json")]
        run_python(exact, words, placed={source: changed}, out=out)
        found: dict[str, Any] = json.loads((out / "report.json").read_text("utf-8"))
    return found


def checks(place: plan.Place, static: Path) -> list[dict[str, Any]]:
    """What is predicted of programs that were recorded, and what the loop of ``advise --check`` measures of them."""
    with tempfile.TemporaryDirectory(prefix="ampsched-proving-") as name:
        folder = Path(name)
        machine = judge.machine_file(folder, place)
        kinds = [kind for kind in plan.KINDS if kind.name in CHECKED]
        rows = [_asked(place, kind, machine) for kind in kinds]
        (folder / "plan.json").write_text(json.dumps(rows), "utf-8")
        placed = {HOME / "checker.py": CHECKER, HOME / "plan.json": folder / "plan.json"}
        placed |= {HOME / source: static / source for source in {kind.source for kind in kinds}}
        exact = replace(plan.exact(place.name), memory_mb=MEMORY_MB)
        done = run_python(exact, [str(HOME / "checker.py"), str(HOME / "plan.json")], placed=placed)
    measured = {each["name"]: each["measured"] for each in done.results()}
    return [row | {"measured": measured[row["name"]]} for row in rows]


def _asked(place: plan.Place, kind: plan.Kind, machine: Path) -> dict[str, Any]:
    """What the product advises for a program, as rows of the checker's file."""
    recordings = judge.recordings_of(RECORDED, place, kind)
    speedup = json.loads(load(recordings[max(recordings)]).info)["speedup"]
    advice = advise(recordings, str(machine), [plan.LINUX], speedup=speedup)
    best = advice.choices_of_settings[0]
    cores = best.setting.cores
    return {
        "name": kind.name,
        "command": [str(HOME / kind.source), kind.name, "{threads}"],
        "usual": advice.usual.threads,
        "threads": best.setting.threads,
        "cores": cores.name if cores else "",
        "cpus": cores.cpus if cores else (),
        "kind": advice.model_error.kind,
        "predicted": best.change.mean,
        "time_s": CHECK_S,
    }


def main() -> None:
    """Measures what is missing."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--programs", type=Path, required=True, help="folder of the static programs of settings"
    )
    options.add_argument(
        "--time",
        type=float,
        default=SELFTEST_S,
        help="of a self-test, in s of the guest's time (%(default)s)",
    )
    arguments = options.parse_args()
    values = read()
    for place in PLACES:
        if place.name not in values["checks"]:
            values["checks"][place.name] = checks(place, arguments.programs.resolve())
            keep(values)
        if place.name not in values["selftest"]:
            values["selftest"][place.name] = selftest(place, arguments.time)
            keep(values)


if __name__ == "__main__":
    main()
