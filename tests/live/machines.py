"""The machine in which the tests of this folder run, and the programs that they bring along."""

import os
from pathlib import Path
from typing import Any

from ampsched import Catalog
from ampsched.vm.exact import Exact
from ampsched.vm.exact.costs import SHARES, ClassCosts

ROOT = Path(__file__).resolve().parents[2]
BUILT = Path(os.environ.get("LIVE_PROGRAMS", ROOT / ".build/live"))
"""What ``make test-live`` has built: ``ampsched-live``, ``ampsched-live-scx``, their examples, and ``loads``."""


def two_and_two(**changes: Any) -> Exact:
    """Two big and two little cores; on big ones every kind of instruction takes 2.5 times less.

    They are slow: most tests let cores be busy for some time, whatever is done in it.
    """
    plain = (SHARES,) * 5
    speeds = [ClassCosts(500_000, plain), ClassCosts(200_000, plain)]
    return Exact(Catalog.shipped().machine("2B2S"), speeds=speeds, **changes)
