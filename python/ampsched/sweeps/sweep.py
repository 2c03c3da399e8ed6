"""`ampsched.sweep`: many simulations in one call."""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack

from ampsched._core import InputError
from ampsched.api import MachineLike, WorkloadLike
from ampsched.catalog import Catalog
from ampsched.execution import Progress
from ampsched.factors import Factors
from ampsched.governor import Governors
from ampsched.noise import Noise
from ampsched.over import Over, OverLike
from ampsched.overhead import Overhead
from ampsched.settings import SEED_MAX, CoreOrders, SweepSettings, complete
from ampsched.sweeps.grid import Pattern
from ampsched.sweeps.plan import OPTIONS, Plan, SweptPolicy, Wanted, plan
from ampsched.uncertainty import MARGIN, MARGIN_RANGE

if TYPE_CHECKING:
    import polars

    from ampsched.sweeps.result import Sweep
    from ampsched.sweeps.work import Row


class SweepOptions(TypedDict, total=False):
    """The settings of `compare`; the first four may be lists, each of whose values is swept over."""

    factors: str | Factors | Sequence[str | Factors]
    noise: str | Noise | Sequence[str | Noise]
    overhead: str | Overhead | Sequence[str | Overhead]
    governor: str | Governors | Sequence[str | Governors]
    core_order: CoreOrders
    seed: int
    repeat: int
    energy: bool
    repetitions: int | None
    limit_s: float
    check: bool


def sweep(
    machine: MachineLike | Sequence[MachineLike],
    workload: WorkloadLike | Sequence[WorkloadLike],
    policies: SweptPolicy | Sequence[SweptPolicy],
    *,
    folder: str | Path | None = None,
    sample: int | None = None,
    sample_seed: int = 1,
    over: OverLike | None = None,
    margin: float = MARGIN,
    executor: Executor | None = None,
    jobs: int = 0,
    files: Sequence[str | Path] = (),
    progress: Progress | None = None,
    **options: Unpack[SweepOptions],
) -> "Sweep":
    """Simulates every combination, or a sample, of machines, workloads, policies, their parameters and options.

    A text may stand for several: ``"colab:decay=0.5..1.0:6"`` for six values from 0.5 to 1, evenly spaced,
    ``"colab:decay=0.5/0.9"`` for these two; so in machines, workloads (``"ferret:n=2..8:4"``) and options. In samples
    ``0.5..1.0`` is any number between.

    Args:
        machine: One or several; see `simulate`.
        workload: One or several; see `simulate`.
        policies: Texts or subclasses of `Policy`; the others are measured against the first.
        folder: Where results are kept. What is there is not run again, unless its policy, the engine or anything else
            that it depends on has changed. Several people, and processes, may use one folder.
        sample: Take so many combinations by chance, and the first policy beside each; else all.
        sample_seed: Seed of that choice.
        over: A parameter with many values, such as ``"n=1..16"``; see `compare`.
        margin: By how much worse than the best other policies may be and still count as no worse: 0.01 is 1 %.
        executor: Who simulates: any executor of ``concurrent.futures``, such as that of a Dask client. By default as
            many processes of this computer as `jobs` says.
        jobs: Number of processes, 0: one per processor; of an executor the number of its workers, 0: unknown.
        files: Files of the catalogue beside the shipped ones; see `Catalog.with_files`.
        progress: Called with the number of finished simulations and of all that are missing.
        **options: Settings of `compare`; ``factors``, ``noise``, ``overhead`` and ``governor`` may be lists.

    Raises:
        InputError: If something does not exist or is wrong, the folder is one of something else, or every simulation
            fails. One that fails has a row with its ``error``.
        OSError: If the folder can't be written to.

    Example:
        >>> found = sweep("2B2S", "sync-1", ["cfs", "colab:decay=0.5/0.9"], jobs=1)
        >>> found.best("h_antt")["policy"].len()
        1
    """
    MARGIN_RANGE.check("margin", margin)
    column = None
    if over is not None:
        if sample is not None:
            raise InputError(
                "over does not go with a sample, which has some combinations only (leave one of them out)"
            )
        catalog = Catalog.shipped().with_files(*files) if files else Catalog.shipped()
        machines, workloads = _all_of(machine, "machine"), _all_of(workload, "workload")
        varied = Over.of(over).varied(machines, workloads, _all_of(policies, "policy"), catalog)
        machine, workload, policies, column = (
            varied.machines,
            varied.workloads,
            varied.policies,
            varied.column,
        )
    wanted = wanted_of(machine, workload, policies, files, sample, sample_seed, options)
    found = run_plan(plan(wanted), store_of(folder), executor, jobs, progress)
    return replace(found, margin=margin, over=column)


