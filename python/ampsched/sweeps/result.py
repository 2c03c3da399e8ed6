"""What a sweep has found: one row per simulation, and what is made of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import polars
from polars import col

from ampsched._core import InputError
from ampsched.parameters import AXES, Parameters, Value, shown, split
from ampsched.statistics import Estimate, t_quantile
from ampsched.sweeps.folder import KEY
from ampsched.sweeps.measures import MEASURES, measure
from ampsched.sweeps.plan import OPTIONS, Known, Plan
from ampsched.uncertainty import MARGIN

if TYPE_CHECKING:
    from ampsched.sweeps.verdicts import Verdicts

PLACE = ("machine", "workload", *OPTIONS)
"""The columns within which policies are compared."""


@dataclass(frozen=True, slots=True, repr=False)
class Sweep:
    """Results of a sweep.

    Attributes:
        frame: One row per simulation, in the order of the sweep. Columns that end in ``_ns`` are in ns, in ``_j`` in J.
        baseline: The policy that others are measured against.
        simulated: How many simulations were run now; the others were there.
        mixes: What is known of the workloads, by names of machine and workload.
        margin: By how much worse than the best others may be and still count as no worse: 0.01 is 1 %.
        over: The column of the parameter that was asked for, see `ampsched.parameters`.
    """

    frame: polars.DataFrame
    baseline: str
    simulated: int
    mixes: Mapping[tuple[str, str], Known] = field(default_factory=dict)
    margin: float = MARGIN
    over: str | None = None

    def __repr__(self) -> str:
        """A line; `frame` and `summary` show everything."""
        return (
            f"<Sweep: {self.frame.height} simulations, {self.simulated} of them new, against {self.baseline}>"
        )

    def failures(self) -> list[str]:
        """What went wrong in simulations that failed, each once."""
        return self.frame["error"].drop_nulls().unique(maintain_order=True).to_list()

    def caveats(self) -> list[str]:
        """What a reader must know: what policies could not do, and programs that are stopped by time."""
        lacks = self.frame.filter(col("caveat").is_not_null()).select("policy", "machine", "caveat")
        timed = self.frame.filter(col("timed")).select("workload", "machine")
        return [
            *(
                f"{policy} on {machine}: {what}"
                for policy, machine, what in lacks.unique(maintain_order=True).rows()
            ),
            *(
                f"{workload} on {machine}: a duration stops programs under every policy: compare work done and waiting, "
                "not H_ANTT, H_STP and makespan"
                for workload, machine in timed.unique(maintain_order=True).rows()
            ),
        ]

    def good(self) -> polars.DataFrame:
        """The simulations that did not fail."""
        return self.frame.filter(col("error").is_null())

    def verdicts(self, metric: str = "h_antt") -> "Verdicts":
        """Which policy is best, by how much, and how sure that is: at each place and over all.

        Args:
            metric: What decides; ``h_antt`` stands for what `compare` judges by: the turnaround of a single program,
                work done where a duration stops all, else H_ANTT.

        Raises:
            InputError: If there is no such metric.
        """
        from ampsched.sweeps.verdicts import Verdicts

        self._check(metric)
        return Verdicts.of(self, metric)

    def summary(self, metrics: Sequence[str] | None = None) -> polars.DataFrame:
        """One row per policy and place (machine, workload, options): means over core orders, intervals over seeds.

        Args:
            metrics: Columns; by default all that were measured.

        Returns:
            For each metric columns ``m`` (mean), ``m_low`` and ``m_high`` (95 %, Student), and ``m_change``,
            ``m_change_low``, ``m_change_high``: the relative change against the baseline at the same place, paired by
            seed (-0.1 is 10 % lower). ``n`` is the number of seeds.

        Raises:
            InputError: If there is no such metric.
        """
        names = self._measured() if metrics is None else list(metrics)
        for name in names:
            self._check(name)
        columns = [each for name in names for each in (name, f"{name}_change")]
        return _estimated(self._paired(names, "left"), [*PLACE, "policy"], columns)

    def best(self, metric: str = "h_antt") -> polars.DataFrame:
        """The row of `summary` with the best mean of a metric, at each place.

        Raises:
            InputError: If there is no such metric.
        """
        lower = measure(metric).lower_is_better
        ordered = (
            self.summary([metric]).drop_nulls(metric).sort(metric, descending=not lower, maintain_order=True)
        )
        places = self.frame.select(PLACE).unique(maintain_order=True)
        best = ordered.unique(PLACE, keep="first", maintain_order=True)
        return places.join(best, on=PLACE, how="inner", nulls_equal=True, maintain_order="left")

    @property
    def varied(self) -> list[str]:
        """The columns of parameters that vary of a machine or a workload: different questions, which have no mean."""
        known, axes = _labels(self.frame), ("machine", "workload")
        values: dict[tuple[str, str, str], set[Value]] = {}
        for (axis, label), each in known.by_label.items():
            for name, value in each.items():
                values.setdefault((axis, split(label)[0], name), set()).add(value)
        several = {name for (axis, _, name), found in values.items() if axis in axes and len(found) > 1}
        return [name for name in known.columns if name in several]

    def ranking(self, metric: str = "h_antt") -> polars.DataFrame:
        """The policies from the best to the worst, by their mean change against the baseline over all places.

        Returns:
            The columns of `varied`, of each combination of which there is a ranking of its own, ``policy``, ``n``
            (seeds), ``places``, the metric's mean ``m`` with ``m_low`` and ``m_high``, and ``m_change``,
            ``m_change_low``, ``m_change_high``. A seed's value is the mean over places; places without a result of the
            baseline are left out.

        Raises:
            InputError: If there is no such metric.
        """
        varied, lower = self.varied, measure(metric).lower_is_better
        descending = [*(False for _ in varied), not lower]
        return self._ranked(metric, varied).sort(
            *varied, f"{metric}_change", descending=descending, maintain_order=True
        )

    def _ranked(self, metric: str, varied: Sequence[str] = ()) -> polars.DataFrame:
        self._check(metric)
        by = [*varied, "policy"]
        values = self.frame.select("machine", "workload", *varied).unique(maintain_order=True)
        changes = self._paired([metric], "inner").drop_nulls(metric).join(values, on=["machine", "workload"])
        columns = [metric, f"{metric}_change"]
        means = changes.group_by(*by, "seed", maintain_order=True).agg(
            *(col(name).mean() for name in columns), places=polars.len()
        )
        places = means.group_by(by, maintain_order=True).agg(col("places").max())
        return _estimated(means, by, columns).join(places, on=by, nulls_equal=True, maintain_order="left")

    def pareto(self, first: str = "h_antt", second: str = "unfairness", *more: str) -> polars.DataFrame:
        """The rows of `summary` that no other of the same place beats in one metric without losing in another.

        Raises:
            InputError: If there is no such metric.
        """
        names = [first, second, *more]
        rows = self.summary(names).drop_nulls(names)
        signs = [1.0 if measure(name).lower_is_better else -1.0 for name in names]
        kept = []
        for _, group in rows.group_by(PLACE, maintain_order=True):
            costs = (group.select(names).to_numpy() * signs).tolist()
            kept.append(group.filter([not any(_beats(other, mine) for other in costs) for mine in costs]))
        return polars.concat(kept) if kept else rows

    def change(self, policy: str, metric: str = "h_antt") -> Estimate:
        """Mean relative change of a policy against the baseline over all places, with its interval over seeds.

        Raises:
            InputError: If there is no such policy or metric.
        """
        found = self._ranked(metric).filter(col("policy") == policy)
        if found.is_empty():
            raise InputError(f'no result of policy "{policy}" can be compared with {self.baseline}')
        row = found.row(0, named=True)
        name = f"{metric}_change"
        return Estimate(row[name], row[f"{name}_low"], row[f"{name}_high"], row["n"])

    def to_dict(self, metric: str = "h_antt") -> dict[str, Any]:
        """Verdicts, summary and simulations as plain values, for JSON.

        Args:
            metric: What verdicts are by, see `verdicts`.

        Raises:
            InputError: If there is no such metric.
        """
        verdicts, keys = self.verdicts(metric), ("machine", "workload", "policy")
        values = verdicts.parameters.values
        return {
            "baseline": self.baseline,
            "simulated": self.simulated,
            **verdicts.to_dict(),
            "caveats": self.caveats(),
            "failures": self.failures(),
            "summary": [
                {**row, **values(*(row[key] for key in keys))} for row in self.summary().iter_rows(named=True)
            ],
            "simulations": self.frame.to_dicts(),
        }

    def _measured(self) -> list[str]:
        return [
            name for name in MEASURES if name in self.frame.columns and self.frame[name].is_not_null().any()
        ]

    def _check(self, metric: str) -> None:
        measure(metric)
        if metric not in self._measured():
            raise InputError(f'metric "{metric}" was not measured (energy needs --energy, or energy=True)')

    def _paired(self, names: Sequence[str], how: Literal["left", "inner"]) -> polars.DataFrame:
        """Means over core orders, with columns ``m_change`` against the baseline's of the same place and seed.

        Args:
            names: Metrics.
            how: Whether what has no result of the baseline is kept (left) or not (inner).
        """
        seeds = self._per_seed(names)
        base = seeds.filter(col("policy") == self.baseline).drop("policy")
        pairs = seeds.join(
            base, on=[*PLACE, "seed"], how=how, suffix="_base", nulls_equal=True, maintain_order="left"
        )
        return pairs.with_columns(_change(name).alias(f"{name}_change") for name in names)

    def _per_seed(self, names: Sequence[str]) -> polars.DataFrame:
        """Means over core orders."""
        return (
            self.good()
            .group_by(*PLACE, "policy", "seed", maintain_order=True)
            .agg(col(name).mean() for name in names)
        )


def _change(name: str) -> polars.Expr:
    """Relative change of a column against the baseline's; 0 against nothing, as `compare` has it."""
    base = col(f"{name}_base")
    return polars.when(base == 0.0).then(0.0).otherwise(col(name) / base - 1.0)


