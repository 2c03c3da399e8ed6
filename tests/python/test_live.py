"""Policies on this computer: mixes, comparisons of real programs, and the way to ampsched-live."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ampsched

from ampsched import InputError
from ampsched.cli.forwarding import session_options
from ampsched.live import (
    LiveComparison,
    LiveRun,
    Mix,
    MixProgram,
    compare,
    compare_live,
    live_program,
    read_mix,
    run_programs,
)
from ampsched.live import _under as under
from ampsched.live.commands import Option, subcommands
from ampsched.live.program import preview
from ampsched.metrics import mix_metrics

CPUS = sorted(os.sched_getaffinity(0))
needs_two_cpus = pytest.mark.skipif(
    len(CPUS) < 2, reason="SKIPPED: one CPU only, so there are no two classes of cores"
)


def cores() -> list[str]:
    """The first two CPUs as if one were faster."""
    return [f"--big={CPUS[0]}", f"--little={CPUS[1]}", "--ratio=2"]


def mix_file(folder: Path, text: str) -> Path:
    path = folder / "mix.toml"
    path.write_text(text)
    return path


COUNT = "command = \"nice -n 10 sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'\""
MIX = f'[[programs]]\nname = "a"\n{COUNT}\n[[programs]]\nname = "b"\n{COUNT}\ndelay_s = 0.05\n'


def test_a_mix_is_read(tmp_path: Path) -> None:
    mix = read_mix(
        mix_file(
            tmp_path, '[[programs]]\ncommand = ["/bin/true", "x y"]\n[[programs]]\ncommand = "sleep \'1\'"\n'
        )
    )
    assert mix == Mix("mix", (MixProgram("true", ("/bin/true", "x y")), MixProgram("sleep", ("sleep", "1"))))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "programs: at least one table [[programs]] is needed"),
        ("x = 1", "x: unknown key (known: programs)"),
        ("[[programs]]\ncommand = 3", "programs[0].command: a text or a list of texts is needed"),
        ("[[programs]]\ncommand = ''", "programs[0].command: is empty"),
        ('[[programs]]\ncommand = "sh \'x"', "programs[0].command: No closing quotation"),
        ("[[programs]]\ncommand = 'a'\ndelay_s = -1", "programs[0].delay_s: -1 is not within 0 to 3600"),
        (
            "[[programs]]\ncommand = 'a'\ndealy_s = 1",
            "programs[0].dealy_s: unknown key (known: command, delay_s, name)",
        ),
        ("[[programs]]\ncommand = 'a'\n[[programs]]\ncommand = 'a'", 'programs: the name "a" is given twice'),
        ("[[programs]]\nname = ''\ncommand = 'a'", "programs[0].name: '' is not a name"),
        ("[", "(at end of document)"),
    ],
)
def test_a_wrong_mix_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        read_mix(mix_file(tmp_path, text))
    assert str(error.value).startswith(f"{tmp_path / 'mix.toml'}: ")
    assert message in str(error.value)


def test_a_missing_program_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "ampsched")])
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("AMPSCHED_LIVE", raising=False)
    with pytest.raises(
        InputError, match=r"there is no such program beside .*wheels .*bring it; .*make build"
    ):
        live_program()


def test_the_program_to_use_can_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    monkeypatch.setenv("AMPSCHED_LIVE", str(mine))
    with pytest.raises(InputError, match=r"AMPSCHED_LIVE: .*mine is not a program"):
        live_program()
    mine.touch(mode=0o755)
    assert live_program() == mine


@needs_two_cpus
def test_policies_are_compared(tmp_path: Path) -> None:
    mix = read_mix(mix_file(tmp_path, MIX))
    steps: list[tuple[int, int]] = []
    result = compare_live(
        mix,
        ["default", "hsp"],
        rounds=2,
        options=[*cores(), "--backend=daemon"],
        progress=lambda done, total: steps.append((done, total)),
    )
    assert steps[0] == (0, 8)
    assert steps[-1] == (8, 8)
    assert [len(result.select(policy)) for policy in ("default", "hsp")] == [2, 2]
    assert result.alone_cpus == (CPUS[0],)
    default, hsp = result.summary()
    assert (default.mode, hsp.mode) == ("kernel", "as written")
    assert default.h_antt_change.mean == 0
    assert hsp.h_antt.n == 2
    assert 0 < hsp.overhead < 1
    assert any("hsp: speed-ups are not measured" in note for note in result.notes())
    assert result.to_polars().height == 8
    json.dumps(result.to_dict())


@needs_two_cpus
def test_lengths_of_programs_come_from_the_facts(ampsched_process: Ampsched, tmp_path: Path) -> None:
    facts = tmp_path / "facts.toml"
    facts.write_text("[programs.true]\nwork_s = 0.5\n")
    command = ["live", "run", "--policy", "abreast:lengths=1", "--backend=daemon", *cores()]
    known = ampsched_process(*command, f"--facts={facts}", "--", "true")
    assert (known.code, "lengths of programs" in known.err) == (0, False), known.err
    unknown = ampsched_process(*command, "--", "true")
    assert "lengths of programs are missing: each counts by what it has done" in unknown.err


@needs_two_cpus
@pytest.mark.parametrize(
    ("command", "limit_s", "message"),
    [
        ("sh -c 'echo no luck; exit 3'", 60.0, "under .*: program a: exit code 3: no luck"),
        ("/nonexistent", 60.0, "^program a: cannot be run: /nonexistent: there is no such program"),
        ("sleep 60", 0.2, r"under .*: program a: did not end within 0\.2 s"),
    ],
)
def test_a_program_that_fails_is_named(tmp_path: Path, command: str, limit_s: float, message: str) -> None:
    mix = read_mix(mix_file(tmp_path, f'[[programs]]\nname = "a"\ncommand = "{command}"\n'))
    with pytest.raises(InputError, match=message):
        compare_live(mix, ["default"], rounds=1, options=cores(), limit_s=limit_s)


@needs_two_cpus
@pytest.mark.parametrize(
    ("bad", "policies", "message"),
    [
        (
            "/nonexistent",
            ["default", "hsp"],
            "program bad: cannot be run: /nonexistent: there is no such program",
        ),
        ("/etc/passwd", ["default"], "program bad: cannot be run: /etc/passwd: is not executable"),
        ("true", ["default", "prop-spp"], 'under prop-spp: .*unknown policy "prop-spp"'),
        ("true", ["default", "hsp:no=1"], "under hsp:no=1: .*no"),
        ("true", ["default", "colab"], "under colab: policy: colab: cannot be run by the daemon"),
        ("true", ["default", "scx_no 'x"], 'policy "scx_no \'x": No closing quotation'),
    ],
)
def test_m16_everything_is_checked_before_anything_runs(
    tmp_path: Path, bad: str, policies: list[str], message: str
) -> None:
    ran = MixProgram("ran", ("touch", str(tmp_path / "ran")))
    mix = Mix("mix", (ran, MixProgram("bad", (bad,))))
    with pytest.raises(InputError, match=message):
        compare_live(mix, policies, rounds=1, options=[*cores(), "--backend=daemon"])
    assert not (tmp_path / "ran").exists()


@needs_two_cpus
def test_m16_a_program_that_fails_ends_the_run(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/nonexistent\n")
    script.chmod(0o755)
    mix = Mix("mix", (MixProgram("endless", ("sleep", "60")), MixProgram("bad", (str(script),))))
    with pytest.raises(InputError, match=r"^program bad: cannot be run: No such file"):
        run_programs(mix.programs, CPUS, 60)
    mix = Mix("mix", (MixProgram("endless", ("sleep", "60")), MixProgram("bad", ("false",))))
    with pytest.raises(InputError, match=r"^program bad: exit code 1"):
        run_programs(mix.programs, CPUS, 60)


@needs_two_cpus
@pytest.mark.parametrize("policy", ["default", "hsp"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_end_a_comparison_soon_and_all_that_it_runs(
    tmp_path: Path, number: signal.Signals, policy: str
) -> None:
    said = tmp_path / "said"
    script = f"echo $$ >>{said}; exec sleep 60"
    mix_file(tmp_path, f'[[programs]]\nname = "a"\ncommand = ["sh", "-c", "{script}"]\n')
    options = [*cores(), "--backend=daemon", "-p", policy, "-r", "1", "mix.toml"]
    command = [sys.executable, "-m", "ampsched", "live", "compare", *options]
    with subprocess.Popen(command, cwd=tmp_path, stdout=-3, stderr=-1) as comparison:
        _wait_until(lambda: said.exists() and said.read_text().endswith("\n"))
        asked_s = time.monotonic()
        comparison.send_signal(number)
        code = comparison.wait()
        took_s = time.monotonic() - asked_s
    expected = -number if number == signal.SIGKILL else 128 + number
    assert (code, took_s < SOON_S) == (expected, True), took_s
    program = Path("/proc", said.read_text().strip(), "cmdline")
    _wait_until(lambda: _is_gone(program))


def _is_gone(cmdline: Path) -> bool:
    """Whether a process has ended, which may be between any two looks."""
    try:
        return cmdline.read_bytes() == b""
    except (FileNotFoundError, ProcessLookupError):
        return True


SOON_S = 30.0
"""Half of what the program sleeps; 0.15 s were measured on a quiet computer."""


def _wait_until(holds: Callable[[], bool]) -> None:
    until_s = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < until_s
        time.sleep(0.01)


@needs_two_cpus
def test_a_refused_policy_says_what_would_work(ampsched_here: Ampsched, tmp_path: Path) -> None:
    path = mix_file(tmp_path, MIX)
    where = ("--big", str(CPUS[0]), "--little", str(CPUS[1]), "--backend", "daemon")
    ended = ampsched_here("live", "compare", "-p", "colab", "-r", "1", *where, "--", str(path))
    assert ended.code == 2
    assert ended.err.startswith(
        "error: under colab: policy: colab: cannot be run by the daemon as it is written"
    )
    assert "what would work: --degrade" in ended.err


def test_h34_13_policies_may_be_given_one_by_one(
    ampsched_here: Ampsched, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from ampsched.cli import living

    asked: list[list[str]] = []

    def refuse(_mix: Mix, policies: list[str], **_options: object) -> LiveComparison:
        asked.append(policies)
        raise InputError("asked")

    monkeypatch.setattr(living, "compare_live", refuse)
    for arguments, expected in (
        (("-p", "hsp", "--policy", "wash", "--policies", "gts,default"), ["hsp", "wash", "gts", "default"]),
        (("-p", "hsp,wash"), ["hsp", "wash"]),
        ((), ["default", "abreast"]),
    ):
        ended = ampsched_here("live", "compare", *arguments, "--", str(mix_file(tmp_path, MIX)))
        assert (ended.code, ended.err, asked.pop()) == (2, "error: asked\n", expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-p", "hsp,hsp"), "policies: hsp, hsp: at least one is needed, each once"),
        (("-p", "hsp", "-p", "hsp"), "policies: hsp, hsp: at least one is needed, each once"),
        (("-p", "hsp", "-p", ""), '--policies "" has an empty item'),
        (("-r", "0"), "rounds = 0, at least 1 is needed"),
        (("--limit-s", "0"), "limit_s = 0 is not above 0"),
        (("--backend", "x"), '--backend "x" is not auto, scx or daemon'),
    ],
)
def test_bad_arguments_are_named(
    ampsched_here: Ampsched, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    ended = ampsched_here("live", "compare", *arguments, "--", str(mix_file(tmp_path, MIX)))
    assert (ended.code, ended.err) == (2, f"error: {message}\n")


def test_other_commands_are_passed_on_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    from ampsched.cli import app as cli

    passed: list[list[str]] = []

    def instead(program: str, arguments: list[str]) -> None:
        passed.append([Path(program).name, *arguments[1:]])

    monkeypatch.setattr(os, "execv", instead)
    for arguments in (
        ["run", "--policy", "hsp", "--", "sh", "-c", "exit 3"],
        ["status", "--help"],
        ["stop"],
    ):
        with pytest.raises(SystemExit):
            cli.main(["live", *arguments])
        assert passed.pop() == ["ampsched-live", *arguments]


# A value for each kind of option that is not its default; what the others need is anything with a blank.
VALUES = {
    "CPUS": "2-3",
    "RATIOS": "1.5",
    "FACTOR": "8",
    "PID": "7",
    "NAME=NUMBER": "sigma=0.3",
    "BACKEND": "daemon",
}
# Lists of CPUs are given for several classes or none.
NEEDED = {"big": ["--little=1"], "middle": ["--big=4", "--little=1"], "little": ["--big=4"]}


def given(option: Option) -> tuple[list[str], list[object]]:
    """An option with a value as arguments, and what the setting may be then."""
    if option.metavar is None:
        return [option.flags[-1]], [True]
    value = VALUES.get(option.metavar, "some thing")
    meant: list[object] = [value, [value]]
    if value.replace(".", "").isdecimal():
        meant += [float(value), [float(value)]]
    return ([f"{option.flags[-1]}={value}"] if option.flags else ["--", value]), meant


@pytest.mark.parametrize("option", subcommands()["run"].options, ids=lambda option: option.name)
def test_run_passes_every_option_on(option: Option, monkeypatch: pytest.MonkeyPatch) -> None:
    from ampsched.cli import app as cli

    seen: list[dict[str, object]] = []

    def instead(program: str, arguments: list[str]) -> None:
        assert (program, arguments[1]) == (str(live_program()), "run")
        seen.append(preview(arguments[2:])["settings"])

    monkeypatch.setattr(os, "execv", instead)
    words, meant = given(option)
    policy = [] if option.name == "policy" else ["--policy=hsp"]
    with pytest.raises(SystemExit):
        cli.main(["live", "run", *policy, *NEEDED.get(option.name, []), *words])
    [settings] = seen
    assert settings[option.name] in meant


def test_compare_passes_every_option_on(
    ampsched_here: Ampsched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each option of a session is one of a comparison, too, unless the comparison sees to it itself."""
    told, fake = tmp_path / "told", tmp_path / "ampsched-live"
    run = f'for word; do echo "$word"; done >{told}; while [ "$1" != -- ]; do shift; done; shift; exec "$@"'
    fake.write_text(f"#!/bin/sh\n{run}\n")
    fake.chmod(0o755)
    monkeypatch.setattr(compare, "live_program", lambda: fake)
    monkeypatch.setattr(compare, "core_classes", lambda _options: {"all": CPUS})
    monkeypatch.setattr(compare, "refusal", lambda _policy, _options: None)
    path = mix_file(tmp_path, '[[programs]]\ncommand = "true"\n')
    options = session_options()
    words = [word for option in options for word in given(option)[0]]
    ended = ampsched_here("live", "compare", "-p", "hsp", "-r", "1", "--json", *words, "--", str(path))
    assert ended.code == 0, ended.err
    settings = preview(told.read_text().splitlines()[1:])["settings"]
    for option in options:
        assert settings[option.name] in given(option)[1], option.name
    assert {option.name for option in options} >= {"model", "param", "facts", "dilation", "big"}
    own = {"policy", "pid", "cgroup", "everything", "command", "trace", "result", "quiet", "run_dir", "user"}
    assert {option.name for option in options} | own == set(settings)


