"""A program's speed-up from runs on each kind of core."""

import json
import os
import re
from pathlib import Path

import pytest

from ampsched import Catalog, InputError
from ampsched._core import CoreKind
from ampsched.cli import main
from ampsched.recording import each_kind, load
from ampsched.recording.each_kind import measure_speedup
from ampsched.recording.speedups import known_speedup

CPUS = sorted(os.sched_getaffinity(0))
FIRST = CoreKind("first", "cortex-a57", CPUS[:1])
LAST = CoreKind("last", "cortex-a53", CPUS[-1:])
SPIN = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done"


def ignore(_text: str) -> None:
    """Steps that nobody hears of."""


def test_the_command_runs_on_each_kind_alone_without_streams(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    steps: list[str] = []
    script = f"grep Cpus_allowed_list /proc/self/status >> {seen}; readlink /proc/self/fd/0 >> {seen}; {SPIN}"
    found = measure_speedup(["sh", "-c", script], [FIRST, LAST], steps.append)
    assert steps == ["once more on first only", "once more on last only"]
    lines = seen.read_text("utf-8").split("\n")
    assert [re.sub(r"\s+", " ", lines[0]), lines[1]] == [f"Cpus_allowed_list: {CPUS[0]}", "/dev/null"]
    assert re.sub(r"\s+", " ", lines[2]) == f"Cpus_allowed_list: {CPUS[-1]}"
    assert found.speedup >= 1
    assert set(found.kinds) == {"cortex-a57", "cortex-a53"}
    assert sorted(os.sched_getaffinity(0)) == CPUS


def test_the_kind_with_more_cpu_time_is_the_slow_one(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 3.0, 3.0, 4.0])
    monkeypatch.setattr(each_kind, "cpu_s_of_children", lambda: next(times))
    found = measure_speedup(["true"], [LAST, FIRST], ignore)
    assert (found.speedup, found.kinds) == (3.0, ("cortex-a57", "cortex-a53"))


@pytest.mark.parametrize(
    ("command", "message"),
    [("exit 3", "sh: ends with exit code 3 on first, without input: no speed-up is measured")],
)
def test_a_command_that_fails_measures_nothing(command: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        measure_speedup(["sh", "-c", command], [FIRST, LAST], ignore)
    assert sorted(os.sched_getaffinity(0)) == CPUS


def test_record_keeps_what_was_measured_and_advice_uses_it_where_the_kinds_are_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(each_kind, "core_kinds", lambda _cpus: [FIRST, LAST])
    out = tmp_path / "r.ampr"
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["record", "--each-kind", "-o", str(out), "--", "sh", "-c", SPIN])
    said = capfd.readouterr().err
    assert re.search(r"times as fast on cortex-a5\d as on cortex-a5\d, by CPU time", said)
    info = json.loads(load(out).info)
    assert info["speedup"] >= 1
    found = known_speedup(info, Catalog.shipped(), "2B2S")
    speedup, known = found.ratio, found.text
    assert speedup == info["speedup"]
    assert known.startswith(f"{speedup:.2f}, measured on cortex-a5")
    assert known_speedup(info, Catalog.shipped(), "exynos5422", usual=1.7).ratio == 1.7


def test_where_all_cores_are_alike_the_command_is_not_even_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(each_kind, "core_kinds", lambda _cpus: [FIRST])
    seen = tmp_path / "seen"
    with pytest.raises(SystemExit, match=r"^2$"):
        main(["record", "--each-kind", "-o", str(tmp_path / "r.ampr"), "--", "touch", str(seen)])
    assert "--each-kind: all cores here are of one kind" in capfd.readouterr().err
    assert not seen.exists()
