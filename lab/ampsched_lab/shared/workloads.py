"""Shipped workloads whose programs get other parameters: to try what a result depends on."""

import tempfile
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from ampsched._core import Machine, Workload
from ampsched.api import simulate
from ampsched.catalog import Catalog


def changed_workload(file: str, name: str, params: Mapping[str, float]) -> Workload:
    """A workload of the same name whose programs get parameters beside their own.

    Args:
        file: A shipped workload file, without its ending.
        name: One of its workloads.
        params: For the programs that have parameters of these names in their files.
    """
    text = (files("ampsched.data") / "workloads" / f"{file}.toml").read_text(encoding="utf-8")
    apps = "\n".join(_app(app, params) for app in tomllib.loads(text)["workloads"][name]["apps"])
    with tempfile.TemporaryDirectory(prefix="ampsched-workload-") as folder:
        path = Path(folder) / "workload.toml"
        path.write_text(f"[workloads.{name}]\napps = [\n{apps}\n]\n", encoding="utf-8")
        return Catalog.shipped().workload(path)


FOUR_BIG = "4B0S"
ROUNDS = 4
"""Of the search for a factor: what waits and switches take does not grow with the work."""


def equally_long(workload: Workload, length_ms: float, alone_on: str | Machine = FOUR_BIG) -> Workload:
    """The same programs with so much work in each step that each takes as long alone on a machine."""
    apps = [workload.alone(app) for app in range(len(workload.apps))]
    return workload.with_work([work_factor(app, length_ms, alone_on) for app in apps])


_FACTORS: dict[tuple[str, float, str], float] = {}


def work_factor(program: Workload, length_ms: float, alone_on: str | Machine = FOUR_BIG) -> float:
    """With as many times as much work in each step a program takes that long alone on a machine."""
    where = alone_on if isinstance(alone_on, str) else alone_on.content()
    key = program.content(), length_ms, where
    if key not in _FACTORS:
        factor = 1.0
        for _ in range(ROUNDS):
            alone_ns = simulate(alone_on, program.with_work([factor]), "cfs").makespan_ns
            factor *= length_ms * 1e6 / alone_ns
        _FACTORS[key] = factor
    return _FACTORS[key]


def _app(app: Mapping[str, object], params: Mapping[str, float]) -> str:
    program = str(app["program"])
    has = tomllib.loads((files("ampsched.data") / "programs" / f"{program}.toml").read_text(encoding="utf-8"))
    own = app.get("params", {})
    assert isinstance(own, dict), "as the file's parser has it"
    added = {key: value for key, value in params.items() if key in has.get("params", {})}
    stated = ", ".join(f"{key} = {value}" for key, value in (own | added).items())
    name = f', name = "{app["name"]}"' if "name" in app else ""
    return f'  {{ program = "{program}"{name}, params = {{ {stated} }} }},'