def _all_of(given: Any, axis: str) -> list[Any]:  # noqa: ANN401
    """One or several, each text as all that it stands for."""
    found: list[Any] = []
    for each in each_of(given):
        found += Pattern.of(str(each), axis).all() if isinstance(each, str | Path) else [each]
    return found


def wanted_of(
    machine: MachineLike | Sequence[MachineLike],
    workload: WorkloadLike | Sequence[WorkloadLike],
    policies: SweptPolicy | Sequence[SweptPolicy],
    files: Sequence[str | Path],
    sample: int | None,
    sample_seed: int,
    options: SweepOptions,
) -> Wanted:
    """What is asked for, with its settings checked; see `sweep`.

    Raises:
        InputError: If a setting is wrong.
        TypeError: If an option is unknown.
    """
    axes = {name: [str(each) for each in each_of(options[name])] for name in OPTIONS if name in options}  # type: ignore[literal-required]
    given = complete(SweepSettings, {name: value for name, value in options.items() if name not in OPTIONS})
    last = given["seed"] + given["repeat"] - 1
    if last > SEED_MAX:
        raise InputError(
            f"seed = {given['seed']} with repeat = {given['repeat']}: the last seed is above {SEED_MAX}"
        )
    kept = ("energy", "repetitions", "limit_s", "check")
    return Wanted(
        each_of(machine),
        each_of(workload),
        each_of(policies),
        axes,
        {name: value for name, value in given.items() if name in kept},
        given["core_order"],
        range(given["seed"], last + 1),
        tuple(str(Path(file).absolute()) for file in files),
        sample,
        sample_seed,
    )


class Store(Protocol):
    """Where results are kept."""

    def keys(self) -> set[str]:
        """Keys of the results that are there."""

    def add(self, rows: "Sequence[Row]") -> None:
        """Adds results."""

    def merge(self) -> "polars.DataFrame":
        """All results."""


def store_of(folder: str | Path | None) -> Store:
    """The results in a folder, or of this process alone.

    Raises:
        InputError: If it is a folder of something else.
        OSError: If it can't be made or written to.
    """
    from ampsched.sweeps.folder import Folder

    return _Memory() if folder is None else Folder(Path(folder))


def run_plan(
    whole: Plan,
    store: Store,
    executor: Executor | None = None,
    jobs: int = 0,
    progress: Progress | None = None,
) -> "Sweep":
    """Simulates what is missing of a plan; see `sweep`."""
    from ampsched.sweeps import running
    from ampsched.sweeps.result import result_of

    there = store.keys()
    missing = list({point.key: point for point in whole.points if point.key not in there}.values())
    running.run(whole, missing, store.add, executor=executor, jobs=jobs, progress=progress)
    return result_of(whole, store.merge(), len(missing))


class _Memory:
    """Results that nobody keeps."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}

    def keys(self) -> set[str]:
        return set(self._rows)

    def add(self, rows: "Sequence[Row]") -> None:
        self._rows |= {row["key"]: row for row in rows}

    def merge(self) -> "polars.DataFrame":
        from ampsched.sweeps.folder import frame_of

        return frame_of(list(self._rows.values()))


def each_of(value: Any) -> list[Any]:  # noqa: ANN401
    """A list of one or several."""
    return list(value) if isinstance(value, list | tuple) else [value]
