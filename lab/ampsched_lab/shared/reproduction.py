"""What every reproduced experiment yields: judged claims, sections of a report, figures, data."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ampsched.files import write_csv, write_parquet, write_text
from ampsched.markdown import page
from ampsched_lab.papers.registry import EXPERIMENTS, Baseline
from ampsched_lab.shared import plots
from ampsched_lab.shared.claims.answer import answer, draw_verdicts
from ampsched_lab.shared.claims.causes import checks_records, checks_section
from ampsched_lab.shared.claims.comparisons import RULE, Verdict
from ampsched_lab.shared.claims.dependence import Dependence, dependence_records, dependence_section
from ampsched_lab.shared.claims.judging import Claim, Judged, judge, wide_claims
from ampsched_lab.shared.claims.reading import Claims
from ampsched_lab.shared.claims.tables import (
    causes_section,
    changes_section,
    claim_records,
    claims_section,
    verdicts,
)
from ampsched_lab.shared.plots import Figure

if TYPE_CHECKING:
    import polars

ANSWER = "How many claims of each figure are reproduced, have the direction, or are missed"
Draw = Callable[[Path], None]
Frame = Callable[[], "polars.DataFrame"]

LEAST_WORDS = 20
"""Letters that say what a figure shows."""


@dataclass(frozen=True, slots=True)
class Reproduction:
    """Results of a paper's experiment, or of a part of it."""

    title: str
    answer: tuple[str, ...]
    """What came out, in a few sentences and a figure; Markdown."""
    introduction: str
    """By which command, with what; Markdown."""
    rules: str
    """How this paper's claims are judged beyond `RULE`; Markdown."""
    claims: Sequence[Judged]
    baseline: Baseline
    depend: Sequence[Dependence]
    """Claims under conditions; none if no condition was run."""
    sections: tuple[str, ...]
    """Markdown that follows the claims; figures are expected beside the report."""
    figures: Mapping[str, Draw]
    """By file name, what draws the file."""
    frames: Mapping[str, Frame]
    """By file name (.parquet), the data."""

    def verdicts(self) -> Counter[Verdict]:
        """How many claims have which verdict."""
        return verdicts(self.claims)

    def records(self) -> list[dict[str, Any]]:
        """The claims as flat records."""
        return claim_records(self.claims)

    def markdown(self) -> str:
        """The report; figures are expected beside it."""
        return page(
            f"# {self.title}",
            *self.answer,
            "## How it was made and judged",
            self.introduction,
            RULE,
            self.rules,
            claims_section(self.claims),
            causes_section(self.claims),
            checks_section(self.claims, self.depend),
            f"## What stands for Linux\n\n`{self.baseline.policy}`. {self.baseline.why}",
            changes_section(self.claims, self.baseline.policy),
            *self.sections,
        )

    def write(self, out: Path) -> list[Path]:
        """Writes report.md, claims.csv, the data and the figures into a folder.

        Returns:
            The files, report first.
        """
        out.mkdir(parents=True, exist_ok=True)
        report, claims = out / "report.md", out / "claims.csv"
        write_text(report, self.markdown())
        write_csv(claims, frame_of_records(self.records()))
        for name, frame in self.frames.items():
            write_parquet(out / name, frame())
        for name, draw in self.figures.items():
            draw(out / name)
        return [report, claims, *(out / name for name in (*self.frames, *self.figures))]


R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Repeats:
    """With how many seeds an experiment is run."""

    least: int
    most: int
    """As many only where an interval is too wide for a verdict with fewer."""

    @classmethod
    def of(cls, repeats: int, most: int | None) -> "Repeats":
        """The least number, and the most, which is the same if it is None."""
        return cls(repeats, max(repeats, most or repeats))

    def until_narrow(
        self,
        run: Callable[[range, Sequence[Claim] | None], R],
        join: Callable[[R, R], R],
        wide: Callable[[R], Sequence[Claim]],
    ) -> tuple[R, int]:
        """Runs twice as many seeds as long as an interval is too wide.

        Args:
            run: Runs some seeds of what claims need, or of everything.
            join: Joins two results.
            wide: The claims that need more seeds.

        Returns:
            The results, and with how many seeds, at most.
        """
        results, count = run(range(1, self.least + 1), None), self.least
        while count < self.most and (claims := wide(results)):
            enough = min(2 * count, self.most)
            results, count = join(results, run(range(count + 1, enough + 1), claims)), enough
        return results, count


