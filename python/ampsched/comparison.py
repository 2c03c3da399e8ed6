"""Results of comparing policies."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ampsched import curves, timeliness
from ampsched.decisive import SLOWDOWN as SLOWDOWN
from ampsched.decisive import TURNAROUND as TURNAROUND
from ampsched.decisive import WORK_DONE as WORK_DONE
from ampsched.decisive import Decisive as Decisive
from ampsched.decisive import Value as Value
from ampsched.decisive import h_antt as h_antt
from ampsched.decisive import h_stp as h_stp
from ampsched.decisive import instructions as instructions
from ampsched.decisive import latency_p99_ms as latency_p99_ms
from ampsched.decisive import longest_wait_ms as longest_wait_ms
from ampsched.decisive import makespan_ms as makespan_ms
from ampsched.decisive import missed as missed
from ampsched.decisive import time_text as time_text
from ampsched.decisive import waiting_ms as waiting_ms
from ampsched.execution import Run
from ampsched.limits import Distance
from ampsched.parameters import Parameters
from ampsched.parameters import Value as Parameter
from ampsched.run_rows import app_rows, has_periods, keys_of
from ampsched.run_rows import run_row as run_row
from ampsched.statistics import Estimate, estimate
from ampsched.uncertainty import MARGIN, NO_BASIS, Verdict, judge, no_basis, sentences

if TYPE_CHECKING:
    import pandas
    import polars

    from ampsched.recording.conditions import Conditions
    from ampsched.recording.mixed import MixConditions

CASE = ("machine", "workload", "policy")
"""What says what a row is of."""


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """One policy on one workload and machine: means over core orders, estimates over seeds."""

    machine: str
    workload: str
    policy: str
    h_antt: Estimate
    h_stp: Estimate
    h_antt_change: Estimate
    """Relative to the first policy: -0.1 is 10 % lower (better)."""
    h_stp_change: Estimate
    """Relative to the first policy: 0.1 is 10 % higher (better)."""
    makespan_ms: Estimate
    instructions: Estimate
    """Work done; it differs between policies if a program is stopped by time."""
    instructions_change: Estimate
    """Relative to the first policy: 0.1 is 10 % more."""
    waiting_ms: float
    """Mean time of a thread in run queues."""
    longest_wait_ms: float
    """Longest stay of a thread in a run queue, mean over the runs."""
    latency_p99_ms: Estimate
    """99th percentile of wake-up latencies of all threads."""
    latency_p99_change: Estimate
    """Relative to the first policy: -0.1 is 10 % shorter."""
    missed: Estimate | None
    """Missed deadlines; None if no thread has periods."""
    unfairness: float
    uniformity: float
    utilisation: float
    switches: float
    migrations: float
    energy_j: Estimate | None
    """If it was accounted for."""
    energy_change: Estimate | None
    """Relative to the first policy: -0.1 is 10 % less."""
    edp_js: Estimate | None
    """Energy x makespan."""
    h_antt_limit: float | None
    """H_ANTT below which no policy gets; mean over the runs, as all limits."""
    h_stp_limit: float | None
    """H_STP above which no policy gets."""
    makespan_limit_ms: float | None
    """Makespan below which no policy gets."""
    distance: Distance | None
    """How far it is from these limits, mean over the runs; none if they were not computed or say nothing."""


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """All runs of a comparison; the first policy is the one that others are measured against."""

    policies: tuple[str, ...]
    runs: tuple[Run, ...]
    notes: tuple[str, ...] = ()
    """What a reader must know of how it was run."""
    recorded: "Mapping[tuple[str, str], Conditions | MixConditions]" = field(
        default_factory=dict, compare=False
    )
    """By machine and workload, recordings: named by their files, or in workload files."""
    margin: float = MARGIN
    """By how much worse than the best others may be and still count as no worse: 0.01 is 1 %."""
    over: str | None = None
    """The column of the parameter that was asked for, see `ampsched.parameters`."""

    def __repr__(self) -> str:
        """A line; `summary`, `to_dict` and `to_polars` show everything."""
        return f"<Comparison of {', '.join(self.policies)}: {len(self.runs)} runs>"

    def _repr_html_(self) -> str:
        from ampsched.report import notebook

        return notebook.comparison(self)

    def select(self, machine: str, workload: str, policy: str) -> list[Run]:
        """The runs of one policy on one workload and machine: all core orders and seeds."""
        wanted = (machine, workload, policy)
        return [run for run in self.runs if (run.machine, run.workload, run.policy) == wanted]

    def by_case(self) -> dict[tuple[str, str, str], list[Run]]:
        """The runs of each policy on each workload and machine: by machine, workload and policy."""
        found: dict[tuple[str, str, str], list[Run]] = {}
        for run in self.runs:
            found.setdefault((run.machine, run.workload, run.policy), []).append(run)
        return found

    def mixes(self) -> list[tuple[str, str]]:
        """Pairs of machine and workload, in order of appearance."""
        return list(dict.fromkeys((run.machine, run.workload) for run in self.runs))

    def verdict(self, machine: str, workload: str) -> Verdict:
        """What may be said of the best policy of a mix against the first one, see `decisive`."""
        metric = self.decisive(machine, workload)
        draws = {
            policy: per_seed(self.select(machine, workload, policy), metric.value) for policy in self.policies
        }
        conditions = self.recorded.get((machine, workload))
        known = conditions.model_error if conditions else None
        errors = known.of_changes if known else None
        return judge(draws, errors, more_is_better=metric.more_is_better, margin=self.margin)

    @property
    def parameters(self) -> Parameters:
        """The parameters that vary: columns of all tables."""
        machines, workloads = zip(*self.mixes(), strict=True)
        return Parameters.of({"machine": machines, "workload": workloads, "policy": self.policies})

    def panels(self) -> list[curves.Panel]:
        """The results along the parameter that was asked for, or that alone varies."""
        parameters = self.parameters
        column = curves.column_of(parameters, self.over)
        if column is None:
            return []
        return curves.panels([self._case(*key) for key in self.by_case()], parameters, column)

    def _case(self, machine: str, workload: str, policy: str) -> curves.Case:
        runs, metric = self.select(machine, workload, policy), self.decisive(machine, workload)
        work = 0.0 if metric is WORK_DONE else fmean(instructions(run) for run in runs)
        return curves.Case(machine, workload, policy, tuple(per_seed(runs, metric.value)), (), work)

    def told(self, panel: curves.Panel) -> list[str]:
        """What there is to say along a parameter: the best value of each policy, and the best policies."""
        mixes, parameters = panel.mixes(), self.parameters
        doubts = list(dict.fromkeys(doubt for mix in mixes for doubt in self._doubts(*mix)))
        if doubts:
            return [no_basis(doubts)]
        metric = self.decisive(*mixes[0])
        best = curves.best_values(
            panel, metric.name, metric.text, more_is_better=metric.more_is_better, margin=self.margin
        )
        if len(mixes) == 1 or len(self.policies) == 1:
            return [best] if best else []
        verdicts = [(parameters.values(*mix).get(panel.column), self.verdict(*mix)) for mix in mixes]
        known = [(value, verdict) for value, verdict in verdicts if isinstance(value, float)]
        return [*([best] if best else []), curves.best_policies(panel, known)]

    def sentences(self, machine: str, workload: str) -> list[str]:
        """The verdict of a mix in lines, see `ampsched.uncertainty.sentences`."""
        metric, against = self.decisive(machine, workload), self._doubts(machine, workload)
        return sentences(
            self.verdict(machine, workload), workload, machine, metric.name, metric.text, against
        )

    def _doubts(self, machine: str, workload: str) -> list[str]:
        """Why a mix is no basis of advice, a reason each."""
        conditions = self.recorded.get((machine, workload))
        return conditions.against if conditions else []

    def decisive(self, machine: str, workload: str) -> "Decisive":
        """What decides a mix: work done if a duration stops all programs, turnaround of a single one, else H_ANTT."""
        apps = self.select(machine, workload, self.policies[0])[0].outcome.apps
        if self.timed(machine, workload) == [app.name for app in apps]:
            return WORK_DONE
        return TURNAROUND if len(apps) == 1 else SLOWDOWN

    def caveats(self) -> list[str]:
        """What a reader must know before comparing, one sentence each.

        How two threads of a core are modelled, what policies could not do on a machine, and programs that are stopped
        by time, so that their turnaround says nothing.
        """
        smt = [f"{run.machine}: {run.outcome.smt}" for run in self.runs if run.outcome.smt]
        found = ((run.policy, run.machine, run.outcome.caveat) for run in self.runs)
        lacks = [f"{policy} on {machine}: {what}" for policy, machine, what in found if what]
        times = [
            f"{workload} on {machine}: a duration stops {', '.join(apps)} under every policy: compare work done and waiting "
            "(and energy), not H_ANTT, H_STP and makespan"
            for machine, workload in self.mixes()
            if (apps := self.timed(machine, workload))
        ]
        doubts = [
            f"{workload} on {machine}: {NO_BASIS}: {'; '.join(conditions.against)}"
            for (machine, workload), conditions in self.recorded.items()
            if conditions.against
        ]
        return list(dict.fromkeys(doubts + smt + lacks + times))

    def timed(self, machine: str, workload: str) -> list[str]:
        """The applications whose turnaround is the duration that their program states, under every policy."""
        runs = [run for policy in self.policies for run in self.select(machine, workload, policy)]
        apps = enumerate(runs[0].outcome.apps)
        return [app.name for number, app in apps if all(run.timed[number] for run in runs)]

    def summary(self) -> list[SummaryRow]:
        """One row per machine, workload and policy."""
        return [
            self._row(machine, workload, policy)
            for machine, workload in self.mixes()
            for policy in self.policies
        ]

    def _row(self, machine: str, workload: str, policy: str) -> SummaryRow:
        first = self.select(machine, workload, self.policies[0])
        runs = self.select(machine, workload, policy)
        return SummaryRow(
            machine=machine,
            workload=workload,
            policy=policy,
            h_antt=estimate(per_seed(runs, h_antt)),
            h_stp=estimate(per_seed(runs, h_stp)),
            h_antt_change=change(runs, first, h_antt),
            h_stp_change=change(runs, first, h_stp),
            makespan_ms=estimate(per_seed(runs, makespan_ms)),
            instructions=estimate(per_seed(runs, instructions)),
            instructions_change=change(runs, first, instructions),
            waiting_ms=fmean(waiting_ms(run) for run in runs),
            longest_wait_ms=fmean(longest_wait_ms(run) for run in runs),
            latency_p99_ms=estimate(per_seed(runs, latency_p99_ms)),
            latency_p99_change=change(runs, first, latency_p99_ms),
            missed=estimate(per_seed(runs, missed)) if has_periods(runs) else None,
            unfairness=fmean(run.metrics.unfairness for run in runs),
            uniformity=fmean(run.metrics.uniformity for run in runs),
            utilisation=fmean(run.outcome.utilisation for run in runs),
            switches=fmean(run.outcome.counts.switches for run in runs),
            migrations=fmean(run.outcome.counts.migrations for run in runs),
            energy_j=estimate(per_seed(runs, energy_j)) if has_energy(runs) else None,
            energy_change=change(runs, first, energy_j) if has_energy(runs) else None,
            edp_js=estimate(per_seed(runs, edp_js)) if has_energy(runs) else None,
            **_limits(runs),
        )

    def _verdict_row(self, machine: str, workload: str) -> dict[str, Any]:
        verdict, conditions = self.verdict(machine, workload), self.recorded.get((machine, workload))
        known = conditions.model_error if conditions else None
        return {
            "machine": machine,
            "workload": workload,
            "metric": self.decisive(machine, workload).name,
            **dataclasses.asdict(verdict),
            "text": self.sentences(machine, workload),
            "model_error": known.to_dict() if known else None,
        }

    def _with_parameters(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Rows with the columns of parameters behind what they are of."""
        parameters = self.parameters
        return [_behind_keys(row, parameters.values(*(row[key] for key in CASE))) for row in rows]

    def rows(self) -> list[dict[str, Any]]:
        """The summary as rows of a table: with parameters, and the verdict of the row's machine and workload."""
        told = {mix: self._verdict_row(*mix) for mix in self.mixes()}
        found = self._with_parameters([dataclasses.asdict(row) for row in self.summary()])
        for row in found:
            verdict = told[row["machine"], row["workload"]]
            row |= {"verdict": verdict["word"], "verdict_best": verdict["best"]}
            row["verdict_text"] = "; ".join(verdict["text"])
        return found

    def _curves(self) -> list[dict[str, Any]]:
        """The curves as plain values: where the numbers of each point are in the summary."""
        return [
            {
                "name": panel.name,
                "column": panel.column,
                "head": panel.head,
                "told": self.told(panel),
                "lines": [
                    {
                        "policy": line.policy,
                        "points": [
                            {"value": value, **{key: getattr(case, key) for key in CASE}}
                            for value, case in line.points
                        ],
                    }
                    for line in panel.lines
                ],
            }
            for panel in self.panels()
        ]

    def to_polars(self) -> "polars.DataFrame":
        """A data frame with one row per run, and a column for each parameter that varies, such as ``workload:n``."""
        import polars

        rows = self._with_parameters([run_row(run) for run in self.runs])
        return polars.DataFrame(rows, infer_schema_length=None)

    def apps_to_polars(self) -> "polars.DataFrame":
        """A data frame with one row per application of a run."""
        import polars

        return polars.DataFrame([row for run in self.runs for row in app_rows(run)], infer_schema_length=None)

    def threads_to_polars(self) -> "polars.DataFrame":
        """A data frame with one row per thread of a run."""
        import polars

        frames = [
            run.outcome.to_polars().select(
                *(polars.lit(v).alias(k) for k, v in keys_of(run).items()), polars.all()
            )
            for run in self.runs
        ]
        # Machines differ in their classes of cores.
        return polars.concat(frames, how="diagonal_relaxed")

    def latency_to_polars(self) -> "polars.DataFrame":
        """Wake-up latencies of each run: `Outcome.latency_to_polars` with the run's columns before it."""
        return self._timely(timeliness.latency_rows, timeliness.LATENCY_SCHEMA)

    def periods_to_polars(self) -> "polars.DataFrame":
        """Periods of each run: `Outcome.periods_to_polars` with the run's columns before it."""
        return self._timely(timeliness.period_rows, timeliness.PERIOD_SCHEMA)

    def histograms_to_polars(self) -> "polars.DataFrame":
        """Histograms of programs of each run: `Outcome.histograms_to_polars` with the run's columns before it."""
        return self._timely(timeliness.histogram_rows, timeliness.HISTOGRAM_SCHEMA)

    def _timely(
        self, rows_of: Callable[[Sequence[timeliness.Owner]], list[dict[str, Any]]], schema: dict[str, type]
    ) -> "polars.DataFrame":
        import polars

        rows = [{**keys_of(run), **row} for run in self.runs for row in rows_of(run.outcome.owners())]
        keys = {"machine": str, "workload": str, "policy": str, "core_order": str, "seed": int}
        return polars.DataFrame(rows, schema={**keys, **schema})

    def to_pandas(self) -> "pandas.DataFrame":
        """The same as `to_polars` for pandas, which must be installed (``ampsched[pandas]``)."""
        return self.to_polars().to_pandas()

    def to_dict(self) -> dict[str, Any]:
        """Summary and runs as plain values, for JSON."""
        return {
            "policies": list(self.policies),
            "notes": list(self.notes),
            "caveats": self.caveats(),
            "verdicts": [self._verdict_row(*mix) for mix in self.mixes()],
            "parameters": self.parameters.to_list(),
            "curves": self._curves(),
            "summary": self._with_parameters([dataclasses.asdict(row) for row in self.summary()]),
            "runs": self._with_parameters(
                [{**run_row(run), "apps": list(app_rows(run, keys=False))} for run in self.runs]
            ),
        }