def _estimated(values: polars.DataFrame, by: Sequence[str], columns: Sequence[str]) -> polars.DataFrame:
    """Means and intervals of columns, as `ampsched.statistics.estimate` has them."""
    groups = values.group_by(by, maintain_order=True)
    found = groups.agg(
        polars.len().alias("n"),
        *(col(name).mean() for name in columns),
        *(col(name).std(ddof=1).fill_null(0.0).alias(f"{name}_std") for name in columns),
    )
    quantiles = {n: t_quantile(n - 1) if n > 1 else 0.0 for n in found["n"].unique().to_list()}
    quantile = col("n").replace_strict(list(quantiles), list(quantiles.values()), return_dtype=polars.Float64)
    half = {name: quantile * col(f"{name}_std") / col("n").sqrt() for name in columns}
    return found.select(
        *by,
        "n",
        *(
            each
            for name in columns
            for each in (
                col(name),
                (col(name) - half[name]).alias(f"{name}_low"),
                (col(name) + half[name]).alias(f"{name}_high"),
            )
        ),
    )


def _beats(other: Sequence[float], mine: Sequence[float]) -> bool:
    return other != mine and all(a <= b for a, b in zip(other, mine, strict=True))


def result_of(plan: Plan, rows: polars.DataFrame, simulated: int) -> Sweep:
    """The results of a plan out of all that are known.

    Raises:
        InputError: If every simulation failed.
    """
    wanted = polars.DataFrame({KEY: list(dict.fromkeys(point.key for point in plan.points))})
    frame = wanted.join(rows, on=KEY, how="inner", maintain_order="left")
    result = Sweep(_with_parameters(frame), plan.baseline, simulated, plan.mixes)
    if frame.height and frame["error"].is_not_null().all():
        raise InputError(f"every simulation failed: {result.failures()[0]}")
    return result


def _labels(frame: polars.DataFrame) -> Parameters:
    """The parameters in the names of a sweep's machines, workloads and policies."""
    return Parameters.of({axis: frame[axis].unique(maintain_order=True) for axis in AXES}, all_of=("policy",))


def _with_parameters(frame: polars.DataFrame) -> polars.DataFrame:
    """The frame with a column for each parameter that varies, such as ``colab:decay`` or ``workload:n``."""
    known, cases = _labels(frame), frame.select(AXES).unique()
    rows = [known.values(*labels) for labels in cases.iter_rows()]
    columns = [_series(name, [row.get(name) for row in rows]) for name in known.columns]
    return frame.join(cases.with_columns(columns), on=AXES, how="left", maintain_order="left")


def _series(name: str, values: list[Value]) -> polars.Series:
    """Numbers, or texts where one of them is a text."""
    if any(isinstance(value, str) for value in values):
        return polars.Series(name, [None if value is None else shown(value) for value in values])
    return polars.Series(name, values, polars.Float64)
