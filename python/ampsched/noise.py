"""What a system does beside the programs: interrupts and kernel threads, as statistics in a file."""

from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from ampsched._core import DATA_BYTES_MAX, NoiseSources
from ampsched.files import read_text, shown
from ampsched.naming import unknown

FOLDER = files("ampsched") / "data" / "noise"
SUFFIX = ".toml"
NONE = "none"
AUTO = "auto"
"""What fits the workload: see `recording.conditions.noise_beside`."""


def noise_names() -> list[str]:
    """Names of the shipped noise files, in alphabetical order."""
    return sorted(
        entry.name.removesuffix(SUFFIX) for entry in FOLDER.iterdir() if entry.name.endswith(SUFFIX)
    )


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of a system; the default has none.

    Attributes:
        label: Name or path by which it was asked for.
        text: What its file says; two are equal if these are.
    """

    label: str = NONE
    text: str = ""
    _sources: NoiseSources | None = field(default=None, repr=False, compare=False)

    @staticmethod
    def parse(text: str) -> "Noise":
        """Reads ``none``, the name of a shipped file such as ``idle`` or ``busy``, or the path of one (``.toml``).

        ``auto`` has no noise by itself: who knows the workload says what it is.

        Raises:
            InputError: If there is no such name or file, or the file is wrong.
        """
        label = text.strip()
        if label in (NONE, AUTO):
            return Noise(label)
        if label.endswith(SUFFIX):
            said = read_text(Path(label), DATA_BYTES_MAX)
            return Noise(label, said, NoiseSources.parse(shown(label), said))
        names = noise_names()
        if label not in names:
            known = [AUTO, NONE, *names]
            raise unknown(
                "noise", label, known, f"known: {', '.join(known)}; a file of one's own ends in {SUFFIX}"
            )
        said = (FOLDER / f"{label}{SUFFIX}").read_text(encoding="utf-8")
        return Noise(label, said, NoiseSources.parse(f"noise/{label}{SUFFIX}", said))

    @staticmethod
    def of(value: "str | Noise") -> "Noise":
        """From a text, see `parse`; what is not one is returned as it is."""
        return Noise.parse(value) if isinstance(value, str) else value

    def __str__(self) -> str:
        return self.label

    @property
    def sources(self) -> NoiseSources | None:
        """What happens, for the simulator; None without noise."""
        return self._sources
