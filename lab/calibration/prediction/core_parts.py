"""How little the core part of a program's cycles on one kind of pipeline says of that on the other, in the profiles."""

import tomllib
from collections.abc import Sequence
from importlib.resources import files

import numpy as np

from ampsched.training.rows import Array
from ampsched.training.simulated import TWINS

MIX = ("uops_per_instruction", "load", "store", "branch", "fp_simd", "int_mul_div")


def errors() -> dict[str, float]:
    """Mean absolute errors, as shares, of the out-of-order core's part on programs left out of a least-squares fit:
    of a constant, of a line through the in-order core's part, and of one through it and the mix of instructions."""
    folder = files("ampsched") / "data" / "profiles"
    profiles = {
        name: profile
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        for name, profile in tomllib.loads(file.read_text(encoding="utf-8"))["profiles"].items()
    }
    groups = np.array([TWINS.get(name.split(".")[0], name.split(".")[0]) for name in profiles])

    def column(key: str) -> Array:
        return np.array([profile[key] for profile in profiles.values()])

    wanted, other, mix = column("cpi_core_big"), column("cpi_core_little"), [column(key) for key in MIX]
    return {
        "core_constant": _left_out([], wanted, groups),
        "core_line": _left_out([other], wanted, groups),
        "core_mix": _left_out([other, *mix], wanted, groups),
    }


def _left_out(columns: Sequence[Array], wanted: Array, groups: Array) -> float:
    values = np.column_stack([np.ones(len(wanted)), *columns]) / wanted[:, None]
    found = np.empty(len(wanted))
    for group in set(groups):
        out = groups == group
        line, *_ = np.linalg.lstsq(values[~out], np.ones(int((~out).sum())), rcond=None)
        found[out] = values[out] @ line
    return float(np.abs(found - 1).mean())
