"""Keeping an advised setting: what is written, that it works, and that it is taken back from wherever it stopped."""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ampsched import InputError
from ampsched.cli.keeping import Keeping, with_keeping
from ampsched.keeping import applied, clocks, places
from ampsched.keeping.applied import all_applied, apply, content_of, take_back
from ampsched.keeping.places import Place, kept, place_of
from ampsched.recording.cores import Cores
from ampsched.recording.setting import Setting

BIG = Cores("the big cores", (0, 1, 2, 3, 8))
FIRST = Cores("one core", (min(os.sched_getaffinity(0)),))
SETTING = Setting(threads=4, cores=BIG, environment=(("OMP_NUM_THREADS", "4"),))
SIGNED = (
    "# 4 threads under linux on the big cores with OMP_NUM_THREADS=4: written by ampsched advise --apply; "
    "ampsched advise --undo takes it back\n"
)
YES = Keeping(apply=True, to=None, undo=False, yes=True)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, for root, too."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(applied, "STATE_OF_ROOT", tmp_path / "state")
    monkeypatch.setattr(places, "SYSTEM_UNITS", tmp_path / "system")
    monkeypatch.setattr(places, "is_unit", lambda *_: True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def a_program(path: Path, text: str = "#!/bin/sh\necho ran\n") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_a_wrapper_of_a_command_has_all_of_its_arguments(home: Path) -> None:
    program = a_program(home / "bin/it's a prog")
    place = place_of("run me", [program, "a b", "$HOME\n`id`", "--n={threads}"])
    assert place.path == home / "run me"
    last = place.text(Setting(threads=2, cores=FIRST)).partition("exec ")[2]
    quoted = str(home / "bin/it") + "'\"'\"'s a prog"
    assert last == f"taskset --cpu-list {FIRST.list} '{quoted}' 'a b' '$HOME\n`id`' --n=2 \"$@\"\n"


def test_a_wrapper_runs_the_program_on_the_cores_with_the_variables(home: Path) -> None:
    odd = os.fsdecode(b"od'd \xff\n$HOME")
    show = (
        f"#!{sys.executable}\nimport os, sys\n"
        "print(sorted(os.sched_getaffinity(0)), ascii(os.environ['V']), ascii(sys.argv[1:]))\n"
    )
    program = a_program(home / odd, show)
    for value in ("4", "a 'b' \"c\" $d %n \\", "two\nlines"):
        setting = Setting(threads=3, cores=FIRST, environment=(("V", value),))
        place = place_of("w", [program, odd, "{threads}"])
        apply(place, place.text(setting))
        done = subprocess.run([home / "w", "more", "-x y"], capture_output=True, text=True, check=True)
        assert done.stdout == f"{list(FIRST.cpus)} {value!r} {[odd, '3', 'more', '-x y']!a}\n"
    for made in all_applied():
        take_back(made)
    assert not (home / "w").exists()


def test_a_drop_in_quotes_for_systemd(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    place = place_of("unit:nginx", [])
    assert place.path == home / "system/nginx.service.d/50-ampsched.conf"
    assert place.then == "then: systemctl daemon-reload && systemctl restart nginx.service"
    assert place.text(SETTING) == (
        f"{SIGNED}[Service]\nCPUAffinity=\nCPUAffinity=0-3,8\nAllowedCPUs=\nAllowedCPUs=0-3,8\n"
        'Environment="OMP_NUM_THREADS=4"\n'
    )
    odd = Setting(environment=(("V", '50% "of" \\ $c\nd'),))
    assert place.text(odd).endswith('[Service]\nEnvironment="V=50%% \\"of\\" \\\\ $c\\nd"\n')
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    of_user = place_of("unit:a@x\\x2d1.service", [])
    assert of_user.path == home / ".config/systemd/user/a@x\\x2d1.service.d/50-ampsched.conf"
    assert "'a@x\\x2d1.service'" in of_user.then
    assert "AllowedCPUs" not in of_user.text(SETTING)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
def test_systemd_takes_a_drop_in_as_it_is_written(home: Path) -> None:
    unit = home / "kept.service"
    unit.write_text("[Service]\nExecStart=/bin/true\nType=oneshot\nCPUAffinity=7\nAllowedCPUs=7\n")
    odd = Setting(threads=4, cores=BIG, environment=(("V", '50% "of" \\ $c\nd'), ("OMP_NUM_THREADS", "4")))

    def told(text: str) -> str:
        path = home / "kept.service.d/50-ampsched.conf"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        environment = {**os.environ, "SYSTEMD_LOG_LEVEL": "info"}
        command = ["systemd-analyze", "verify", "--man=no", str(unit)]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        return "\n".join(line for line in done.stderr.splitlines() if "50-ampsched" in line)

    text = place_of("unit:kept", []).text(odd)
    assert told(text) == ""
    # It reads the file: it tells of each line that is wrong.
    assert told(text.replace("=0-3,8", "=0-x")) != ""
    assert told(text.replace('$c\\nd"', "$c\\nd")) != ""


def test_what_cannot_be_kept_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = a_group(home)
    everything = Setting(threads=4, cores=BIG, environment=(("V", "1"),), governor="schedutil")
    monkeypatch.setattr(clocks, "POLICIES", home / "cpufreq")
    for number in range(2):
        (home / f"cpufreq/policy{number}").mkdir(parents=True)
        (home / f"cpufreq/policy{number}/scaling_governor").write_text("performance\n")
    setting = "governor schedutil (sudo cpupower frequency-set --governor schedutil; cpupower needs root, and its governor "
    setting += "stays, for all programs, until a restart; to put it back: sudo cpupower frequency-set --governor performance)"
    assert group.lost(everything) == ["V=1", "4 threads (tell the program)", setting]
    assert place_of("unit:x", []).lost(everything) == ["4 threads (tell the program)", setting]
    assert place_of("unit:x", []).lost(SETTING) == []
    assert group.lost(SETTING) == ["OMP_NUM_THREADS=4", "4 threads (tell the program)"]
    assert group.text(Setting(environment=(("V", "1"),))) == ""
    (home / "cpufreq/policy1/scaling_governor").write_text("powersave\n")
    assert (
        "cores have several (performance, powersave); note today's first: grep ."
        in group.lost(everything)[-1]
    )
    monkeypatch.setattr(clocks, "POLICIES", home / "none")
    assert "shows no governor below" in group.lost(everything)[-1]
    with pytest.raises(InputError, match=r"cannot keep V=1$"):
        YES.keep(group, [Setting(environment=(("V", "1"),))])


def test_a_setting_with_a_scheduler_of_ours_gives_way_to_the_best_without() -> None:
    ours, best, other = Setting("colab", cores=BIG), Setting(cores=FIRST), Setting()
    assert kept([best, ours]) == (best, "")
    why = "colab lasts only as long as ampsched live run"
    assert kept([ours, best, other]) == (best, f"{why}; the best without it: {best.name}")
    with pytest.raises(InputError, match=f"^{why}: nothing is applied"):
        kept([ours])


def a_group(home: Path, content: str = "0-7\n") -> Place:
    """A control group, as far as files go."""
    (home / "my group").mkdir(exist_ok=True)
    (home / "my group/cpuset.cpus").write_text(content)
    return place_of("cgroup:my group", [])


def a_cpuset() -> Path | None:
    """Where this process can make a control group with cores."""
    for mount in places.cgroup_mounts():
        folder = mount / f"ampsched-test-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        if (folder / "cpuset.cpus").exists():
            return folder
        folder.rmdir()
    return None


def test_the_kernel_takes_a_cpuset_and_its_old_value() -> None:
    folder = a_cpuset()
    if folder is None:
        pytest.skip("no cpuset can be made here")
    try:
        cpus = folder / "cpuset.cpus"
        before = cpus.read_text()
        for name in (folder, folder.name):
            place = place_of(f"cgroup:{name}", [])
            apply(place, place.text(Setting(cores=FIRST)))
            assert cpus.read_text() == f"{FIRST.list}\n"
            (made,) = all_applied()
            take_back(made)
            assert cpus.read_text() == before
        with pytest.raises(OSError, match=r"\(9000\)"):
            apply(place, place.text(Setting(cores=Cores("none", (9000,)))))
        assert all_applied() == []
    finally:
        folder.rmdir()


class Places:
    """One place of each kind, and what was there at first."""

    def __init__(self, home: Path) -> None:
        program = a_program(home / "bin/prog")
        self.all = [place_of(None, [program]), place_of("unit:kept", []), a_group(home)]
        self.home = home
        self.before = self.files()

    def files(self) -> dict[str, str | None]:
        """All files and folders, but for the state's folder itself."""
        every = (each for each in self.home.rglob("*") if "state" not in each.relative_to(self.home).parts)
        return {str(each): None if each.is_dir() else each.read_text() for each in every}


CALLS = ("open", "write", "replace", "unlink", "mkdir", "rmdir", "fsync", "fchmod", "rename")


def killed(work: Callable[[], None], step: int, *, is_after: bool) -> bool:
    """Does something in a process that ends like one that is killed, at a call that changes files; whether it did."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 77
    left = step

    def ending(real: Callable[..., object]) -> Callable[..., object]:
        def call(*words: object, **options: object) -> object:
            nonlocal left
            left -= 1
            if left == 0 and not is_after:
                os._exit(77)
            try:
                return real(*words, **options)
            finally:
                if left == 0:
                    os._exit(77)

        return call

    code = 1
    try:
        for name in CALLS:
            setattr(os, name, ending(getattr(os, name)))
        work()
        code = 0
    finally:
        os._exit(code)


@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("kind", [0, 1, 2])
def test_what_was_killed_anywhere_is_taken_back(home: Path, kind: int, *, is_after: bool) -> None:
    every = Places(home)
    place = every.all[kind]
    # Of one length: the kernel takes a cpuset's list as a whole, a file does not.
    first, second = (place.text(Setting(cores=Cores("", cpus))) for cpus in ((0, 1, 2, 3), (4, 5, 6, 7)))

    def all_of_it() -> None:
        apply(place, first)
        apply(place, second)
        for made in all_applied():
            take_back(made)

    steps = 0
    while killed(all_of_it, steps + 1, is_after=is_after):
        steps += 1
        for made in all_applied():
            assert made.difference == ""
            take_back(made)
        assert all_applied() == []
        assert every.files() == every.before
    assert steps > 20


def test_what_fails_leaves_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every = Places(home)
    for place in every.all:

        def failing(*_: object) -> None:
            raise OSError(28, "No space left on device", "x")

        with monkeypatch.context() as patched:
            patched.setattr(applied.Applied, "write", failing)
            with pytest.raises(OSError, match="No space"):
                apply(place, "text\n")
        assert all_applied() == []
        assert every.files() == every.before


STEPS = st.lists(st.tuples(st.sampled_from(["apply", "undo", "edit"]), st.integers(0, 2), st.integers(0, 3)))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS)
def test_undo_takes_back_all_but_what_others_have_changed(
    steps: list[tuple[str, int, int]], tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path, ignore_errors=True)
    tmp_path.mkdir()
    os.chdir(tmp_path)
    every = Places(tmp_path)
    foreign: dict[int, str | None] = {}
    for what, which, number in steps:
        place = every.all[which]
        mine = [each for each in all_applied() if each.name == place.name]
        if what == "apply" and not (which in foreign and foreign[which] is not None):
            text = f"0-{number + 1}\n" if place.name.startswith("cgroup:") else f"#!/bin/sh\n# {number}\n"
            apply(place, text)
        elif what == "undo" and mine and which not in foreign:
            take_back(mine[0])
        elif what == "edit" and mine:
            place.path.write_text("mine, é\n")
            foreign[which] = "mine, é\n"
    for made in all_applied():
        which = next(number for number, place in enumerate(every.all) if place.name == made.name)
        refused = pytest.raises(InputError, match="changed since") if which in foreign else nullcontext()
        assert bool(made.difference) == (which in foreign)
        with refused:
            take_back(made)
    for which, text in foreign.items():
        assert content_of(every.all[which].path) == text
    if not foreign:
        assert every.files() == every.before


def test_a_file_of_somebody_else_is_left_alone(home: Path) -> None:
    program = a_program(home / "bin/prog")
    for make, why in (
        (lambda path: path.write_text("mine"), "is there already, and not from --apply"),
        (lambda path: path.symlink_to("nowhere"), "is no ordinary file"),
        (lambda path: os.mkfifo(path), "is no ordinary file"),
    ):
        path = home / "w"
        make(path)
        place = place_of("w", [program])
        with pytest.raises(InputError, match=why):
            apply(place, "text")
        path.unlink()
    apply(place, "text")
    path.write_text("text of mine")
    with pytest.raises(InputError, match="was changed since --apply wrote it"):
        apply(place, "another")
    assert path.read_text() == "text of mine"


def test_records_that_are_damaged_are_named(home: Path) -> None:
    apply(a_group(home), "1\n")
    (record,) = applied.state_folder().glob("*.json")
    whole = record.read_bytes()
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    for damaged in (b"", whole[:-1], whole.replace(b"0-7", b"0-6"), b"[]", b"\xff\n{}"):
        record.write_bytes(damaged)
        with pytest.raises(InputError, match=r"000001\.json: is no record"):
            all_applied()


@pytest.mark.parametrize(
    ("to", "command", "why"),
    [
        ("unit:../x", [], "is no name of a service"),
        ("unit:", [], "is no name of a service"),
        (f"unit:{'x' * 300}", [], "is no name of a service"),
        ("unit:x.slice/y", [], "is no name of a service"),
        ("unit:x\ny", [], "is no name of a service"),
        ("cgroup:/", [], "is no control group below the first"),
        ("cgroup:no/such", [], "no control group so called"),
        (None, [], r"where\? \(--to unit:NAME"),
        (None, ["no-such-program"], "is no program that can be executed"),
        (None, ["sh", "-c", "x"], "would change all that it runs"),
        (None, ["timeout", "9", "x"], "would change all that it runs"),
        ("no/such/w", ["true"], "there is no folder .*no/such .make it first"),
        ("/nodir/a/b", ["true"], "there is no folder /nodir/a .make it first"),
        ("", ["true"], "is no file"),
        (".", ["true"], "is no file"),
    ],
)
def test_places_that_are_none_are_refused(to: str | None, command: list[str], why: str) -> None:
    with pytest.raises(InputError, match=why):
        place_of(to, command)


@pytest.mark.parametrize("pair", [("A B", "1"), ("A=", "1"), ("A", "\0"), ("A", "\udcff"), ("", "")])
def test_variables_that_no_file_can_set_are_refused(pair: tuple[str, str]) -> None:
    for place in (place_of("unit:x", []), place_of("w", ["true"])):
        with pytest.raises(InputError, match="is no variable that a file can set"):
            place.text(Setting(environment=(pair,)))


def keeping(*words: str) -> list[str]:
    """What the options of a command make of words, run as a command."""
    told: list[str] = []

    def command(target: list[str] = typer.Argument(None), *, keeping: Keeping) -> None:  # noqa: B008
        told.append(str(keeping))
        if keeping.undo:
            keeping.take_back(target or [])
        else:
            keeping.keep(keeping.place(target, None), [Setting("colab"), Setting(cores=FIRST)])

    app = typer.Typer()
    app.command()(with_keeping(command))
    app(list(words), standalone_mode=False)
    return told


def test_the_command_shows_asks_writes_and_takes_back(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:

    def said(*words: str) -> str:
        keeping(*words)
        return capsys.readouterr().err

    program = a_program(home / "bin/prog")
    with pytest.raises(InputError, match="no terminal to ask on"):
        keeping("--apply", program)
    wrapper = home / ".local/bin/prog"
    shown_first = capsys.readouterr().err
    assert f"taskset --cpu-list --pid {FIRST.list} $$" in shown_first
    assert f'exec {program} "$@"' in shown_first
    assert (
        "colab lasts only as long as ampsched live run; the best without it: linux on one core" in shown_first
    )
    assert not wrapper.exists()
    for answer, is_there in ((False, False), (True, True)):
        monkeypatch.setattr(Keeping, "_is_agreed", lambda *_, answer=answer: answer)
        keeping("--apply", program)
        assert wrapper.exists() == is_there
    assert f"{wrapper}: holds this already" in said("--apply", program)
    wrapper.write_text(wrapper.read_text() + "# mine\n")
    with pytest.raises(InputError, match="was changed since --apply wrote it"):
        keeping("--undo", str(wrapper))
    assert "+# mine" in capsys.readouterr().err
    wrapper.write_text(wrapper.read_text().removesuffix("# mine\n"))
    with pytest.raises(
        InputError, match=r"other: nothing is applied there by this user .applied: .*local/bin/prog"
    ):
        keeping("--undo", "other")
    undone = said("--undo", "prog")
    assert f"taken back: {wrapper}\n" in undone
    assert "run it as" not in undone
    assert not (home / ".local").exists()
    assert "nothing is applied by this user" in said("--undo")


def test_options_that_exclude_each_other_are_refused() -> None:
    for words, why in (
        ((True, None, True, False), "--apply and --undo exclude each other"),
        ((False, "x", False, False), "--to goes with --apply"),
        ((False, None, False, True), "--yes goes with"),
    ):
        with pytest.raises(InputError, match=why):
            Keeping(*words)
    with pytest.raises(InputError, match="on pixel:2B is not kept on this computer"):
        YES.place(["true"], "pixel:2B")
