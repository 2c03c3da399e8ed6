"""`ampsched.optimise`: parameters of a policy, tuned on one set of workloads and judged by another."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ampsched._core import InputError
from ampsched.api import MachineLike, WorkloadLike
from ampsched.execution import Progress
from ampsched.ranges import Range
from ampsched.statistics import Estimate
from ampsched.sweeps.grid import Between, Listed, Pattern
from ampsched.sweeps.measures import measure
from ampsched.sweeps.plan import plan
from ampsched.sweeps.sweep import SweepOptions, each_of, run_plan, store_of, wanted_of

if TYPE_CHECKING:
    import optuna
    import polars

TRIALS_MAX = 100_000


@dataclass(frozen=True, slots=True, repr=False)
class Optimised:
    """What an optimiser has found. Changes are relative, against the baseline; -0.1 is 10 % lower.

    Attributes:
        policy: The best policy of the training set, with its parameters.
        metric: What was optimised.
        baseline: The policy that all are measured against.
        train: Its change on the training set.
        test: Its change on the test set, which the optimiser has not seen: the one to trust.
        default: The same policy without the parameters that were searched: with their defaults.
        default_train: Its change on the training set.
        default_test: The same on the test set.
        trials: One row per trial: its number, policy and change on the training set.
    """

    policy: str
    metric: str
    baseline: str
    train: Estimate
    test: Estimate
    default: str
    default_train: Estimate
    default_test: Estimate
    trials: "polars.DataFrame"

    def __repr__(self) -> str:
        """A line."""
        return (
            f"<Optimised: {self.policy}, {self.metric} {100 * self.train.mean:+.1f} % in training, "
            f"{100 * self.test.mean:+.1f} % in the test, against {self.baseline}>"
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        shown = ("train", "test", "default_train", "default_test")
        return {
            "policy": self.policy,
            "metric": self.metric,
            "baseline": self.baseline,
            "default": self.default,
            **{name: _plain(getattr(self, name)) for name in shown},
            "trials": self.trials.to_dicts(),
        }


def _plain(value: Estimate) -> dict[str, float]:
    return {"mean": value.mean, "low": value.low, "high": value.high, "n": value.n}


def optimise(
    machine: MachineLike | Sequence[MachineLike],
    policy: str,
    *,
    train: WorkloadLike | Sequence[WorkloadLike],
    test: WorkloadLike | Sequence[WorkloadLike],
    trials: int = 50,
    metric: str = "h_antt",
    baseline: str = "linux",
    optimiser_seed: int = 1,
    folder: str | Path | None = None,
    executor: Executor | None = None,
    jobs: int = 0,
    files: Sequence[str | Path] = (),
    progress: Progress | None = None,
    **options: Unpack[SweepOptions],
) -> Optimised:
    """Searches the parameters of a policy that are best on a training set, and tries them on a test set.

    The optimiser is Optuna's (TPE), which must be installed (``ampsched[optimise]``). It minimises, or maximises, the
    mean change of a metric against the baseline over the training workloads, machines and seeds. The test set has
    other workloads and other seeds: those that follow. The same arguments give the same result.

    Args:
        machine: One or several; see `simulate`.
        policy: With ranges: ``"colab:decay=0.5..1.0:epoch_ms=5/10/20"``.
        train: Workloads to tune on.
        test: Workloads to judge by.
        trials: How many parameters are tried.
        metric: See `Sweep.summary`.
        baseline: The policy to measure against.
        optimiser_seed: Seed of the search.
        folder: See `sweep`: what is there is not run again.
        executor: See `sweep`.
        jobs: See `sweep`.
        files: See `sweep`.
        progress: Called with the number of finished trials and of all.
        **options: See `sweep`.

    Raises:
        InputError: As for `sweep`; or the policy has no range, a workload is in both sets, or Optuna is missing.
    """
    optuna = _optuna()
    Range(1, TRIALS_MAX).check("trials", trials)
    direction = "minimize" if measure(metric).lower_is_better else "maximize"
    pattern = Pattern.of(policy, "policy")
    if not pattern.values:
        raise InputError(f'policy "{policy}" has no range to search, such as {policy}:parameter=0.5..1.0')
    both = [str(each) for each in each_of(train) if each in each_of(test)]
    if both:
        raise InputError(f'workload "{both[0]}" is in the training set and in the test set')

    repeat = options.get("repeat", 1)
    later = SweepOptions(**{**options, "seed": options.get("seed", 1) + repeat})

    store = store_of(folder)

    def change(of: str, workloads: Any, how: SweepOptions) -> Estimate:  # noqa: ANN401
        wanted = wanted_of(machine, workloads, [baseline, of], files, None, 1, how)
        return run_plan(plan(wanted), store, shared, jobs).change(of, metric)

    study = optuna.create_study(direction=direction, sampler=optuna.samplers.TPESampler(seed=optimiser_seed))
    rows: list[dict[str, Any]] = []
    named = [each_of(machine), each_of(train), each_of(test)]
    can_be_sent = all(isinstance(each, str | Path) for group in named for each in group)
    with _shared(executor, jobs if can_be_sent else 1) as shared:
        for number in range(trials):
            trial = study.ask()
            gaps = zip(pattern.keys, pattern.values, strict=True)
            tried = pattern.filled([_suggested(trial, key, value) for key, value in gaps])
            found = change(tried, train, options)
            study.tell(trial, found.mean)
            rows.append(
                {"trial": number, "policy": tried, "change": found.mean, "low": found.low, "high": found.high}
            )
            if progress:
                progress(number + 1, trials)
        best, default = rows[study.best_trial.number]["policy"], _without(pattern)
        changes = [
            change(each, *how) for each in (best, default) for how in ((train, options), (test, later))
        ]
    import polars

    return Optimised(
        best,
        metric,
        baseline,
        changes[0],
        changes[1],
        default,
        changes[2],
        changes[3],
        polars.DataFrame(rows),
    )


@contextmanager
def _shared(executor: Executor | None, jobs: int) -> Iterator[Executor | None]:
    """Processes that all trials share, as starting them takes longer than many a trial; none for one processor."""
    from ampsched.sweeps import running

    processes = jobs or os.cpu_count() or 1
    if executor is not None or processes == 1:
        yield executor
        return
    with running.workers(processes) as own:
        yield own


def _optuna() -> Any:  # noqa: ANN401 (a module)
    try:
        import optuna
    except ImportError:
        raise InputError("optimising needs Optuna: pip install 'ampsched[optimise]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _suggested(trial: "optuna.Trial", key: str, value: object) -> str:
    """The text of a parameter's value."""
    if isinstance(value, Between):
        return f"{trial.suggest_float(key, value.low, value.high):.4g}"
    assert isinstance(value, Listed), "there are two kinds"
    return str(trial.suggest_categorical(key, value.texts))


def _without(pattern: Pattern) -> str:
    """The policy without the parameters that are searched: with their defaults."""
    tails = [f":{key}=" for key in pattern.keys]
    heads = [part.removesuffix(tail) for part, tail in zip(pattern.parts, [*tails, ""], strict=True)]
    return "".join(heads)
