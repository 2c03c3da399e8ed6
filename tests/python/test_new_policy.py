"""``ampsched new policy``: files to begin with."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, Ampsched

from ampsched import scaffold
from ampsched.policy import policies


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What of a checkout concerns policies; the current folder is within."""
    for part in (scaffold.POLICIES, scaffold.TEMPLATE.parent):
        shutil.copytree(ROOT / part, tmp_path / part)
    monkeypatch.chdir(tmp_path / "crates/policy")
    return tmp_path


def rows(root: Path) -> list[str]:
    """The registry's rows."""
    text = (root / scaffold.REGISTRY).read_text()
    return [found["module"] for found in scaffold._ROW.finditer(text)]


@pytest.mark.parametrize("name", ["aaa", "big-first", "hfee-b", "rz", "static-2", "stay", "zzz"])
def test_a_policy_in_rust_is_one_file_and_one_row(checkout: Path, ampsched_here: Ampsched, name: str) -> None:
    before = (checkout / scaffold.REGISTRY).read_text()
    done = ampsched_here("new", "policy", name)
    assert done.code == 0, done.err
    module = name.replace("-", "_")
    assert f"written: crates/policy/src/policies/{module}.rs" in done.out
    assert f"make try POLICY={name} " in done.out
    text = (checkout / scaffold.POLICIES / f"{module}.rs").read_text()
    assert f'name: "{name}",' in text
    assert "my-policy" not in text
    assert "MyPolicy" not in text
    after = (checkout / scaffold.REGISTRY).read_text()
    assert after.replace(f"        {module},\n", "") == before
    names = sorted([*(info.name for info in policies()), name])
    with_second_rows = [n for n in names if n != "hfee-as-published"]
    assert rows(checkout) == [{"static": "pinned"}.get(n, n.replace("-", "_")) for n in with_second_rows]


def test_make_new_needs_nothing_that_is_built(checkout: Path, ampsched_here: Ampsched) -> None:
    def alone(*names: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-I", "-S", ROOT / "python/ampsched/scaffold.py", *names]
        return subprocess.run(command, cwd=checkout, check=False, capture_output=True, text=True)

    done = alone("big-first")
    assert done.returncode == 0, done.stderr
    file = checkout / scaffold.POLICIES / "big_first.rs"
    written, registry = file.read_text(), (checkout / scaffold.REGISTRY).read_text()
    for name, text in {"big-first": "exists already", "yield": "is a word of Rust"}.items():
        refused = alone(name)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert text in refused.stderr
        assert len(refused.stderr.splitlines()) == 1
    assert alone().stderr == "error: name one policy: make new POLICY=big-first\n"
    file.unlink()
    shutil.copy(ROOT / scaffold.REGISTRY, checkout / scaffold.REGISTRY)
    assert ampsched_here("new", "policy", "big-first").out == done.stdout
    assert (file.read_text(), (checkout / scaffold.REGISTRY).read_text()) == (written, registry)


def test_every_registered_policy_has_a_row_that_is_read(checkout: Path) -> None:
    assert len(rows(checkout)) == len(policies()) - 1  # hfee has two


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("Big-First",), 'policy name "Big-First" is not made of lower-case words joined by "-"'),
        (("big_first",), "is not made of lower-case words"),
        (("b" * 41,), "(at most 40 characters)"),
        (("yield",), 'policy name "yield" is a word of Rust'),
        (("--python", "yield"), 'policy name "yield" is a word of Python'),
        (("cfs",), 'policy "cfs" exists already'),
        (("static-",), "is not made of lower-case words"),
        (("pinned",), 'policy "pinned" exists already'),
        (("support",), 'policy "support" exists already'),
        ((), "Missing argument"),
    ],
)
def test_names_that_cannot_be_used(
    checkout: Path, ampsched_here: Ampsched, arguments: tuple[str, ...], text: str
) -> None:
    before = (checkout / scaffold.REGISTRY).read_text()
    done = ampsched_here("new", "policy", *arguments)
    assert done.code == 2
    assert text in done.err
    assert done.err.count("\n") == 1
    assert (checkout / scaffold.REGISTRY).read_text() == before


def test_outside_of_a_checkout(
    tmp_path: Path, ampsched_here: Ampsched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = ampsched_here("new", "policy", "big-first")
    assert done.code == 2
    assert "is not in a checkout of ampsched" in done.err
    assert "ampsched new policy --python NAME" in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_policy_in_python_runs_as_it_is(
    tmp_path: Path, ampsched_here: Ampsched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = ampsched_here("new", "policy", "--python", "big-first")
    assert done.code == 0, done.err
    assert [path.name for path in tmp_path.iterdir()] == ["big_first.py"]
    command = done.out.splitlines()[-1].split()
    assert command[0] == "ampsched"
    ran = ampsched_here(*command[1:])
    assert ran.code == 0, ran.err
    assert "big-first" in ran.out
    again = ampsched_here("new", "policy", "--python", "big-first")
    assert again.code == 2
    assert "error: big_first.py exists already" in again.err
