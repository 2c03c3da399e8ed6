"""What every reproduced experiment yields: judged claims, sections of a report, figures, data."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampsched.experiments.claims import (
    RULE,
    Judged,
    Result,
    Verdict,
    causes_of_misses,
    claim_records,
    claims_table,
    verdicts,
)

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
        import polars

        out.mkdir(parents=True, exist_ok=True)
        report, claims = out / "report.md", out / "claims.csv"
        report.write_text(self.markdown(), encoding="utf-8")
        polars.DataFrame(self.records(), infer_schema_length=None).write_csv(claims)
        for name, frame in self.frames.items():
            frame().write_parquet(out / name)
        for name, draw in self.figures.items():
            draw(out / name)
        return [report, claims, *(out / name for name in (*self.frames, *self.figures))]
