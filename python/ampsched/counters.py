"""Performance counters: what gem5, perf and others wrote, as one table.

A row is one counter of one core or thread over one window of time. Columns: ``source``, ``file``, ``program``,
``window`` (number of the dump or interval in its file), ``end_s`` and ``duration_s`` (of the window, in seconds),
``core``, ``core_type``, ``thread``, ``counter`` (name in the vocabulary, see `vocabulary`; else the native name),
``native`` (name in the file), ``unit``, ``value`` (null if it was not counted) and ``running_share`` (share of the
window in which it was counted; less than 1 if events took turns). What a source does not say is null.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ampsched import _core
from ampsched._core import DATA_BYTES_MAX, InputError
from ampsched.files import read_parquet, read_text, shown, write_csv, write_parquet
from ampsched.naming import unknown

if TYPE_CHECKING:
    import polars

Source = Literal["gem5", "perf", "csv"]
TEXTS = ("source", "file", "program", "core", "core_type", "thread", "counter", "native", "unit")
NUMBERS = ("end_s", "duration_s", "value", "running_share")
COLUMNS = (
    "source", "file", "program", "window", "end_s", "duration_s", "core", "core_type", "thread",
    "counter", "native", "unit", "value", "running_share",
)  # fmt: skip
# Columns of a CSV file that say what was measured; all others are counters.
IDENTITY = ("program", "window", "end_s", "duration_s", "core", "core_type", "thread")


@dataclass(frozen=True, slots=True)
class Counter:
    """A counter of the vocabulary."""

    name: str
    unit: str
    help: str


def vocabulary() -> list[Counter]:
    """All counters that have a name of their own, whatever the source."""
    return [Counter(*row) for row in _core.counters()]


def import_counters(
    path: str | Path, source: Source, *, program: str | None = None, core_type: str | None = None
) -> "polars.DataFrame":
    """Reads counters that another program wrote.

    Args:
        path: A ``stats.txt`` of gem5, the output of ``perf stat -x`` or ``-j``, or a CSV file with one column per
            counter.
        source: Which of them.
        program: What ran; the file's name without its ending where neither this nor the file says.
        core_type: Type of the cores where the file does not say.

    Raises:
        InputError: If the file cannot be read, is truncated or is wrong; the text names the line.
    """
    import polars

    path = Path(path)
    if source == "csv":
        frame = _read_csv(path)
    else:
        columns = _core.read_counters(source, shown(path), read_text(path, DATA_BYTES_MAX))
        frame = polars.DataFrame(columns, schema_overrides=_schema(columns), strict=False)
    missing = [name for name in COLUMNS if name not in frame.columns]
    frame = frame.with_columns(polars.lit(None, dtype=_schema(missing)[name]).alias(name) for name in missing)
    empty_is_null = (
        polars.when(polars.col(name) != "").then(polars.col(name)).alias(name)
        for name in TEXTS
        if name not in ("counter", "native", "unit")
    )
    frame = frame.with_columns(empty_is_null).with_columns(
        polars.lit(source).alias("source"),
        polars.lit(shown(path)).alias("file"),
        polars.col("program").fill_null(shown(program or path.stem)),
        polars.col("core_type").fill_null(
            polars.lit(shown(core_type) if core_type else None, dtype=polars.String)
        ),
        polars.col("running_share").fill_null(1.0),
    )
    return frame.select(COLUMNS)


def write_counters(frame: "polars.DataFrame", path: str | Path) -> None:
    """Writes a counter table: Parquet, or CSV if the path ends in ``.csv``."""
    if Path(path).suffix == ".csv":
        write_csv(path, frame)
    else:
        write_parquet(path, frame)


def read_counters(path: str | Path) -> "polars.DataFrame":
    """Reads a counter table that `write_counters` wrote.

    Raises:
        InputError: If it cannot be read or is no counter table.
    """
    import polars

    path = Path(path)
    if path.suffix == ".csv":
        text = read_text(path, DATA_BYTES_MAX)
        try:
            frame = polars.read_csv(text.encode(), schema_overrides=_schema(COLUMNS))
        except polars.exceptions.PolarsError as error:
            raise InputError(f"{path}: is no CSV table: {str(error).splitlines()[0]}") from None
    else:
        frame = read_parquet(path)
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        hint = "make one with: ampsched counters import"
        raise InputError(f"{path}: is no counter table: column {missing[0]} is missing ({hint})")
    return frame


def _schema(names: "list[str] | tuple[str, ...] | dict[str, list[object]]") -> "dict[str, polars.DataType]":
    import polars

    types: dict[str, polars.DataType] = {"window": polars.UInt32()}
    types |= {name: polars.String() for name in TEXTS} | {name: polars.Float64() for name in NUMBERS}
    return {name: types[name] for name in names}


def _read_csv(path: Path) -> "polars.DataFrame":
    import polars

    text = read_text(path, DATA_BYTES_MAX)
    try:
        wide = polars.read_csv(text.encode(), infer_schema=False)
    except polars.exceptions.PolarsError as error:
        raise InputError(f"{path}: is no CSV table: {str(error).splitlines()[0]}") from None
    known = {counter.name: counter.unit for counter in vocabulary()}
    for name in wide.columns:
        if name not in known and name not in IDENTITY:
            near = [*IDENTITY, *known] if len(name) > 1 else []
            raise InputError(f"{path}:1: {unknown('counter', name, near, 'see: ampsched counters list')}")
    identity = [name for name in wide.columns if name in IDENTITY]
    wide = wide.with_row_index("line", offset=2)
    if "window" not in wide.columns:
        wide = wide.with_columns((polars.col("line") - 2).cast(polars.String).alias("window"))
        identity.append("window")
    long = wide.unpivot(
        [name for name in wide.columns if name in known], index=["line", *identity], variable_name="counter"
    )
    numbers = [name for name in (*identity, "value") if name in NUMBERS or name == "window"]
    for name in numbers:
        _refuse_text(path, long, name)
    return long.with_columns(
        *(
            polars.col(name).str.strip_chars().replace("", None).cast(_schema([name])[name])
            for name in numbers
        ),
        polars.col("counter").alias("native"),
        polars.col("counter").replace_strict(known).alias("unit"),
    ).drop("line")


def _refuse_text(path: Path, long: "polars.DataFrame", name: str) -> None:
    """Raises if a column that must be numbers has anything else, or a number below 0."""
    import polars

    texts = long.filter(polars.col(name).str.strip_chars() != "")
    number = polars.col(name).str.strip_chars().cast(polars.Float64, strict=False)
    wrong = texts.filter(number.is_null() | ~number.is_finite() | (number < 0)).sort("line")
    if not wrong.is_empty():
        row = wrong.row(0, named=True)
        column = row["counter"] if name == "value" else name
        raise InputError(f'{path}:{row["line"]}: {column} = "{row[name]}" is not a number of at least 0')
