"""Wrappers that take a program's place: what they pass on, what they leave to the caller, and whom they would harm."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ampsched import InputError
from ampsched.cli.keeping import Keeping, tell_of_wrapper
from ampsched.cli.recording import record
from ampsched.keeping import applied, places
from ampsched.keeping.applied import all_applied, apply
from ampsched.keeping.places import Place, place_of
from ampsched.recording.cores import Cores
from ampsched.recording.setting import Setting

CPUS = sorted(os.sched_getaffinity(0))
FIRST = Cores("one core", (CPUS[0],))
SETTING = Setting(threads=4, cores=FIRST, environment=(("V", "4"),))
SHOW = (
    f"#!{sys.executable}\nimport os, sys\n"
    "print(sys.argv[1:], os.environ.get('V'), os.environ.get('ampsched_word'), sorted(os.sched_getaffinity(0)))\n"
)
YES = Keeping(apply=True, to=None, undo=False, yes=True)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, with a program in PATH behind the wrappers."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", f"{tmp_path}/.local/bin:{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.delenv("V", raising=False)
    monkeypatch.setattr(applied, "STATE_OF_ROOT", tmp_path / "state")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    a_program(tmp_path / "bin/prog")
    return tmp_path


def a_program(path: Path) -> None:
    path.write_text(SHOW)
    path.chmod(0o755)


def applied_to(command: list[str], setting: Setting = SETTING) -> Place:
    place = place_of(None, command)
    apply(place, place.text(setting))
    return place


def ran(*words: str, **environment: str) -> str:
    done = subprocess.run(
        words, env=os.environ | environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == ""
    return done.stdout.removesuffix("\n")


def test_arguments_stay_as_they_are_and_in_order() -> None:
    applied_to(["prog", "build", "-v"])
    words = ["build", "-v", "a b", "", "$HOME", "*", "-j", "9", "--", "-x\ny", "'"]
    assert ran("prog", *words) == f"{words} 4 None {list(FIRST.cpus)}"
    assert ran("prog") == f"[] 4 None {list(FIRST.cpus)}"


def test_names_of_any_bytes_are_kept(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = os.fsdecode(b"-od'd \xff\n$HOME `id` {threads} \"*")
    a_program(home / "bin" / name)
    YES.keep(YES.place([str(home / "bin" / name), "-j", "{threads}"], None), [SETTING])
    assert ran(str(home / ".local/bin" / name), "x").startswith("['-j', '4', 'x'] 4 ")
    Keeping(apply=False, to=None, undo=True, yes=True).take_back([name])
    assert not (home / ".local").exists()
    assert capsys.readouterr().err.count("run it as") == 1


@pytest.mark.parametrize(
    ("options", "added", "own"),
    [
        (["-j", "{threads}"], ["-j", "4"], [["-j", "8"], ["-j8"], ["in", "-j8"]]),
        (["-j{threads}"], ["-j4"], [["-j", "8"], ["-j8"]]),
        (["--threads={threads}"], ["--threads=4"], [["--threads=2"], ["x", "--threads", "2"]]),
        (["--threads", "{threads}"], ["--threads", "4"], [["--threads=2"], ["--threads", "2"]]),
        (["-threads", "{threads}"], ["-threads", "4"], [["-threads", "2"]]),
        (["-t", "{threads}", "--n={threads}"], ["-t", "4", "--n=4"], [["-t1"], ["--n=3"], ["--n", "3"]]),
    ],
)
def test_the_callers_number_of_threads_goes_before_the_wrappers(
    options: list[str], added: list[str], own: list[list[str]]
) -> None:
    applied_to(["prog", *options, "build"])
    for words in (["build"], ["--", "-j8", "-t1", "--threads=2"], ["--threadsafe", "-v"], []):
        assert ran("prog", *words).startswith(str([*added, *words]))
    for words in own:
        assert ran("prog", *words).startswith(f"{words} ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["build", "-j", "{threads}"],
        ["-v", "-j", "{threads}"],
        ["--", "-j", "{threads}"],
        ["{threads}", "in"],
        ["-o", "out.{threads}"],
        ["-oout.{threads}"],
        ["-j", "{threads}", "in.{threads}"],
        ["--out=x{threads}"],
    ],
)
def test_options_that_would_change_their_place_are_refused_but_not_in_a_script(arguments: list[str]) -> None:
    with pytest.raises(InputError, match=r"only as an option directly behind prog.*--to FILE"):
        place_of(None, ["prog", *arguments])
    place = place_of("script", ["prog", *arguments])
    apply(place, place.text(SETTING))
    words = [word.replace("{threads}", "4") for word in arguments]
    assert ran("./script", "more", V="1") == f"{[*words, 'more']} 4 None {list(FIRST.cpus)}"


def test_variables_and_cores_of_the_caller_go_before_the_wrappers() -> None:
    applied_to(["prog"])
    assert ran("prog", V="2", ampsched_word="mine") == f"[] 2 mine {list(FIRST.cpus)}"
    assert ran("prog", V="").startswith("[]  None")
    if len(CPUS) < 2:
        pytest.skip("one core")
    assert ran("taskset", "--cpu-list", str(CPUS[1]), "prog") == f"[] 4 None [{CPUS[1]}]"
    Keeping(apply=False, to=None, undo=True, yes=True).take_back(["prog"])
    place = applied_to(["prog", "-j", "{threads}"])
    assert ran("taskset", "--cpu-list", str(CPUS[1]), "prog").endswith(f"[{CPUS[1]}]")
    assert "ampsched_word" in place.text(SETTING)
    assert ran("prog", "x", ampsched_word="mine").startswith("['-j', '4', 'x'] 4 ")


def test_exit_codes_signals_and_streams_are_the_programs(home: Path) -> None:
    (home / "bin/prog").write_text("#!/bin/sh\ncat; echo bad >&2; [ $1 = kill ] && kill -TERM $$; exit $1\n")
    applied_to(["prog"])
    done = subprocess.run(["prog", "7"], input=b"in", capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, b"in", b"bad\n")
    assert subprocess.run(["prog", "kill"], input=b"", timeout=60, check=False).returncode == -15
    shutil.rmtree(home / "bin")
    done = subprocess.run(["prog"], capture_output=True, timeout=60, check=False)
    assert done.returncode == 127


def test_it_runs_although_it_cannot_have_its_cores() -> None:
    applied_to(["prog"], Setting(cores=Cores("none", (9000,))))
    done = subprocess.run(["prog", "x"], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == f"['x'] None None {CPUS}\n"
    assert "taskset" in done.stderr


def test_how_it_is_run_follows_from_the_order_in_path(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    then = place_of(None, ["prog"]).then
    assert then.startswith(f"run it as: prog ({home}/bin/prog, aliases and functions of a shell go past it")
    assert "hash -r" in then
    monkeypatch.setenv("PATH", f"{home}/bin:{home}/.local/bin")
    then = place_of(None, ["prog"]).then
    assert then == f"run it as: {home}/.local/bin/prog (PATH has {home}/bin before {home}/.local/bin)"
    monkeypatch.setenv("PATH", f"{home}/bin")
    assert place_of(None, ["prog"]).then.endswith(f"({home}/.local/bin is not in PATH)")
    assert place_of("w", ["prog"]).then == f"run it as: {home}/w"


def test_a_wrapper_runs_neither_itself_nor_another_one(home: Path) -> None:
    applied_to(["prog"])
    assert ran("prog").startswith("[]")
    for to in (None, str(home / ".local/bin/prog")):
        with pytest.raises(InputError, match=r"is the program itself, or its wrapper .*--undo prog"):
            place_of(to, ["prog"])
    for to in (None, "another"):
        with pytest.raises(
            InputError, match=r"prog: is the wrapper .*prog of --apply \(take that back first: "
        ):
            Keeping(apply=True, to=to, undo=False, yes=True).place(["prog"], None)
    os.link(home / "bin/prog", home / "linked")
    with pytest.raises(InputError, match="is the program itself"):
        place_of("linked", [str(home / "bin/prog")])


def test_whoever_records_through_a_wrapper_is_told(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    tell_of_wrapper("prog")
    assert capsys.readouterr().err == ""
    applied_to(["prog"])
    asks_only = Keeping(apply=False, to=None, undo=False, yes=False)
    assert asks_only.place(["prog"], None) is None
    told = capsys.readouterr().err
    assert told.startswith(f"note: prog is the wrapper {home}/.local/bin/prog of ampsched advise --apply")
    assert f"ampsched advise --undo {home}/.local/bin/prog" in told
    with pytest.raises(InputError, match="no such folder"):
        record(["prog"], out=home / "none/x.ampr")
    assert capsys.readouterr().err == told
    tell_of_wrapper(str(home / "bin/prog"))
    assert capsys.readouterr().err == ""


def test_a_wrapper_that_is_not_advised_any_more_is_named_and_taken_back(
    capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    program, wrapper = str(home / "bin/prog"), home / ".local/bin/prog"
    YES.keep(place_of(None, [program]), [SETTING])
    YES.keep(place_of(None, [program]), [Setting(cores=FIRST)])
    asks = Keeping(apply=True, to=None, undo=False, yes=False)
    capsys.readouterr()
    asks.keep(place_of(None, [program]), [Setting()])
    told = capsys.readouterr().err
    assert "it is best as it is" in told
    assert f"an earlier --apply wrote is in force (ampsched advise --undo {wrapper} takes it back)" in told
    assert wrapper.exists()
    with pytest.raises(InputError, match=r"cannot keep governor .*what an earlier --apply wrote is in force"):
        asks.keep(place_of(None, [program]), [Setting(governor="powersave")])
    YES.keep(place_of(None, [program]), [Setting()])
    assert not wrapper.exists()
    assert all_applied() == []
    capsys.readouterr()
    YES.keep(place_of(None, [program]), [Setting()])
    assert "earlier" not in capsys.readouterr().err


def test_names_that_are_not_clear_are_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "is_unit", lambda *_: None)
    monkeypatch.setattr(places, "SYSTEM_UNITS", home / "system")
    undo = Keeping(apply=False, to=None, undo=True, yes=True)
    (home / "other").mkdir()
    for place in (place_of("prog", ["true"]), place_of("other/prog", ["true"]), place_of("unit:served", [])):
        apply(place, place.text(SETTING))
    monkeypatch.chdir(home / "bin")
    with pytest.raises(
        InputError, match=r"prog: several places are called so \(applied: unit:served.service, "
    ):
        undo.take_back(["prog"])
    undo.take_back(["served", str(home / "other/prog")])
    assert [each.name for each in all_applied()] == [str(home / "prog")]
    undo.take_back(["prog"])
    assert all_applied() == []


def test_what_cannot_be_written_is_refused_before_anything_long(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        os, "access", lambda path, _mode, **__: not str(path).startswith(str(home / "locked"))
    )
    monkeypatch.setattr(shutil, "which", lambda name, **_: str(home / "bin" / name))
    (home / "locked").mkdir()
    with pytest.raises(InputError, match=r"locked/w: this user cannot write .*locked"):
        Keeping(apply=True, to="locked/w", undo=False, yes=True).place(["prog"], None)
    monkeypatch.setattr(applied, "STATE_OF_ROOT", home / "locked")
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "locked"))
    with pytest.raises(InputError, match=r"ampsched/applied/record: this user cannot write"):
        YES.place(["prog"], None)


def test_a_home_that_is_none_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (str(home / "none"), ""):
        monkeypatch.setenv("HOME", value)
        with pytest.raises(InputError, match=r"HOME=.*: is no folder \(set it\)"):
            place_of(None, ["prog"])
    assert not (home / "none").exists()


def test_records_of_root_stand_in_one_place_and_those_of_others_where_they_say(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(applied, "STATE_OF_ROOT", Path("/var/lib"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert applied.state_folder() == Path("/var/lib/ampsched/applied")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert applied.state_folder() == home / "state/ampsched/applied"
    for value in ("", "relative"):
        monkeypatch.setenv("XDG_STATE_HOME", value)
        assert applied.state_folder() == home / ".local/state/ampsched/applied"
