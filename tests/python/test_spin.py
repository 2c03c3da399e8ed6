"""Threads that spin before they block: as programs state it, as workloads do, and as Python does."""

from pathlib import Path

import pytest
from conftest import Ampsched

import ampsched

MIX = """\
[workloads.w]
apps = [{{ program = "fft", params = {{ n = 4 }}, spin_us = {{ {spin} }} }}]
"""


def spun_ns(outcome: ampsched.Outcome) -> int:
    return sum(thread.spin_ns for thread in outcome.threads)


def test_a_workload_states_it_for_all_objects_of_a_kind(tmp_path: Path) -> None:
    workload = tmp_path / "w.toml"
    workload.write_text(MIX.format(spin="barrier = 100"))
    stated = ampsched.simulate("2B2S", str(workload), "cfs")
    plain = ampsched.simulate("2B2S", "fft:n=4", "cfs")
    changed = ampsched.Catalog.shipped().workload("fft:n=4").spinning({"barrier": 100.0})
    assert spun_ns(plain) == 0
    assert spun_ns(stated) > 0
    assert ampsched.simulate("2B2S", changed, "cfs").apps == stated.apps
    # A thread that may spin for ever never sleeps at a barrier.
    for_ever = ampsched.Catalog.shipped().workload("fft:n=4").spinning({"barrier": 1e9})
    outcome = ampsched.simulate("2B2S", for_ever, "cfs")
    assert sum(thread.blocked_ns for thread in outcome.threads) == 0


@pytest.mark.parametrize(
    ("spin", "message"),
    [
        ("barrier = -1", "spin_us.barrier: -1 is out of range, 0 to 1e9 is allowed"),
        ("device = 1", 'unknown key "device" (known: mutex, condition, barrier, semaphore, queue, region)'),
    ],
)
def test_nonsense_is_refused(tmp_path: Path, ampsched_here: Ampsched, spin: str, message: str) -> None:
    workload = tmp_path / "w.toml"
    workload.write_text(MIX.format(spin=spin))
    done = ampsched_here("simulate", "-m", "2B2S", "-w", str(workload), "-p", "cfs")
    assert done.code == 2
    assert message in done.err


def test_descriptions_say_it(tmp_path: Path, ampsched_here: Ampsched) -> None:
    program = tmp_path / "p.toml"
    program.write_text(
        "[barriers.b]\nspin_us = 2.5\n[[threads]]\nname = 't'\ncount = 2\nbody = [{ barrier = 'b' }]\n"
    )
    assert "barrier (2 parties), threads spin for 2.5 us: b\n" in ampsched_here("describe", str(program)).out


def test_python_is_told_what_may_spin() -> None:
    workload = ampsched.Catalog.shipped().workload("fft")
    with pytest.raises(ValueError, match='threads cannot spin 5 us at a "device"'):
        workload.spinning({"device": 5.0})
