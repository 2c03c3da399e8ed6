"""35.6: the number of threads of a lifted program: what it changes, and a second recording that checks it."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Ampsched
from synthetic import MS, Script

from ampsched import simulate
from ampsched.recording import Recording, lift, load
from ampsched.recording.lift import Check, checked
from ampsched.recording.validation import Recorded, validated

SOURCES = Path(__file__).parent / "data/record"
CPP = shutil.which("c++")


def crew(script: Script, works: list[int]) -> None:
    """Thread 0 starts a thread for each of these works, and waits for all of them."""
    children = [script.start() for _ in works]
    for child, work_ns in zip(children, works, strict=True):
        script.work(child, work_ns)
    for child in children:
        script.join(0, child)


def shared(path: Path, n: int, *, rounds: int = 1, command: str = "prog -t {n} file") -> Recorded:
    """n threads that share 24 ms in each round."""
    script = Script()
    for _ in range(rounds):
        script.work(0, MS)
        crew(script, [24 * MS // n] * n)
    return Recorded(path, script.end(path, command.format(n=n)))


def apiece(path: Path, n: int) -> Recorded:
    """n threads of 6 ms each."""
    script = Script()
    crew(script, [6 * MS] * n)
    return Recorded(path, script.end(path, f"prog -t {n} file"))


def odd(path: Path, n: int) -> Recorded:
    """n threads, each of which does the more the more there are."""
    script = Script()
    crew(script, [2 * MS * n] * n)
    return Recorded(path, script.end(path, f"prog -t {n} file"))


def drawn(path: Path, n: int) -> Recorded:
    """n threads that draw 48 pieces of 1 to 3 ms under a mutex."""
    script = Script()
    children = [script.start() for _ in range(n)]
    for piece in range(48):
        free = min(children, key=lambda child: script.clocks[child])
        script.visit(free, MS + 400_000 * (piece % 6))
    for child in children:
        script.visit(child, 0)
        script.join(0, child)
    return Recorded(path, script.end(path, f"prog -t {n} file"))


def visiting(path: Path, n: int) -> Recorded:
    """n threads that share 60 visits of a mutex, with 0.4 ms before each."""
    script = Script()
    children = [script.start() for _ in range(n)]
    for visit in range(60):
        script.visit(children[visit % n], 400_000)
    for child in children:
        script.join(0, child)
    return Recorded(path, script.end(path, f"prog -t {n} file"))


Kind = Callable[[Path, int], Recorded]


@pytest.mark.parametrize("kind", [shared, apiece, drawn, visiting])
@pytest.mark.parametrize(("n", "other"), [(4, 8), (8, 3), (2, 7)])
def test_h35_6_a_second_recording_confirms_the_number(kind: Kind, n: int, other: int, tmp_path: Path) -> None:
    found = validated(kind(tmp_path / "a.ampr", n), kind(tmp_path / "b.ampr", other))
    assert found.threads == n
    line = found.report["notes"][-1]
    assert line.startswith(f"checked against b.ampr ({other} threads): work "), line
    told = found.report["checked_against"]
    assert (told["recording"], told["n"], told["fits"]) == ("b.ampr", other, True)
    with_b = checked(found.toml, 4, n=other)
    b = load(tmp_path / "b.ampr")
    assert sum(with_b.group_ns.values()) == pytest.approx(b.cpu_ns, rel=0.1)


@pytest.mark.parametrize("scaling", [None, "fixed-total", "per-thread"])
def test_h35_6_a_number_that_a_second_recording_contradicts_stays(scaling: object, tmp_path: Path) -> None:
    one, two = odd(tmp_path / "a.ampr", 4), odd(tmp_path / "b.ampr", 8)
    found = validated(one, two, scaling=scaling)  # type: ignore[arg-type]
    assert found.threads is None
    assert '"n' not in found.toml
    line = found.report["notes"][-1]
    assert line.startswith("n stays 4: checked against b.ampr (8 threads): work -"), line
    assert "instead of 128" in line
    assert not found.report["checked_against"]["fits"]
    assert "10% of work and 15% of time are allowed" in line
    assert found.report["lifted_ns"] == pytest.approx(one.recording.cpu_ns, rel=0.01)


def test_h35_6_the_scaling_is_the_one_that_fits(tmp_path: Path) -> None:
    one, two = apiece(tmp_path / "a.ampr", 4), apiece(tmp_path / "b.ampr", 8)
    assert "/ n" not in validated(one, two).toml
    refused = validated(one, two, scaling="fixed-total")
    assert refused.threads is None
    one, two = shared(tmp_path / "c.ampr", 4), shared(tmp_path / "d.ampr", 8)
    assert "/ n" in validated(one, two).toml


def test_h35_6_recordings_that_tell_nothing_are_refused(ampsched_here: Ampsched, tmp_path: Path) -> None:
    a = shared(tmp_path / "a.ampr", 4).path
    wrong = {
        "a recording of tool, not of prog": shared(tmp_path / "b.ampr", 8, command="tool -t {n} file").path,
        "recorded with 4 threads, as ": shared(tmp_path / "c.ampr", 4).path,
        "file and -v and other: only the number": shared(
            tmp_path / "d.ampr", 8, command="prog -t 4 -v other"
        ).path,
        "4 / 8 and file / big": shared(tmp_path / "e.ampr", 8, command="prog -t {n} big").path,
        "No such file": tmp_path / "none.ampr",
    }
    for words, path in wrong.items():
        ended = ampsched_here("lift", str(a), str(path))
        assert ended.code == 2, words
        assert ended.err.count("error:") == 1
        assert str(path) in ended.err.replace("\n", ""), ended.err
        assert words in " ".join(ended.err.split()), ended.err


def test_h35_6_an_option_or_the_environment_may_state_the_number(tmp_path: Path) -> None:
    a = shared(tmp_path / "a.ampr", 4, command="prog file")
    for number, command in enumerate(("prog file", "prog -t 8 file", "prog --threads=8 file")):
        found = validated(a, shared(tmp_path / f"b{number}.ampr", 8, command=command))
        assert found.threads == 4


def test_h35_6_command(ampsched_here: Ampsched, tmp_path: Path) -> None:
    a, b = shared(tmp_path / "a.ampr", 4, rounds=5), shared(tmp_path / "b.ampr", 8, rounds=5)
    ended = ampsched_here("lift", str(a.path), str(b.path), "-o", str(tmp_path / "p.toml"))
    assert ended.code == 0, ended.err
    assert "checked against b.ampr (8 threads): work +" in ended.out
    assert 'times = "n"' in (tmp_path / "p.toml").read_text()


def test_h35_6_a_thread_that_the_simulation_gives_too_much_stays_literal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = drawn(tmp_path / "a.ampr", 4).recording
    right = lift(recording)
    assert not any(group["is_literal"] for group in right.report["groups"])
    assert "dynamic" in right.toml

    def unfair(toml: str, cores: int, policy: str = "linux", n: int | None = None) -> Check:
        found = checked(toml, cores, policy, n)
        share = 0.5 if "dynamic" in toml else 1
        return replace(found, group_ns={name: int(ns * share) for name, ns in found.group_ns.items()})

    monkeypatch.setattr(sys.modules["ampsched.recording.lift"], "checked", unfair)
    found = lift(recording)
    assert [group["is_literal"] for group in found.report["groups"]] == [False, True, True, True, True]
    assert "dynamic" not in found.toml
    assert found.threads is None
    (note,) = (note for note in found.report["notes"] if note.endswith("it stays literal."))
    assert note.startswith("worker would do 49.31 ms in the simulation instead of 96 ms (-49%)"), note


def test_h35_6_a_number_that_loses_work_when_doubled_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def growing(toml: str, cores: int, policy: str = "linux", n: int | None = None) -> Check:
        found = checked(toml, cores, policy, n)
        return found if n is None else replace(found, group_ns={**found.group_ns, "more": 10 * MS})

    monkeypatch.setattr(sys.modules["ampsched.recording.lift"], "checked", growing)
    found = lift(shared(tmp_path / "a.ampr", 4).recording)
    assert found.threads is None
    assert "n stays 4: with n = 8 all threads would do 35" in found.report["notes"][-1]
    assert found.report["lifted_ns"] == pytest.approx(found.report["recorded_ns"], rel=0.01)


def recorded(program: Path, *arguments: str, ampsched: Ampsched, out: Path) -> Recording:
    """Records a program."""
    ended = ampsched("record", "-o", str(out), "--", str(program), *arguments)
    assert ended.code == 0, ended.err
    return load(out)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that starts threads in several ways."""
    if CPP is None:
        pytest.skip("no C++ compiler (c++)")
    program = tmp_path_factory.mktemp("program") / "tasks"
    source = str(SOURCES / "tasks.cpp")
    subprocess.run([CPP, "-std=c++17", "-O1", "-pthread", source, "-o", str(program)], check=True)
    return program


@pytest.mark.parametrize(("way", "tasks"), [("rounds", 15), ("window", 24), ("batches", 18)])
def test_h35_6_real_threads_that_end_have_a_number(
    way: str, tasks: int, program: Path, ampsched_process: Ampsched, tmp_path: Path
) -> None:
    recording = recorded(program, way, "3", ampsched=ampsched_process, out=tmp_path / "a.ampr")
    found = lift(recording)
    assert found.threads == 3, found.toml
    shares = [group for group in found.report["groups"] if "n" in group["count"]]
    assert sum(group["threads"] for group in shares) == tasks, found.toml
    (tmp_path / "a.toml").write_text(found.toml)
    for n in (2, 3, 6):
        assert simulate("2B2S", f"{tmp_path / 'a.toml'}:n={n}", "cfs").makespan_ns > 0