def _limits(runs: Sequence[Run]) -> dict[str, Any]:
    """The limits of some runs and their distance from them, for a `SummaryRow`."""
    known = [(run, run.limit) for run in runs if run.limit is not None]
    if len(known) < len(runs):
        return {"h_antt_limit": None, "h_stp_limit": None, "makespan_limit_ms": None, "distance": None}
    distances = [
        Distance.between(limit, h_antt(run), h_stp(run), run.outcome.makespan_ns) for run, limit in known
    ]
    return {
        "h_antt_limit": fmean(limit.h_antt for _, limit in known),
        "h_stp_limit": fmean(limit.h_stp for _, limit in known),
        "makespan_limit_ms": fmean(limit.makespan_ns for _, limit in known) / 1e6,
        "distance": Distance(
            fmean(each.h_antt for each in distances),
            fmean(each.h_stp for each in distances),
            fmean(each.makespan for each in distances),
        ),
    }


def limit_line(rows: Sequence[SummaryRow]) -> str:
    """How far the policies of one mix are from the limit, in a line; empty if that was not computed."""
    distances = [f"{row.policy} {100 * row.distance.h_antt:.0f} %" for row in rows if row.distance]
    if not distances:
        return ""
    return (
        f"limit: H_ANTT {rows[0].h_antt_limit:.3f}, H_STP {rows[0].h_stp_limit:.3f}, "
        f"makespan {rows[0].makespan_limit_ms:.2f} ms; distance of H_ANTT: {', '.join(distances)}"
    )


