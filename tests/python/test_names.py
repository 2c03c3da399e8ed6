"""Names that are no UTF-8 and links in a circle: everything works, or there is one line of error (34.6)."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT, Ampsched
from typer.main import get_command

from ampsched.cli.app import app
from ampsched.files import named, shown

BAD = os.fsdecode(b"n\xff")
TRACE = ROOT / "crates/recording/tests/samples/ftrace.txt"
RECORDING = ROOT / "docs/reports/recordings/exact/hogs-hogs.ampr"
PROGRAM = '[[threads]]\nname = "t"\nbody = [{ run_us = 50, profile = "fft" }]\n'
POLICY = "import ampsched\n\n\nclass Own(ampsched.Policy):\n    pass\n"
SYSTEM = ("record", "calibrate", "selftest", "reproduce", "vm", "live")
"""Commands that run programs or other commands: their own tests have them."""
LINES = {
    "advise": "{ampr} -m 2B2S -p linux,hsp -r 1",
    "compare": "-m 2B2S -w {toml} -p cfs",
    "sweep": "-m 2B2S -w {toml} -p cfs,linux",
    "simulate": "-m 2B2S -w {toml}",
    "explain": "-m 2B2S -w {toml} --thread 0 --at-ms 0",
    "limit": "-m 2B2S -w {toml}",
    "list": "machines",
    "describe": "{toml}",
    "import": "{ampr}",
    "check": "{trace}",
    "import-rtapp": "{json}",
    "lift": "{ampr}",
    "analytic": "--fast 1 --slow 1 --speedups 2,1",
    "counters import": "{perf} --from perf -o {here}/c.csv",
    "counters list": "",
    "train": "{csv} --big a --little b",
    "report": "{json} --html {here}/r.html",
    "machine": "this -o {here}/m.toml",
    "new policy": "own",
    "tasks run": "{csv}",
    "tasks schedule": "{csv}",
    "tasks draw": "{csv}",
    "tasks describe": "{csv}",
    "tasks convert": "{csv} {here}/o.dot",
}
"""What each command is given beside the name in question."""


def commands() -> Iterator[tuple[str, object]]:
    """All commands and groups below the first, by their words."""
    for name, command in sorted(get_command(app).commands.items()):  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        if name not in SYSTEM:
            yield from (
                ((f"{name} {each}", one) for each, one in inner.items()) if inner else [(name, command)]
            )


PLACES = [
    (name, place)
    for name, command in commands()
    for place, param in enumerate(command.params)  # type: ignore[attr-defined]
    if not getattr(param, "is_flag", False)
]
"""All options and arguments that have a value."""
SUFFIX = re.compile(r"\.(?:toml|json|csv|ampr|py|svg|html|dot|parquet)\b")


@pytest.fixture
def line(tmp_path: Path) -> "dict[str, str]":
    """Files that are right, by their endings."""
    texts = {
        "toml": PROGRAM,
        "json": '{"tasks": {"t": {"run": 10, "loop": 1}}}',
        "csv": "a,1,,\n",
        "perf": "1,,cycles,5,100.00,,\n",
    }
    for suffix, text in texts.items():
        (tmp_path / f"right.{suffix}").write_text(text)
    return {"ampr": str(RECORDING), "trace": str(TRACE), "here": str(tmp_path)} | {
        suffix: str(tmp_path / f"right.{suffix}") for suffix in texts
    }


def check(ended: object) -> None:
    """One line of error and nothing else, or no error."""
    code, err = ended.code, ended.err  # type: ignore[attr-defined]
    errors = [each for each in err.splitlines() if each.startswith("error:")]
    assert "Traceback" not in err
    assert (code, len(errors)) in ((0, 0), (2, 1)), err


def test_h34_06_every_command_is_in_the_table() -> None:
    assert set(LINES) == {name for name, _ in commands()}


@pytest.mark.parametrize(("command", "place"), PLACES)
def test_h34_06_every_text_of_every_command_may_be_no_utf8_or_a_circle(
    ampsched_here: Ampsched,
    line: "dict[str, str]",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    place: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    words = LINES[command].format(**line).split()
    param = dict(commands())[command].params[place]  # type: ignore[attr-defined]
    is_option, values = param.opts[0].startswith("-"), [BAD]
    for suffix in dict.fromkeys(SUFFIX.findall(param.help or "")):
        circle = tmp_path / f"circle{suffix}"
        circle.symlink_to(circle)
        values += [f"{tmp_path / BAD}{suffix}", str(circle)]
    for value in values:
        given = [*words, param.opts[0], value] if is_option else [value, *words[1:]]
        check(ampsched_here(*command.split(), *given))


def test_h34_06_files_of_any_name_are_read_and_written(ampsched_here: Ampsched, tmp_path: Path) -> None:
    folder = tmp_path / BAD
    folder.mkdir()

    def file(name: str, content: "str | bytes") -> str:
        path = folder / f"{BAD}{name}"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    program, policy = file(".toml", PROGRAM), file(".py", POLICY)
    (folder / "beside.toml").write_text(PROGRAM)
    mix = file("-mix.toml", '[workloads.mix]\napps = [{ program = "beside.toml" }]\n')
    machine = file("-m.toml", (ROOT / "python/ampsched/data/machines/2B2S.toml").read_bytes())
    recording = file(".ampr", RECORDING.read_bytes())
    graph, counts = file(".csv", "a,1,,\n"), file(".perf", "1,,cycles,5,100.00,,\n")
    out = f"{folder}/{BAD}-out"
    lines = [
        [
            "simulate",
            "-m",
            machine,
            "-w",
            program,
            "-p",
            policy,
            "--trace",
            f"{out}.pftrace",
            "--html",
            f"{out}.html",
        ],
        ["compare", "-m", "2B2S", "-w", program, "-p", f"cfs,{policy}", "--json"],
        ["compare", "-m", "2B2S", "-w", program, "-p", f"cfs,{policy}", "--format", "csv"],
        ["sweep", "-m", machine, "-w", program, "-p", f"cfs,{policy}", "--out", f"{out}-folder"],
        ["describe", mix],
        ["list", "machines", "--file", machine],
        ["lift", recording, "-o", f"{out}-lifted.toml", "--name", BAD],
        ["import", recording, "-o", f"{out}.ampr"],
        ["advise", recording, "-m", "2B2S", "-p", "linux,hsp", "-r", "1", "--html", f"{out}-advice.html"],
        ["tasks", "convert", graph, f"{out}.dot"],
        [
            "tasks",
            "schedule",
            graph,
            "--gantt",
            f"{out}.svg",
            "--csv",
            f"{out}-s.csv",
            "--html",
            f"{out}-t.html",
        ],
        ["counters", "import", counts, "--from", "perf", "--program", BAD, "-o", f"{out}.parquet"],
    ]
    for each in lines:
        ended = ampsched_here(*each)
        assert (ended.code, "error:" in ended.err) == (0, False), each
    written = (
        "-folder/table.parquet",
        ".pftrace",
        ".html",
        "-lifted.toml",
        ".ampr",
        "-advice.html",
        ".dot",
        ".svg",
    )
    for name in (*written, "-s.csv", "-t.html", ".parquet"):
        assert Path(out + name).stat().st_size > 0, name


def test_h34_06_what_is_shown_of_a_name_finds_it_again(tmp_path: Path) -> None:
    for name in (b"n\xff", "grün".encode(), b"a%ff", b"a%zz", b"\xe2\x82"):
        path = tmp_path / os.fsdecode(name)
        path.write_bytes(b"")
        shown(path).encode()
        assert named(shown(path)) == path
    assert shown(os.fsdecode(b"a\x80 \xff")) == "a%80 %ff"


@pytest.mark.parametrize("option", ["--trace", "--html"])
def test_h34_06_an_output_that_is_a_circle_is_one_line(
    ampsched_here: Ampsched, tmp_path: Path, option: str
) -> None:
    (tmp_path / "p.toml").write_text(PROGRAM)
    circle = tmp_path / "circle.html"
    circle.symlink_to(circle)
    ended = ampsched_here("simulate", "-m", "2B2S", "-w", str(tmp_path / "p.toml"), option, str(circle))
    assert (ended.code, ended.err) == (2, f"error: {circle}: Too many levels of symbolic links\n")
    assert circle.is_symlink()


def test_h34_06_a_cache_that_is_a_circle_is_one_line(
    ampsched_here: Ampsched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("apt-get") is None:
        pytest.skip("this computer has no apt")
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    monkeypatch.setenv("AMPSCHED_VM_CACHE", str(circle))
    from ampsched.vm.archive import Archive, selections

    with pytest.raises(OSError, match=f"symbolic links: '{circle}'"):
        Archive().folder(next(iter(selections())))
