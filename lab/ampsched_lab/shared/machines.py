"""Shipped machines with some lines of their files changed: to try what a result depends on."""

import tempfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from ampsched._core import Machine
from ampsched.catalog import Catalog


def changed_machine(name: str, lines: Mapping[str, str]) -> Machine:
    """A machine of the same name in whose file something else stands; the shipped one if nothing does.

    Args:
        name: A shipped machine.
        lines: What stands in its file, once, and what stands there instead.
    """
    if not lines:
        return Catalog.shipped().machine(name)
    text = (files("ampsched.data") / "machines" / f"{name}.toml").read_text(encoding="utf-8")
    for old, new in lines.items():
        if text.count(old) != 1:
            raise ValueError(f'{name}: "{old}" does not stand there once')
        text = text.replace(old, new)
    with tempfile.TemporaryDirectory(prefix="ampsched-machine-") as folder:
        path = Path(folder) / f"{name}.toml"
        path.write_text(text, encoding="utf-8")
        return Catalog.shipped().machine(path)