def has_energy(runs: Sequence[Run]) -> bool:
    """Whether energy was accounted for."""
    return all(run.outcome.energy_j is not None for run in runs)


def energy_j(run: Run) -> float:
    """Energy of a run in J; not a number if it was not accounted for."""
    return math.nan if run.outcome.energy_j is None else run.outcome.energy_j


def edp_js(run: Run) -> float:
    """Energy x makespan of a run in J s; not a number if energy was not accounted for."""
    return math.nan if run.outcome.edp_js is None else run.outcome.edp_js


def per_seed(runs: Sequence[Run], value: Value) -> list[float]:
    """A value of each seed, in ascending order of seeds: the mean over the core orders."""
    by_seed: dict[int, list[float]] = {}
    for run in runs:
        by_seed.setdefault(run.seed, []).append(value(run))
    return [fmean(by_seed[seed]) for seed in sorted(by_seed)]


def change(runs: Sequence[Run], reference: Sequence[Run], value: Value) -> Estimate:
    """Relative change against a reference, paired by seed: 0.1 is 10 % more; 0 against nothing."""
    pairs = zip(per_seed(runs, value), per_seed(reference, value), strict=True)
    return estimate([mine / other - 1.0 if other else 0.0 for mine, other in pairs])


def _behind_keys(row: dict[str, Any], values: Mapping[str, Parameter]) -> dict[str, Any]:
    return {**{key: row[key] for key in CASE}, **values, **row}
