"""The kept data of lab/data/silicon."""

import csv
import io
import json
import lzma
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "lab/data/silicon"
SHIPPED = ROOT / "python/ampsched/data"


@cache
def rows(name: str) -> Sequence[Mapping[str, str]]:
    """The rows of a compressed table."""
    text = lzma.decompress((FOLDER / f"{name}.csv.xz").read_bytes()).decode()
    return list(csv.DictReader(io.StringIO(text)))


@cache
def chips() -> Mapping[str, Mapping[str, Any]]:
    """What chips.toml says of each."""
    return tomllib.loads((FOLDER / "chips.toml").read_text("utf-8"))


@cache
def cores() -> Mapping[str, Mapping[str, Any]]:
    """What cores.toml says of each core type."""
    return tomllib.loads((FOLDER / "cores.toml").read_text("utf-8"))


def kept(name: str) -> Any:  # noqa: ANN401 - JSON
    """What an earlier step has written, or nothing."""
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def keep(name: str, value: object) -> None:
    """Writes what later steps read."""
    (FOLDER / f"{name}.json").write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", "utf-8")


def coremark(chip: str) -> Mapping[str, Sequence[tuple[int, float, float]]]:
    """By cluster of a chip: MHz, CoreMark per second and mW (0: not measured), ascending; none if not measured."""
    found: dict[str, list[tuple[int, float, float]]] = {}
    for cluster in chips()[chip]["clusters"]:
        kind, _, place = str(cluster["opps"]).partition(":")
        if kind == "freqbench":
            name, cpu = place.split(":")
            found[cluster["name"]] = sorted(
                (int(row["mhz"]), float(row["coremark_per_s"]), float(row["power_mw"]))
                for row in rows("freqbench")
                if (row["chip"], row["cpu"]) == (name, cpu)
            )
    return found


SEVEN_ZIP = ("compress", "decompress")


def seven_zip(chip: str) -> Mapping[str, Mapping[str, float]]:
    """By cluster, and ``all``: MIPS of 7-zip by what it does, the median of the chip's reports; none if not measured.

    Clusters are told apart by their order, and those beyond the measured ones are as their like.
    """
    reports = [f"results/{name}.txt" for name in chips()[chip].get("seven_zip", ())]
    if not reports:
        return {}
    measured = [[row for row in rows("sbc-bench") if row["file"] == name] for name in reports]
    if not all(measured):
        raise ValueError(f"{chip}: a report of {reports} is not in sbc-bench.csv.xz")
    clusters = chips()[chip]["clusters"]
    found = {
        cluster["name"]: {
            what: median(float(each[min(place, len(each) - 1)][f"single_{what}"]) for each in measured)
            for what in SEVEN_ZIP
        }
        for place, cluster in enumerate(clusters)
    }
    found["all"] = {what: median(float(each[0][f"multi_{what}"]) for each in measured) for what in SEVEN_ZIP}
    return found
