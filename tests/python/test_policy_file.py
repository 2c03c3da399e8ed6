"""Policies in Python files, named where policies are named."""

import json
from pathlib import Path

import pytest
from conftest import Ampsched

import ampsched
from ampsched.policy import PolicySpec

MIX = ("-m", "2B2S", "-w", "sync-2")
SOURCE = '''
import ampsched
from helper import SHARE


class FastestFirst(ampsched.Policy):
    """The threads that gain most use the big cores."""

    epoch_ms = 10
    share = SHARE
    few = 1
    flag = False

    def epoch(self, view, plan):
        big = self.topology.big_cores()
        threads = sorted(view.runnable(), key=lambda thread: (-view.speedup(thread), thread))
        for position, thread in enumerate(threads):
            plan.allow(thread, big if position < self.share * len(big) else self.all_cores())


class Plain(ampsched.Policy):
    base = "cfs:latency_ms=6"


class Breaks(ampsched.Policy):
    epoch_ms = 1

    def epoch(self, view, plan):
        return 1 / 0


class Left(ampsched.Policy):
    def place(self, view, thread):
        return "left"


class Unmade(ampsched.Policy):
    def __init__(self):
        raise OSError("no luck")


class Stranger:
    pass
'''
LINE_OF_BREAK = SOURCE[: SOURCE.index("1 / 0")].count("\n") + 1


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with policies in it."""
    (tmp_path / "helper.py").write_text("SHARE = 1.0\n")
    (tmp_path / "mine.py").write_text(SOURCE)
    (tmp_path / "one.py").write_text("import ampsched\nclass One(ampsched.Policy):\n    pass\n")
    (tmp_path / "none.py").write_text("import ampsched\n")
    (tmp_path / "raises.py").write_text("x = 1\nimport nothing_like_this\n")
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit(3)\n")
    (tmp_path / "syntax.py").write_text("x = 1\ny = (\n")
    (tmp_path / "latin.py").write_bytes(b"# \xe9\n")
    monkeypatch.chdir(tmp_path)
    # The file's folder is added for its own modules.
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    monkeypatch.delitem(__import__("sys").modules, "helper", raising=False)
    return tmp_path


def test_they_mix_with_shipped_ones(folder: Path, ampsched_here: Ampsched) -> None:
    names = "cfs,mine.py:FastestFirst,mine.py:FastestFirst:share=0.5:few=2,mine.py:Plain,one.py"
    done = ampsched_here("compare", *MIX, "-p", names, "--json", "-j", "2", "--trace", "t.pftrace")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    labels = ["cfs", "FastestFirst", "FastestFirst:share=0.5:few=2", "Plain", "One"]
    assert found["policies"] == labels
    h_antt = {row["policy"]: row["h_antt"]["mean"] for row in found["summary"]}
    assert h_antt["FastestFirst"] != h_antt["FastestFirst:share=0.5:few=2"] != h_antt["cfs"]
    assert h_antt["One"] == h_antt["cfs"] != h_antt["Plain"]
    assert len(list(folder.glob("t.*.pftrace"))) == len(labels)


def test_the_api_takes_them_and_decides_alike(folder: Path) -> None:
    spec = PolicySpec.of("mine.py:FastestFirst:epoch_ms=2.5")
    assert spec.make is not None
    assert spec.make().epoch_ms == 2.5
    by_name = ampsched.simulate("2B2S", "sync-2", "mine.py:Plain")
    assert by_name.threads == ampsched.simulate("2B2S", "sync-2", "cfs:latency_ms=6").threads


def test_they_can_be_described(folder: Path, ampsched_here: Ampsched) -> None:
    done = ampsched_here("describe", "mine.py:FastestFirst")
    assert done.code == 0, done.err
    assert "The threads that gain most use the big cores." in done.out
    assert "parameter share = 1" in done.out
    found = json.loads(ampsched_here("describe", "mine.py:Plain", "--json").out)
    assert found == [{"kind": "policy", "text": "No docstring.", "base": "cfs:latency_ms=6", "params": {}}]


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        ("gone.py", "gone.py: cannot be read: No such file or directory"),
        ("latin.py", "latin.py: is not UTF-8 text (byte 2)"),
        (
            "mine.py",
            "policy mine.py: it has 5 subclasses of ampsched.Policy: name one of FastestFirst, Plain",
        ),
        ("none.py", "policy none.py: it has no subclass of ampsched.Policy"),
        (
            "mine.py:FastestFrist",
            'unknown class of mine.py "FastestFrist" (did you mean "FastestFirst"?)',
        ),
        ("none.py:X", 'unknown class of none.py "X" (it has no subclass of ampsched.Policy)'),
        ("mine.py:Stranger", "policy mine.py:Stranger: the class is not a subclass of ampsched.Policy"),
        ("raises.py", "policy raises.py:2: ModuleNotFoundError: No module named 'nothing_like_this'"),
        ("leaves.py", "policy leaves.py:2: SystemExit: 3"),
        ("syntax.py", "policy syntax.py:2: '(' was never closed"),
        ("mine.py:Unmade", "OSError: no luck"),
        ("mine.py:Breaks", f"policy mine.py:{LINE_OF_BREAK}: ZeroDivisionError: division by zero"),
        ("mine.py:Left", "policy mine.py: TypeError: place must return a core, not 'left'"),
        (
            "mine.py:FastestFirst:sahre=1",
            'policy FastestFirst has no parameter "sahre" (did you mean "share"?)',
        ),
        ("mine.py:Plain:x=1", 'policy Plain has no parameter "x" (the class declares no numbers)'),
        ("mine.py:FastestFirst:few=1.5", "few = 1.5 is not a whole number (write few = 1.0 in the class"),
        ("mine.py:FastestFirst:flag=2", "parameter flag = 2 is not 0 or 1"),
        ("mine.py:FastestFirst:few=1:few=2", "policy FastestFirst: parameter few is given twice"),
        ("mine.py:FastestFirst:epoch_ms=0", "epoch_ms = 0.0 is not within"),
        ("mine.py:FastestFirst:few", '"few" is not of the form parameter=number'),
    ],
)
def test_mistakes_are_one_line(folder: Path, ampsched_here: Ampsched, policy: str, text: str) -> None:
    done = ampsched_here("compare", *MIX, "-p", f"cfs,{policy}")
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert text in done.err
    assert done.err.count("\n") == 1


def test_they_do_not_run_live(folder: Path, ampsched_here: Ampsched) -> None:
    (folder / "mix.toml").write_text('[[programs]]\nname = "true"\ncommand = ["true"]\n')
    done = ampsched_here("live", "compare", "mix.toml", "-p", "one.py")
    assert done.code == 2
    assert 'policy "one.py": a policy in Python runs in simulation only; write it in Rust' in done.err


def test_bugs_of_the_simulator_are_not_blamed_on_the_policy(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise RuntimeError("invariant")

    monkeypatch.setattr("ampsched._core.simulate_python", broken)
    with pytest.raises(RuntimeError, match="invariant"):
        ampsched.simulate("2B2S", "sync-2", "one.py")
