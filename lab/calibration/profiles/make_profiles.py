"""Turns the measured characteristics of programs into profile files.

Reads profiles.csv and stages.csv in this folder, writes one TOML file per suite into
python/ampsched/data/profiles. Every number carries the column it comes from; the few that are
not measured (`prefetchable`, and what the stage table leaves out) say what they are.

    python3 lab/calibration/profiles/make_profiles.py           # write the files
    python3 lab/calibration/profiles/make_profiles.py --check   # fail if a committed file differs
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from prefetch_classes import CLASSES, PREFETCH

HERE = Path(__file__).resolve().parent
TARGET = HERE.parents[2] / "python" / "ampsched" / "data" / "profiles"

# Names of the CSV that the CGO 2020 paper spells out.
NAMES = {"water_nsq": "water_nsquared", "water_sp": "water_spatial"}
# Stages of the two pipelines, by the names that the program models use.
STAGES = {
    ("dedup", "Fragment"): "dedup.fragment",
    ("dedup", "FragmentRefine"): "dedup.refine",
    ("dedup", "Deduplicate"): "dedup.deduplicate",
    ("dedup", "Compress"): "dedup.compress",
    ("dedup", "Reorder"): "dedup.reorder",
    ("ferret", "t_load"): "ferret.load",
    ("ferret", "t_seg"): "ferret.seg",
    ("ferret", "t_extract"): "ferret.extract",
    ("ferret", "t_vec"): "ferret.vec",
    ("ferret", "t_rank"): "ferret.rank",
    ("ferret", "t_out"): "ferret.out",
}
TITLES = {
    "splash3": "Splash-3",
    "parsec": "PARSEC 3",
    "spec": "Ancestors, descendants and stand-ins of SPEC CPU2006 members",
    "stages": "Pipeline stages of PARSEC's dedup and ferret",
}

Row = Mapping[str, str]


class Value(NamedTuple):
    """A number as it is written, and where it comes from."""

    text: str
    source: str


class Field(NamedTuple):
    """A key of a profile and the rule that computes it for a whole program."""

    key: str
    rule: Callable[[Row], Value]


def column(name: str) -> Callable[[Row], Value]:
    """The number of one column, digit for digit."""
    return lambda row: Value(plain(row[name]), name)


def total(*names: str) -> Callable[[Row], Value]:
    """The sum of columns."""
    return lambda row: Value(plain(sum(float(row[name]) for name in names)), " + ".join(names))


def product(*names: str) -> Callable[[Row], Value]:
    """The product of columns."""

    def rule(row: Row) -> Value:
        result = 1.0
        for name in names:
            result *= float(row[name])
        return Value(plain(result), " x ".join(names))

    return rule


def single_precision(row: Row) -> Value:
    """Additions and multiplications that are not double precision."""
    share = float(row["mix_fp_addmul"]) * (1 - float(row["mix_fp_double_share"]))
    return Value(plain(share), "mix_fp_addmul x (1 - mix_fp_double_share)")


def plain(number: str | float) -> str:
    """A TOML number without exponent; computed ones are rounded to six decimals."""
    text = f"{float(number):.6f}".rstrip("0")
    return text + "0" if text.endswith(".") else text


# The keys of a profile in the order of the model's struct Profile.
FIELDS = [
    Field("uops_per_instruction", column("mix_uops_per_instr")),
    Field("cpi_core_big", column("walk_cpi_big_core")),
    Field("cpi_core_little", column("walk_cpi_little_core")),
    Field("load", column("mix_load")),
    Field("store", column("mix_store")),
    Field("branch", total("mix_br_cond", "mix_br_uncond", "mix_call", "mix_ret")),
    Field("fp_simd", column("mix_fp_simd_share")),
    Field("fp_single", single_precision),
    Field("fp_double", product("mix_fp_addmul", "mix_fp_double_share")),
    Field("fp_div", column("mix_fp_div")),
    Field("int_mul_div", total("mix_int_mul", "mix_int_div")),
    Field("branch_mpki", column("br_mpki")),
    Field("l1i_mpki", column("i1_mpki")),
    Field("l1d_mpki", column("d1_mpki")),
    Field("l1d_write_mpki", column("d1_wr_mpki")),
    Field("l2_512k_mpki", column("l2_512K_mpki")),
    Field("l2_512k_write_mpki", column("l2_512K_wr_mpki")),
    Field("l2_2m_mpki", column("l2_2M_mpki")),
    Field("l2_2m_write_mpki", column("l2_2M_wr_mpki")),
    Field("ilp_40", column("walk_ilp_w40")),
    Field("ilp_128", column("walk_ilp_w128")),
    Field("load_use_1", column("walk_load_use_le1")),
    Field("load_use_3", column("walk_load_use_le3")),
]


def stage_values(stage: Row, program: Row) -> dict[str, Value]:
    """The numbers of a stage; what its table leaves out is taken from the whole program."""
    values = {field.key: field.rule(program) for field in FIELDS}
    values = {key: Value(value.text, f"whole program: {value.source}") for key, value in values.items()}
    direct = {
        "uops_per_instruction": "mix_uops_per_instr",
        "cpi_core_big": "walk_cpi_big_core",
        "cpi_core_little": "walk_cpi_little_core",
        "fp_simd": "mix_fp_simd_share",
        "fp_div": "mix_fp_div",
        "branch_mpki": "br_mpki",
        "l1i_mpki": "i1_mpki",
        "l1d_write_mpki": "d1_wr_mpki",
        "l2_512k_mpki": "l2_512K_mpki",
        "l2_2m_mpki": "l2_2M_mpki",
        "ilp_40": "walk_ilp_w40",
        "ilp_128": "walk_ilp_w128",
        "load_use_3": "walk_load_use_le3",
    }
    for key, name in direct.items():
        if stage[name]:
            values[key] = column(name)(stage)
    values |= stage_estimates(stage, program)
    return values


def stage_estimates(stage: Row, program: Row) -> dict[str, Value]:
    """Numbers that combine a column of the stage with the whole program's proportions."""
    values = {
        "load": per_instruction(stage, "reads_pki"),
        "store": per_instruction(stage, "writes_pki"),
        "branch": per_instruction(stage, "cond_br_pki", "ind_br_pki"),
        "l1d_mpki": total("d1_rd_mpki", "d1_wr_mpki")(stage),
        "l2_512k_write_mpki": as_in_l1(stage, "l2_512K_mpki"),
        "l2_2m_write_mpki": as_in_l1(stage, "l2_2M_mpki"),
    }
    if stage["mix_fp_addmul"]:
        values["int_mul_div"] = Value(plain(stage["mix_int_mul"]), "mix_int_mul, divisions not counted")
        arithmetic, double = float(stage["mix_fp_addmul"]), float(program["mix_fp_double_share"])
        split = "mix_fp_addmul, split by the whole program's mix_fp_double_share"
        values["fp_single"] = Value(plain(arithmetic * (1 - double)), split)
        values["fp_double"] = Value(plain(arithmetic * double), split)
        values["load_use_1"] = near_loads(stage, program)
    return values