def test_a_summary_is_paired_by_round() -> None:
    mix = Mix("m", (MixProgram("a", ("a",)), MixProgram("b", ("b",))))

    def run(policy: str, number: int, times_s: tuple[float, float]) -> LiveRun:
        nanoseconds = [round(1e9 * time_s) for time_s in times_s]
        return LiveRun(policy, number, times_s, mix_metrics(nanoseconds, [10**9, 10**9]))

    runs = (
        run("x", 1, (2.0, 4.0)),
        run("x", 0, (1.0, 3.0)),
        run("y", 0, (1.0, 1.0)),
        run("y", 1, (1.5, 1.5)),
    )
    result = LiveComparison(mix, ("x", "y"), (1.0, 1.0), (0,), runs)
    first, second = result.summary()
    assert first.h_antt.mean == pytest.approx(2.5)
    assert second.h_antt_change.mean == pytest.approx(-0.5), "1/2 and 1.5/3"
    assert second.h_antt_change.half_width == pytest.approx(0)
    assert second.makespan_s.mean == pytest.approx(1.25)


class FakeKernel:
    """A file that says what sched_ext does, and a scheduler that writes it."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state"
        self.state.write_text("disabled\n")
        self.folder = folder

    def scheduler(self, body: str) -> list[str]:
        path = self.folder / "scx_fake"
        path.write_text(f"#!/bin/sh\ntrap 'echo disabled >{self.state}; exit 0' INT\n{body}\n")
        path.chmod(0o755)
        return [str(path)]

    def wait_until_disabled(self) -> None:
        while self.state.read_text() != "disabled\n":
            time.sleep(0.01)

    def enables(self, then: str = "while :; do sleep 0.05; done") -> list[str]:
        return self.scheduler(f"echo enabled >{self.state}\n{then}")


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeKernel:
    fake = FakeKernel(tmp_path)
    monkeypatch.setattr(under, "STATE", fake.state)
    return fake


def test_others_schedulers_are_loaded_for_a_block(kernel: FakeKernel) -> None:
    with under.loaded(kernel.enables()):
        assert kernel.state.read_text() == "enabled\n"
    assert kernel.state.read_text() == "disabled\n"


def test_a_scheduler_that_ends_early_is_named(kernel: FakeKernel) -> None:
    refused = kernel.scheduler("echo 'no BTF' >&2; exit 7")
    with (
        pytest.raises(RuntimeError, match="the scheduler ended with 7: no BTF"),
        under.loaded(refused),
    ):
        pass
    # The kernel is rid of a scheduler before the scheduler's process says why.
    leaves = kernel.enables(f"sleep 0.2; echo disabled >{kernel.state}; sleep 0.3; echo stalled")
    with pytest.raises(RuntimeError, match="ended while the programs ran: stalled"), under.loaded(leaves):
        kernel.wait_until_disabled()


def test_a_scheduler_needs_a_kernel_that_is_free(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel.state.write_text("enabled\n")
    with pytest.raises(RuntimeError, match="is enabled, not disabled"), under.loaded(["scx_fake"]):
        pass
    kernel.state.write_text("disabled\n")
    with (
        pytest.raises(RuntimeError, match="scx_nobody: cannot be run: No such file"),
        under.loaded(["scx_nobody"]),
    ):
        pass
    monkeypatch.setattr(under, "STATE", kernel.folder / "nothing")
    with pytest.raises(RuntimeError, match="this kernel has no sched_ext"), under.loaded(["scx_fake"]):
        pass


@pytest.mark.skipif(under.STATE.exists(), reason="SKIPPED: this kernel has sched_ext")
@needs_two_cpus
def test_comparing_with_others_schedulers_needs_sched_ext(tmp_path: Path) -> None:
    mix = Mix("mix", (MixProgram("a", ("true",)),))
    with pytest.raises(InputError, match=r"under scx_bpfland: .*this kernel has no sched_ext"):
        compare_live(mix, ["scx_bpfland"], rounds=1, options=cores(), limit_s=60)