def seeds_text(counts: Mapping[str, int]) -> str:
    """Such as ``seeds 1 to 3``, or ``seeds 1 to 3 (fig4) and 1 to 12 (fig5)``.

    Args:
        counts: With how many seeds each part was run, by its name.
    """
    if len(set(counts.values())) == 1:
        return f"seeds 1 to {next(iter(counts.values()))}"
    parts = [f"1 to {count} ({part})" for part, count in counts.items()]
    return f"seeds {', '.join(parts[:-1])} and {parts[-1]}"


class Findings:
    """What the parts of an experiment add to its report, one after the other."""

    def __init__(self, name: str, only: str | None, repeats: Repeats, claims: Claims) -> None:
        """Begins a report.

        Args:
            name: Name of the experiment in the registry.
            only: The part that is run, or None for all.
            repeats: How many seeds.
            claims: The claims of all parts.
        """
        self.figures: dict[str, Draw] = {}
        self.frames: dict[str, Frame] = {}
        most = f" --max-repeats {repeats.most}" if repeats.most > repeats.least else ""
        part = f" --only {only}" if only else ""
        self._command = f"ampsched reproduce {name}{part} --repeats {repeats.least}{most}"
        self._experiment = EXPERIMENTS[name]
        self._claims = claims
        self._judged: list[Judged] = []
        self._sections: list[str] = []
        self._depend: list[Dependence] = []
        self._dependence = ""

    def judge(
        self,
        part: str,
        results: object,
        predicted: object | None = None,
        facts: Mapping[str, object] | None = None,
        stand_ins: Mapping[str, object] | None = None,
    ) -> None:
        """Judges the claims of a part; the arguments are those of `claims.judging.judge`."""
        self._judged += judge(self._claims.of(part), results, predicted, facts, stand_ins)

    def wide(self, part: str, results: object) -> list[Claim]:
        """Claims of a part whose intervals are too wide for a verdict."""
        return wide_claims(self._claims.of(part), results)

    def section(self, title: str, *blocks: str) -> None:
        """Adds a section to the report, of blocks of Markdown."""
        self._sections.append("\n\n".join([f"## {title}", *blocks]))

    def depends(self, found: Sequence[Dependence], conditions: str) -> None:
        """Adds what claims depend on, as a section and as the data file conditions.parquet.

        Raises:
            ValueError: A cause is tested under a condition that was not run.
        """
        for each in found:
            if unknown := set(each.claim.tests) - set(each.results):
                raise ValueError(f"claim {each.claim.id}: there is no condition {min(unknown)!r}")
        self._depend += found
        self._dependence = dependence_section(found, conditions)
        self.keep("conditions", dependence_records(found))

    def draw(self, figure: Figure) -> str:
        """Adds a bar chart and returns its Markdown."""
        title = figure.title
        text = title if len(title) >= LEAST_WORDS else f"{title}: the bars of the paper's figure"
        return self.picture(figure.name, text, partial(plots.draw, figure))

    def picture(self, name: str, title: str, draw: Draw) -> str:
        """Adds the drawing NAME.svg and returns its Markdown."""
        self.figures[f"{name}.svg"] = draw
        return f"![{title}]({name}.svg)"

    def keep(self, name: str, records: Sequence[Mapping[str, Any]]) -> None:
        """Adds flat records as the data file NAME.parquet."""
        self.frames[f"{name}.parquet"] = partial(frame_of_records, records)

    def reproduction(self, introduction: str, how: str = "reproduced in simulation") -> Reproduction:
        """The report.

        Args:
            introduction: What was run, behind the words "Made by" and the command; Markdown.
            how: Its head, behind the paper's name.
        """
        if self._depend and (records := checks_records(self._judged, self._depend)):
            self.keep("causes", records)
        told = answer(self._judged, self._claims.headline, self._depend)
        seen = self.picture("verdicts", ANSWER, partial(draw_verdicts, self._judged)) if told else ""
        return Reproduction(
            answer=(told, seen),
            title=f"{self._experiment.paper}, {how}",
            introduction=f"Made by `{self._command}`{introduction}",
            rules=self._claims.rules,
            claims=self._judged,
            baseline=self._experiment.baseline,
            depend=self._depend,
            sections=tuple(filter(None, (self._dependence, *self._sections))),
            figures=self.figures,
            frames=self.frames,
        )


def frame_of_records(records: Sequence[Mapping[str, Any]]) -> "polars.DataFrame":
    """Flat records as a data frame."""
    import polars

    return polars.DataFrame(records, infer_schema_length=None)
