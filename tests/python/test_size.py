"""How large the house may be. A change that needs more raises a cap and says why in its commit."""

from tools import size

CAPS = {"product": 173_000, "tests": 76_200, "laboratory": 45_600, "examples": 3_500, "shipped data": 10_400}
"""Lines of sources by room. Aims: 125,000 for the product, 22,000 for the laboratory."""
FILES, SIZE_MB = 2_740, 29.9
"""What is tracked. Aim: 20 MB."""


def test_every_room_keeps_its_cap() -> None:
    lines = size.measure().lines
    assert lines.keys() == CAPS.keys()
    assert {room: f"{lines[room]} > {cap}" for room, cap in CAPS.items() if lines[room] > cap} == {}


def test_what_is_tracked_keeps_its_caps() -> None:
    tracked = size.measure()
    assert tracked.files <= FILES
    assert tracked.size_bytes <= SIZE_MB * 1e6


def test_paths_belong_to_rooms() -> None:
    paths = {
        "crates/sim/src/lib.rs": "product",
        "crates/sim/tests/properties.rs": "tests",
        "crates/policy/src/sched/tests.rs": "tests",
        "crates/live/scx/examples/epoch_cost.rs": "examples",
        "lab/tests/test_claims.py": "laboratory",
        "python/ampsched/data/machines/2B2S.toml": "shipped data",
        "python/ampsched/api.py": "product",
        "tests/python/test_size.py": "tests",
    }
    assert {path: size.room_of(path) for path in paths} == paths
