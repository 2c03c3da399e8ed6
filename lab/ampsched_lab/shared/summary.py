"""What a report begins with: the answer in three sentences and one figure."""

from collections.abc import Sequence

SENTENCES = 3


def opening(sentences: Sequence[str], figure: str, text: str) -> str:
    """The first paragraph and the figure below it, in Markdown.

    Args:
        sentences: Three, of numbers that the report is made of.
        figure: Its file, relative to the page.
        text: What it shows, for those who cannot see it.

    Raises:
        ValueError: If there are more or fewer sentences, or one does not end.
    """
    if len(sentences) != SENTENCES or not all(each.rstrip("*").endswith(".") for each in sentences):
        raise ValueError(f"a report begins with {SENTENCES} sentences, not with {list(sentences)}")
    return f"{' '.join(sentences)}\n\n![{text}]({figure})"


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: 1 program, 2 programs."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
