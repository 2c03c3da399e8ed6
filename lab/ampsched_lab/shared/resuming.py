"""Which reports in a folder are there already, made by this very code: so that a run that was cut off goes on."""

import hashlib
from collections import Counter
from importlib.resources import as_file, files
from pathlib import Path
from typing import cast

from ampsched._core import InputError
from ampsched.files import read_text, write_text
from ampsched_lab.shared.claims.comparisons import Verdict

_FOLDER = ".reproduced"
_REPORT = "report.md"


def stamp(repeats: int, max_repeats: int) -> str:
    """What results depend on: the code of both packages, compiled part and data included, and the numbers of seeds."""
    digest = hashlib.sha256()
    for name in ("ampsched", "ampsched_lab"):
        with as_file(files(name)) as package:
            for path in sorted(package.rglob("*")):
                if path.is_file() and path.suffix != ".pyc":
                    digest.update(f"{path.relative_to(package)}\n".encode())
                    digest.update(path.read_bytes())
    return f"{digest.hexdigest()} --repeats {repeats} --max-repeats {max_repeats}\n"


def is_done(out: Path, name: str, wanted: str) -> bool:
    """Whether an experiment's report in a folder has that stamp."""
    try:
        return (out / name / _REPORT).is_file() and read_text(out / _FOLDER / name) == wanted
    except InputError:
        return False


def mark_done(out: Path, name: str, made_with: str) -> None:
    """Notes with which stamp the report of an experiment in a folder was made."""
    (out / _FOLDER).mkdir(exist_ok=True)
    write_text(out / _FOLDER / name, made_with)


def verdicts_of(folder: Path) -> Counter[Verdict]:
    """How many of the claims that count have which verdict, by the file of an experiment's folder."""
    import polars

    claims = polars.read_csv(folder / "claims.csv", infer_schema_length=None)
    return Counter(cast("list[Verdict]", claims.filter(polars.col("apart").is_null())["verdict"].to_list()))
