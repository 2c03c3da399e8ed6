"""``--html`` of every command that compares, and ``ampsched report``."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer._click.globals import get_current_context

from ampsched import api
from ampsched._core import InputError
from ampsched.cli import options, render

if TYPE_CHECKING:
    from ampsched.api import MachineLike, WorkloadLike
    from ampsched.comparison import Comparison
    from ampsched.live import LiveComparison
    from ampsched.policy import PolicyLike
    from ampsched.recording.answer import Advice
    from ampsched.report import Page
    from ampsched.results import Outcome
    from ampsched.settings import CompareSettings, SimulateSettings
    from ampsched.sweeps.result import Sweep
    from ampsched.tasks import TaskSchedule

EXAMPLES = render.examples(
    "ampsched report result.json --html result.html   (what ampsched compare --json has printed)",
    "ampsched report before.json after.json --html both.html",
    "ampsched report out/colab --html colab.html   (the folder of ampsched reproduce)",
)


def command() -> str:
    """The command line that is being executed."""
    arguments: list[str] = get_current_context().find_root().obj
    return shlex.join(["ampsched", *arguments])


def write(html: Path | None, make: "Callable[[], Page | Sequence[Page]]", *, quiet: bool = False) -> None:
    """Writes what a command has found as a page, if that is asked for; says where, on standard error if quiet.

    Args:
        html: The file.
        make: Makes the page.
        quiet: Whether standard output is for something else.
    """
    if html is None:
        return
    from ampsched.report import write as write_page

    write_page(make(), html)
    console = render.errors() if quiet else render.console()
    console.print(f"report written to {html} (open it in any browser)", soft_wrap=True)


def report(
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULT...",
            help="What commands that compare print with --json, in files; folders of ampsched reproduce.",
        ),
    ],
    html: options.Html = None,
) -> None:
    """Turn saved results into one HTML page: the answer first, then what it rests on.

    The page needs no other file.

    Timelines are in the pages of commands that simulate (--html there): saved results don't have them.
    """
    from ampsched.report import saved

    if html is None:
        raise InputError("--html FILE is missing: where the page shall be written")
    pages = [saved.page(path) for path in results]
    write(html, lambda: pages)


def comparison(
    html: Path | None,
    result: "Comparison",
    machines: "Sequence[MachineLike]",
    workloads: "Sequence[WorkloadLike]",
    policies: "Sequence[PolicyLike]",
    settings: "CompareSettings",
    *,
    quiet: bool,
) -> None:
    """The page of ``compare``."""

    def make() -> "Page":
        from ampsched.report import Asked, comparing

        asked = Asked.of(machines, workloads, policies, settings, command())
        buckets = getattr(result, "histograms_to_polars", None)
        return comparing.page(result.to_dict(), asked, buckets().to_dicts() if buckets else ())

    write(html, make, quiet=quiet)


def sweep(html: Path | None, result: "Sweep", metric: str, *, quiet: bool) -> None:
    """The page of ``sweep``."""

    def make() -> "Page":
        from ampsched.report import Asked, sweeping

        return sweeping.page(result.to_dict(metric), Asked(command()))

    write(html, make, quiet=quiet)


def simulation(
    html: Path | None,
    outcome: "Outcome",
    machine: "MachineLike",
    workload: "WorkloadLike",
    policy: "PolicyLike",
    settings: "SimulateSettings",
    *,
    quiet: bool,
) -> None:
    """The page of ``simulate``."""

    def make() -> "Page":
        from ampsched.report import Asked, single

        asked = Asked.of([machine], [workload], [policy], settings, command())
        return single.page(outcome.to_dict(), asked, api.timeline(machine, workload, policy, **settings))

    write(html, make, quiet=quiet)


def advice(html: Path | None, found: "Advice", where: str, *, quiet: bool) -> None:
    """The page of ``advise``."""

    def make() -> "Page":
        from ampsched.report import Asked, advising

        values = found.to_dict() | {"machine": where, "text": found.answer(where)}
        return advising.page(values, Asked(command()), found.comparison.to_dict())

    write(html, make, quiet=quiet)


def live(html: Path | None, result: "LiveComparison", *, quiet: bool) -> None:
    """The page of ``live compare``."""

    def make() -> "Page":
        from ampsched.report import Asked, living

        return living.page(result.to_dict(), Asked(command()))

    write(html, make, quiet=quiet)


def schedules(html: Path | None, made: "Sequence[TaskSchedule]", *, quiet: bool) -> None:
    """The page of ``tasks run`` and ``tasks schedule``."""

    def make() -> "Page":
        from ampsched.report import Asked, tasks

        return tasks.page([each.to_dict() for each in made], Asked(command()), made)

    write(html, make, quiet=quiet)
