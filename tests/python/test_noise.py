"""The system's noise: files, results, and how files are made of traces."""

import io
import itertools
import tomllib
from pathlib import Path

import pytest
from conftest import ROOT, Ampsched

import ampsched
from ampsched import InputError, Noise, noise_names
from ampsched_lab.noise import noise as tool

MIX = ("2B2S", "sync-1", "cfs")
OWN = """
[[sources]]
name = "kworker"
kind = "thread"
pause_us = [400, 600]
duration_us = [50, 50]
"""


def test_shipped_files_are_named_and_say_where_they_come_from() -> None:
    assert noise_names() == ["busy", "idle"]
    for name in noise_names():
        noise = Noise.of(name)
        assert str(noise) == name
        assert noise == Noise.parse(name)
        assert noise.sources is not None
        assert noise.sources.description
        assert 'source = "make -C lab noise' in noise.text


def test_what_an_idle_computer_does_is_a_file_of_the_project() -> None:
    noise = Noise.of(str(ROOT / "docs/reports/truth/host/noise.toml"))
    assert 'source = "make -C lab noise-host"' in noise.text
    quiet, noisy = (ampsched.simulate(*MIX, noise=each) for each in ("none", noise))
    assert sum(core.noise_ns for core in noisy.cores) > 0
    assert noisy.makespan_ns > quiet.makespan_ns


def test_none_is_as_if_nothing_had_been_said() -> None:
    assert Noise.of("none") == Noise()
    assert Noise().sources is None
    quiet = ampsched.simulate(*MIX)
    assert quiet == ampsched.simulate(*MIX, noise="none")
    assert quiet.noise is None
    assert quiet.counts.noise == 0
    assert all(core.noise_ns == core.interrupted_ns == 0 for core in quiet.cores)


def test_noise_takes_time_and_nothing_else() -> None:
    quiet = ampsched.simulate(*MIX)
    busy = ampsched.simulate(*MIX, noise="busy", check=True)
    assert busy == ampsched.simulate(*MIX, noise=Noise.of("busy"))
    assert (busy.noise, quiet.noise) == ("busy", None)
    assert [thread.name for thread in busy.threads] == [thread.name for thread in quiet.threads]
    assert [app.threads for app in busy.apps] == [app.threads for app in quiet.apps]
    for core in busy.cores:
        assert core.busy_ns + core.idle_ns + core.noise_ns == busy.makespan_ns
        assert 0.001 < (core.noise_ns + core.interrupted_ns) / busy.makespan_ns < 0.1
    assert busy.counts.noise > 100


