"""What every reproduced experiment yields: judged claims, sections of a report, figures, data."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampsched.experiments import plots
from ampsched.experiments.claims import (
    RULE,
    Claim,
    Judged,
    Result,
    Verdict,
    causes_of_misses,
    claim_records,
    claims_table,
    verdicts,
)
from ampsched.experiments.colab_figures import Figure

if TYPE_CHECKING:
    import polars

Draw = Callable[[Path], None]
Frame = Callable[[], "polars.DataFrame"]


@dataclass(frozen=True, slots=True)
class Reproduction:
    """Results of a paper's experiment, or of a part of it."""

    title: str
    introduction: str
    """By which command, with what; Markdown."""
    rules: str
    """How this paper's claims are judged beyond `RULE`; Markdown."""
    claims: Judged
    sections: tuple[str, ...]
    """Markdown that follows the claims; figures are expected beside the report."""
    figures: Mapping[str, Draw]
    """By file name, what draws the file."""
    frames: Mapping[str, Frame]
    """By file name (.parquet), the data."""
    predicted: tuple[Result | None, ...] = field(default=())
    """The claims anew, with speed-ups predicted from counters instead of exact ones, if that was done; None where speed-ups play no
    part."""

    def verdicts(self) -> Counter[Verdict]:
        """How many claims have which verdict."""
        return verdicts(self.claims)

    def records(self) -> list[dict[str, Any]]:
        """The claims as flat records."""
        return claim_records(self.claims, self.predicted)

    def markdown(self) -> str:
        """The report; figures are expected beside it."""
        counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(self.verdicts().items()))
        blocks = [
            f"# {self.title}",
            self.introduction,
            f"**Verdicts:** {counts}." if counts else "",
            RULE,
            self.rules,
            claims_table(self.claims, self.predicted),
            causes_of_misses(self.claims),
            *self.sections,
        ]
        return "\n\n".join(block for block in blocks if block) + "\n"

    def write(self, out: Path) -> list[Path]:
        """Writes report.md, claims.csv, the data and the figures into a folder.

        Returns:
            The files, report first.
        """
        out.mkdir(parents=True, exist_ok=True)
        report, claims = out / "report.md", out / "claims.csv"
        report.write_text(self.markdown(), encoding="utf-8")
        frame_of_records(self.records()).write_csv(claims)
        for name, frame in self.frames.items():
            frame().write_parquet(out / name)
        for name, draw in self.figures.items():
            draw(out / name)
        return [report, claims, *(out / name for name in (*self.frames, *self.figures))]


class Findings:
    """What the parts of an experiment add to its report, one after the other."""

    def __init__(self) -> None:
        self.claims: list[Claim] = []
        self.sections: list[str] = []
        self.figures: dict[str, Draw] = {}
        self.frames: dict[str, Frame] = {}

    def draw(self, figure: Figure) -> str:
        """Adds a bar chart and returns its Markdown."""
        self.figures[f"{figure.name}.svg"] = partial(plots.draw, figure)
        return f"![{figure.title}]({figure.name}.svg)"

    def keep(self, name: str, records: Sequence[Mapping[str, Any]]) -> None:
        """Adds flat records as the data file NAME.parquet."""
        self.frames[f"{name}.parquet"] = partial(frame_of_records, records)

    def reproduction(self, title: str, introduction: str, rules: str) -> Reproduction:
        """The report, with the claims judged."""
        return Reproduction(
            title=title,
            introduction=introduction,
            rules=rules,
            claims=tuple((claim, claim.measure()) for claim in self.claims),
            sections=tuple(self.sections),
            figures=self.figures,
            frames=self.frames,
        )


def command_of(paper: str, only: str | None, repeats: int) -> str:
    """The command that makes a report."""
    return f"ampsched reproduce {paper}{f' --only {only}' if only else ''} --repeats {repeats}"


def frame_of_records(records: Sequence[Mapping[str, Any]]) -> "polars.DataFrame":
    """Flat records as a data frame."""
    import polars

    return polars.DataFrame(records, infer_schema_length=None)