def per_instruction(stage: Row, *names: str) -> Value:
    """Counts per 1,000 instructions as a share of instructions."""
    return Value(plain(sum(float(stage[name]) for name in names) / 1000), " + ".join(names) + ", per 1,000")


def as_in_l1(stage: Row, misses: str) -> Value:
    """The part of L2 misses that stores cause, split as the misses of the L1."""
    reads, writes = float(stage["d1_rd_mpki"]), float(stage["d1_wr_mpki"])
    part = float(stage[misses]) * writes / (reads + writes)
    return Value(plain(part), f"{misses}, split as d1_wr_mpki : d1_rd_mpki")


def near_loads(stage: Row, program: Row) -> Value:
    """Loads read by the next instruction, in proportion to those read within three."""
    one, three = "walk_load_use_le1", "walk_load_use_le3"
    part = float(stage[three]) * float(program[one]) / float(program[three])
    return Value(plain(part), f"{three} x whole program's {one} / {three}")


def profile_text(name: str, measured: str, values: Mapping[str, Value]) -> str:
    """One `[profiles.NAME]` table."""
    kind, reason = PREFETCH[name]
    key = f'"{name}"' if "." in name else name
    rows = [(field.key, *values[field.key]) for field in FIELDS]
    rows.append(("prefetchable", plain(CLASSES[kind]), f"not measured, class {kind}: {reason}"))
    width = max(len(f"{field} = {text}") for field, text, _ in rows)
    lines = [f"[profiles.{key}]", f'source = "{measured}"']
    lines += [f"{f'{field} = {text}':<{width}}  # {source}" for field, text, source in rows]
    return "\n".join(lines) + "\n"


def header(suite: str) -> str:
    """What stands before the first profile of a file."""
    return (
        f"# {TITLES[suite]}: measured behaviour, per instruction.\n"
        "# Written by lab/calibration/profiles/make_profiles.py; do not edit. The comment after a number names the\n"
        "# column of lab/calibration/profiles that it comes from; the README there tells how it was measured.\n"
        f'description = "{TITLES[suite]}"\n'
    )


def files(programs: list[Row], stages: list[Row]) -> dict[str, str]:
    """The text of every file by its name."""
    texts = {suite: [header(suite)] for suite in TITLES}
    for row in programs:
        name = NAMES.get(row["program"], row["program"])
        values = {field.key: field.rule(row) for field in FIELDS}
        texts[row["suite"]].append(profile_text(name, row["input"].replace('"', "'"), values))
    by_name = {row["program"]: row for row in programs}
    for row in stages:
        stage = STAGES.get((row["program"], row["stage"]))
        if stage is None:  # the two main threads, which only start and join the others
            continue
        program = by_name[row["program"]]
        measured = f"thread {row['stage']} of {row['program']}: {program['input']}"
        texts["stages"].append(profile_text(stage, measured, stage_values(row, program)))
    return {f"{suite}.toml": "\n".join(parts) for suite, parts in texts.items()}


def read(name: str) -> list[Row]:
    """The rows of a CSV file in this folder."""
    with (HERE / name).open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def main() -> int:
    """Writes the files, or compares them with the committed ones."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="compare instead of writing; exit code 1 if a file differs"
    )
    parser.add_argument("--target", type=Path, default=TARGET, help="folder of the profile files")
    arguments = parser.parse_args()
    differing = []
    for name, text in files(read("profiles.csv"), read("stages.csv")).items():
        path = arguments.target / name
        if not arguments.check:
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            differing.append(name)
    if differing:
        print(f"differs from what make_profiles.py writes: {', '.join(differing)}", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
