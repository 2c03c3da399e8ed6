"""Policies in a real kernel: they load, hold under load, place threads as they say, and let go whatever happens."""

import os
from statistics import fmean

import pytest
from belongings import compiler
from guest import SOURCE_TEXT

# Every order of queues, and the policies of the papers; others can be asked for.
POLICIES = os.environ.get("POLICIES", "cfs,rr,eevdf,a-dwrr,colab,hsp,prop-sp,wash").split(",")
# Time under load per policy; 60 s in the long campaign (make -C lab campaign-live).
SECONDS = os.environ.get("SECONDS_PER_POLICY", "2.4")


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_holds_under_load(in_guest, name: str) -> None:
    found = in_guest("policies", SECONDS, name, files=compiler(SOURCE_TEXT))[name]
    assert found["load_s"] >= 0, found["said"]
    assert found["during"] == ["enabled"] * 4, found["said"]
    assert found["codes"] == [0, 0, 0]
    for program, did in found["programs"].items():
        assert did["codes"] == [0], (program, did)
    assert found["after"] == "disabled"
    assert found["complaints"] == []


def test_who_lets_others_wait_at_a_futex_is_blamed(in_guest) -> None:
    """Waits at a mutex, at one that inherits priority, at a futex to which the waiter was moved; a time-out; a pipe."""
    found = in_guest("futexes")
    assert (found["code"], found["complaints"]) == (0, []), found["said"]
    # Spinners, whom the timer of the time-out interrupts, are among those who are not blamed.
    assert len(found["blame_ms"]) == 15
    blamed = {role: ms for role, ms in found["blame_ms"].items() if ms > 10}
    assert set(blamed) == {"mutex holder", "pi holder", "requeue waker"}, found
    for role, blame_ms in blamed.items():
        least_ms, most_ms = found["waited_ms"][role.split()[0]]
        # The threads' own clocks and the kernel's are read a little apart.
        assert least_ms - 2 < blame_ms < most_ms + 2, (role, found)


@pytest.mark.parametrize("name", ["hsp", "wash"])
def test_placement_follows_labels(in_guest, name: str) -> None:
    """Two programs that gain 3 times and two that gain 10 %, on two big and two little cores."""
    result = in_guest("placement", "1.5", name)[name]
    assert result["load_s"] >= 0, result["said"]
    shares = result["shares_of_big"]
    assert shares == {"gains0": 1, "gains1": 1, "stays0": 0, "stays1": 0}, result


def test_colab_places_by_labels_when_threads_wake(in_guest) -> None:
    """It never leaves a core without work for a label, and moves nobody who goes on running."""
    result = in_guest("bursts", "1.5", "colab")["colab"]
    assert result["load_s"] >= 0, result["said"]
    shares = result["shares_of_big"]
    assert min(shares["gains0"], shares["gains1"]) > max(shares["stays0"], shares["stays1"]), result


def test_prop_sp_favours_who_gains_and_lets_others_in(in_guest) -> None:
    """Credits in proportion to what programs gain: 2, 2, 0.1 and 0.1 of 4.2 on two big cores."""
    # Short periods, so that what is carried over from the start is soon gone.
    name = "prop-sp:period_ms=50:period_min_ms=50:period_max_ms=50"
    result = in_guest("placement", "4", name)[name]
    assert result["load_s"] >= 0, result["said"]
    shares = result["shares_of_big"]
    # Which of two that have gained alike goes on is nobody's promise. Credits of a period may be open at each end.
    for names, expected in ((("gains0", "gains1"), 0.952), (("stays0", "stays1"), 0.048)):
        own = [shares[name] for name in names]
        assert fmean(own) == pytest.approx(expected, abs=2 * 0.05 / 4), result
        assert own == pytest.approx([expected] * 2, abs=0.06), result


def test_the_loader_may_be_killed(in_guest) -> None:
    found = in_guest("faults", "killed-loader")["killed-loader"]
    assert 0 <= found["gone_s"] < 0.2
    assert found["code"] == 0
    assert (found["after"], found["complaints"]) == ("disabled", [])


def test_an_epoch_that_hangs_ends_the_scheduler(in_guest) -> None:
    found = in_guest("faults", "hanging-epoch")["hanging-epoch"]
    # The limit is 5 s; the rest is how long the guest takes to look and to let the scheduler go.
    assert 5 <= found["gone_s"] < 5.2
    assert found["code"] == 0
    assert found["after"] == "disabled"
    assert any("sign of life" in line or "scx_bpf_error" in line for line in found["complaints"])


OVERFLOWS = pytest.mark.xfail(
    strict=False,
    reason="an open fault: in some orders of events the mirror's sum of virtual run times overflows while cores go "
    "(policy/src/sched/time.rs, place_vruntime), and a loader with checks ends; any change of the program's timing "
    "shows or hides it",
)


@pytest.mark.parametrize("name", ["rr", "cfs", pytest.param("colab", marks=OVERFLOWS), "a-dwrr", "eas"])
def test_cores_may_come_and_go(in_guest, name: str) -> None:
    found = in_guest("cores", "4", name)[name]
    assert found["cycles"] >= 100, found["said"]
    assert (found["code"], found["during"], found["after"], found["complaints"]) == (
        0,
        "enabled",
        "disabled",
        [],
    )
    assert found["is_same"], found["said"]
    # Four threads on four cores.
    assert min(found["ran"]) > 40, found


def test_a_core_of_no_class_ends_the_session_by_name(in_guest) -> None:
    found = in_guest("faults", "unknown-core")["unknown-core"]
    assert (found["code"], found["after"], found["complaints"]) == (3, "disabled", [])
    assert "CPU 3 has come online and is in no class; name it with --big" in found["said"]


def test_threads_may_end_while_they_wait(in_guest) -> None:
    found = in_guest("faults", "killed-while-queued")["killed-while-queued"]
    assert (found["during"], found["after"], found["complaints"]) == ("enabled", "disabled", [])


def test_others_may_change_affinities(in_guest) -> None:
    found = in_guest("faults", "changed-affinities")["changed-affinities"]
    assert found["changes"] > 50
    assert (found["during"], found["after"], found["complaints"]) == ("enabled", "disabled", [])


def test_memory_for_threads_comes_as_they_do(in_guest) -> None:
    found = in_guest("faults", "crowd")["crowd"]
    space_kib, there_kib = found["arena_kib"]
    assert found["crowd"] == "20000 are there\n", found["said"]
    assert (found["during"], found["code"], found["after"], found["complaints"]) == (
        ["enabled"] * 3,
        0,
        "disabled",
        [],
    )
    # Room for 32,000 threads, memory for those that there are.
    assert space_kib > 12_000, found
    assert there_kib < 2_000, found


def test_any_thread_may_execute_a_program(in_guest) -> None:
    found = in_guest("faults", "executing-thread")["executing-thread"]
    assert found["codes"] == [7, 7, 7]
    assert (found["during"], found["after"], found["complaints"]) == ("enabled", "disabled", [])