def test_the_file_decides_how_much(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(OWN)
    outcome = ampsched.simulate("sym-2", "sync-1", "cfs", noise=str(file))
    assert outcome.noise == "own"
    for core in outcome.cores:
        assert core.noise_ns / outcome.makespan_ns == pytest.approx(50 / 550, rel=0.02)


def test_programs_alone_have_it_too() -> None:
    quiet, noisy = (ampsched.compare("2B2S", "sync-1", ["cfs"], noise=noise) for noise in ("none", "busy"))
    alone = [[run.alone_ns for run in comparison.runs] for comparison in (quiet, noisy)]
    assert all(
        more > less
        for noisy_run, quiet_run in zip(alone[1], alone[0], strict=True)
        for more, less in zip(noisy_run, quiet_run, strict=True)
    )
    assert "noise busy" in noisy.notes
    assert not any("noise" in note for note in quiet.notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (OWN.replace("thread", "tread"), 'own.toml:4: sources[0].kind: unknown kind "tread" (did you mean'),
        (
            OWN.replace("600", "300"),
            "own.toml:5: sources[0].pause_us[1]: 300 after 400, quantiles must ascend",
        ),
        (OWN.replace("50, 50", "5e3, 5e3"), "of a core's time, at most 0.5 is allowed (longer pauses"),
        (OWN.replace("name", "nane"), 'unknown key "nane" (did you mean "name"?)'),
        ("sources = 1", "sources: 1 is not a list"),
        ("", 'key "sources" is missing'),
        ("\0", "not valid TOML"),
    ],
)
def test_bad_files_are_refused_in_one_line(
    ampsched_here: Ampsched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.toml").write_text(text)
    ended = ampsched_here("simulate", "-m", "2B2S", "-w", "fft", "--noise", "own.toml")
    assert ended.code == 2
    assert not ended.out
    assert len(ended.err.splitlines()) == 1
    assert message in ended.err


def test_names_that_do_not_exist_are_refused() -> None:
    with pytest.raises(InputError, match=r'unknown noise "bussy" \(did you mean "busy"\?'):
        Noise.of("bussy")
    with pytest.raises(InputError, match=r"nowhere\.toml"):
        Noise.of("nowhere.toml")


def test_the_command_says_which_noise_there_was(ampsched_here: Ampsched) -> None:
    words = ("simulate", "-m", "2B2S", "-w", "fft")
    noisy, quiet = ampsched_here(*words, "--noise", "busy"), ampsched_here(*words)
    assert "noise busy" in noisy.out
    assert "noise %" in noisy.out
    assert "noise" not in quiet.out
    assert '"noise": "busy"' in ampsched_here(*words, "--noise", "busy", "--json").out


HEAD = "# command: sleep 1\n# kernel threads: 2 20 21\n"


def line(core: int, at_us: int, tid: int, event: str) -> str:
    return f"  name-{tid}  [{core:03}] d..2. {at_us // 1_000_000:5}.{at_us % 1_000_000:06}: {event}\n"


def switch(core: int, at_us: int, before: tuple[str, int], state: str, after: tuple[str, int]) -> str:
    return line(
        core,
        at_us,
        before[1],
        f"sched_switch: prev_comm={before[0]} prev_pid={before[1]} prev_prio=120 prev_state={state} ==> "
        f"next_comm={after[0]} next_pid={after[1]} next_prio=120",
    )


def trace() -> str:
    """Ten rounds of 1000 us on core 0: a kernel thread for 20 us, in it an interrupt of 4 us; a tick."""
    user, kworker = ("user", 9), ("kworker/0:1-events", 20)
    parts = [HEAD, switch(1, 0, user, "S", ("swapper/1", 0))]
    for start in range(1000, 11_000, 1000):
        parts += [
            line(0, start - 3, 9, "sched_waking: comm=kworker/0:1 pid=20 prio=120 target_cpu=000"),
            switch(0, start, user, "R", kworker),
            line(0, start + 5, 20, "irq_handler_entry: irq=37 name=virtio0-input.0"),
            line(0, start + 9, 20, "irq_handler_exit: irq=37 ret=handled"),
            switch(0, start + 24, kworker, "I", user),
            line(0, start + 500, 9, "local_timer_entry: vector=236"),
            line(0, start + 502, 9, "hrtimer_expire_entry: hrtimer=0 function=tick_nohz_handler now=1"),
            line(0, start + 509, 9, "local_timer_exit: vector=236"),
        ]
    return "".join([*parts, switch(1, 11_000, ("swapper/1", 0), "R", user)])


def test_a_file_is_made_of_a_trace(tmp_path: Path) -> None:
    reader = tool.Reader(iter(io.StringIO(trace())))
    text = tool.noise_file(reader, [0, 1], "mine", "a test")
    sources = {source["name"]: source for source in tomllib.loads(text)["sources"]}
    assert sources.keys() == {"kworker", "virtio-input. interrupt"}
    assert {source["kind"] for source in sources.values()} == {"thread", "interrupt"}
    assert sources["kworker"]["duration_us"] == [20] * 21
    assert sources["virtio-input. interrupt"]["duration_us"] == [4] * 21
    pauses = sources["kworker"]["pause_us"]
    # On both cores, so half as often as on the one.
    assert sum(map(sum, zip(pauses[1:], pauses[:-1], strict=True))) / 40 == pytest.approx(2180, rel=1e-3)
    assert "# Not noise here: tick, 10 times, 9.00 us on average." in text
    assert "10 threads of programs lost a core" in tool.evidence(reader)
    (tmp_path / "mine.toml").write_text(text)
    assert Noise.of(str(tmp_path / "mine.toml")).sources is not None


def test_quantiles_have_the_mean_of_the_values() -> None:
    values = [1.0] * 90 + [100.0] * 9 + [5000.0]
    mean = sum(values) / len(values)
    points = tool.table(values, mean)
    assert points == sorted(points)
    assert len(points) == tool.QUANTILES + 1
    between = [(low + high) / 2 for low, high in itertools.pairwise(points)]
    assert sum(between) / len(between) == pytest.approx(mean)


def test_the_recorder_is_a_script_that_every_shell_knows() -> None:
    assert (ROOT / "lab/ampsched_lab/noise/noise.sh").read_text().startswith("#!/bin/sh\n")
