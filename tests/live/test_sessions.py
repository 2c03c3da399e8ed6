"""Sessions of ``ampsched-live`` in a real kernel: status, stop, trace, whom they take in, what killed ones leave."""

import math
import os
import signal

import pytest

SCHED_EXT = 7
OTHER, FIFO, BATCH = os.SCHED_OTHER, os.SCHED_FIFO, os.SCHED_BATCH
KILLED = 128 + signal.SIGKILL


@pytest.fixture(scope="module")
def sessions(in_guest):
    return in_guest("told", "latency", "command", "processes", "cgroup", "killed", script="guest_sessions.py")


@pytest.fixture(scope="module")
def guarded(in_guest):
    return in_guest("user", "stopped", script="guest_sessions.py")


@pytest.fixture(scope="module")
def programs(in_guest):
    return in_guest("storm", "executed", "daemon", script="guest_sessions.py")


def assert_left_clean(found) -> None:
    """The kernel is its own again; nothing is pinned, frozen, stopped or throttled; it has complained about nothing."""
    assert (found["state"], found["touched"], found["complaints"]) == ("disabled", [], []), found


def test_status_and_stop_know_sessions_in_the_kernel(sessions) -> None:
    found = sessions["told"]
    status = found["status"]
    assert (status["policy"], status["backend"], status["mode"]) == ("colab", "scx", "as written")
    assert [core["cpu"] for core in status["on_cores"]] == [0, 1, 2, 3]
    tids = {thread["tid"] for thread in status["threads"]}
    running = {core["running"] for core in status["on_cores"]} - {None}
    assert running, "somebody runs"
    assert running <= tids, "who runs is one of the threads"
    busiest = max(status["threads"], key=lambda thread: thread["big_s"])
    assert (busiest["program"], busiest["speedup"]) == ("sh", 2.5)
    assert busiest["blame_s"] is not None
    assert found["table"].startswith("colab (scx, as written) on big 0-1, little 2-3"), found["table"]
    assert found["stopped"][:2] == [0, f"stopped: colab (process {status['pid']})\n"]
    assert found["at_end"] == "disabled", "stop returns when the kernel is its own again"
    assert (found["nobody"][0], "no session runs" in found["nobody"][2]) == (2, True)
    assert found["classes"] == [[SCHED_EXT], [OTHER]]
    assert found["code"] == KILLED, "its command goes on and its exit code is passed on"
    assert_left_clean(found)


def test_wakeup_latencies_are_those_of_the_kernels_events(sessions) -> None:
    """Each percentile within 5 % or 20 us: the trace does not begin with the session, and buckets are 0.8 % wide."""
    found = sessions["latency"]
    told, traced_us = found["loads"], sorted(found["traced_us"])
    assert found["lost"] == 0
    assert sum(told["counts"]) == told["count"] >= 100
    assert told["upper_ns"][-1] == told["max_ns"]
    assert told["count"] <= found["all"]["count"]
    # The trace begins a little later than the session, and some of the last events belong to one of both only.
    assert abs(told["count"] - len(traced_us)) <= 0.1 * told["count"]
    for name, part in (("p50_ns", 0.5), ("p95_ns", 0.95), ("p99_ns", 0.99)):
        exact_us = traced_us[math.ceil(part * len(traced_us)) - 1]
        assert told[name] / 1e3 == pytest.approx(exact_us, rel=0.05, abs=20), (name, found)
    assert f"{found['all']['count']} wake-ups, latency p50 " in found["said"]
    assert_left_clean(found)


def test_the_kernel_is_chosen_where_it_can_run_the_policy(sessions) -> None:
    found = sessions["command"]
    assert (found["code"], found["output"]) == (7, "enabled\n"), found
    assert "ampsched-live-scx: colab as written for " in found["errors"]
    assert_left_clean(found)


