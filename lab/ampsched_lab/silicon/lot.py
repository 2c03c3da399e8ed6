"""Which chips are for fitting and which judge: ``python -m ampsched_lab.silicon.lot`` draws it, once."""

import random
from collections.abc import Mapping, Sequence

from ampsched_lab.silicon.data import chips, keep, kept

SEED = "silicon 1"


def family(name: str) -> str:
    """The name under which a chip's lot is drawn."""
    return str(chips()[name].get("family", name))


def drawn() -> Mapping[str, Sequence[str]]:
    """The chips of each half, by name."""
    lots = random.Random(SEED)  # noqa: S311 (no secrets)
    fitting: set[str] = set()
    with_coremark = {family(name) for name, chip in chips().items() if "coremark" in chip}
    with_seven_zip = {family(name) for name, chip in chips().items() if "seven_zip" in chip}
    for group in (with_coremark, with_seven_zip - with_coremark):
        names = sorted(group)
        lots.shuffle(names)
        fitting |= set(names[: (len(names) + 1) // 2])
    able = sorted(name for name, chip in chips().items() if {"coremark", "seven_zip"} & set(chip))
    return {
        "fit": [name for name in able if family(name) in fitting],
        "judge": [name for name in able if family(name) not in fitting],
    }


def halves() -> Mapping[str, Sequence[str]]:
    """The lot that was committed."""
    lot: Mapping[str, Sequence[str]] = kept("lot")
    return lot


if __name__ == "__main__":
    keep("lot", drawn())
