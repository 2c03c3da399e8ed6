"""Shipped workloads whose programs get other parameters: to try what a result depends on."""

import tempfile
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from ampsched._core import Workload
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


def _app(app: Mapping[str, object], params: Mapping[str, float]) -> str:
    program = str(app["program"])
    has = tomllib.loads((files("ampsched.data") / "programs" / f"{program}.toml").read_text(encoding="utf-8"))
    own = app.get("params", {})
    assert isinstance(own, dict), "as the file's parser has it"
    added = {key: value for key, value in params.items() if key in has.get("params", {})}
    stated = ", ".join(f"{key} = {value}" for key, value in (own | added).items())
    name = f', name = "{app["name"]}"' if "name" in app else ""
    return f'  {{ program = "{program}"{name}, params = {{ {stated} }} }},'