def test_a_folder_has_one_session_whatever_its_means(sessions) -> None:
    found = sessions["told"]
    expected = f"another session runs (process {found['status']['pid']})"
    for code, errors in ([found["second"][0], found["second"][2]], found["direct"]):
        assert code == 2
        assert expected in errors
        assert len(errors.splitlines()) == 1


def test_trace_and_result_are_written(sessions) -> None:
    found = sessions["told"]
    assert min(found["trace"].values()) > 0, found["trace"]
    result = found["result"]
    assert (result["status"]["backend"], result["threads"] >= 4) == ("scx", True)
    assert result["status"]["overhead"] > 0
    assert len(result["busy_s"]) == 4
    # Both end after the status did; cores are also busy with threads that it did not list.
    threads_s = sum(thread["big_s"] + thread["little_s"] for thread in found["status"]["threads"])
    assert 0 < threads_s <= sum(result["busy_s"]) <= 4 * result["status"]["age_s"], found


def test_processes_are_taken_in_with_all_their_threads_and_put_back(sessions) -> None:
    found = sessions["processes"]
    taken = {"program": [SCHED_EXT], "child": [SCHED_EXT], "batch": [SCHED_EXT]}
    assert found["during"] == taken | {"other": [OTHER], "real": [FIFO]}, found
    assert found["threads"] == [False], "status shows those, and not the other one"
    back = {"program": [OTHER], "child": [OTHER], "batch": [BATCH]}
    assert found["after"] == back | {"other": [OTHER], "real": [FIFO]}, found
    assert_left_clean(found)


def test_a_cgroup_is_taken_in_and_put_back(sessions) -> None:
    found = sessions["cgroup"]
    inside = ("inside", "below", "later")
    outside = {"other": [OTHER]}
    assert found["during"] == {name: [SCHED_EXT] for name in inside} | outside | {"session": [OTHER]}, found
    assert found["after"] == {name: [OTHER] for name in inside} | outside, found
    assert_left_clean(found)


def test_classes_are_put_back_whoever_is_killed(sessions) -> None:
    found = sessions["killed"]
    assert found["replaced"], "a guardian that is killed is replaced"
    assert found["session"], "the guardian puts back"
    assert found["left"], "nobody has yet"
    assert found["both"], "restore does"
    assert "put back: scheduling class of 3 threads" in found["restore"]
    assert_left_clean(found)


def test_a_command_of_another_user_is_scheduled_and_a_manager_hears_of_its_session(guarded) -> None:
    found = guarded["user"]
    nobody, none = 65534, "0" * 16
    for words in (f"it is {nobody}, class {SCHED_EXT}\n", "NoNewPrivs:\t1\n", f"CapEff:\t{none}\n"):
        assert words in found["said"], found
    assert found["told"] == ["READY=1", "WATCHDOG=1", "STOPPING=1"], found
    assert found["code"] == 128 + signal.SIGTERM
    assert_left_clean(found)


def test_a_stopped_session_in_the_kernel_holds_nobody(guarded) -> None:
    found = guarded["stopped"]
    steps = [found[step] for step in ("taken", "back", "left")]
    assert steps == [True] * 3, found
    assert_left_clean(found)


def test_a_storm_of_ten_thousand_processes(programs) -> None:
    found = programs["storm"]
    assert found["code"] == 0
    assert "10000\n" in found["said"], found
    assert_left_clean(found)


def test_a_program_that_executes_another_is_that_one(programs) -> None:
    found = programs["executed"]
    [before], [after] = found["before"], found["after"]
    assert before[:2] == ["bash", 1.1]
    assert after[:2] == ["gains", 3.0]
    assert before[2] == after[2], "the same thread"
    assert found["code"] == KILLED
    assert_left_clean(found)


def test_the_daemon_leaves_nothing_frozen_whoever_is_killed(programs) -> None:
    found = programs["daemon"]
    assert [found[step] for step in ("held", "replaced", "left")] == [True] * 3, found
    assert found["after_session"] == [], "the guardian puts back"
    assert (found["restore"], found["after_both"]) == (0, []), found
    assert_left_clean(found)
