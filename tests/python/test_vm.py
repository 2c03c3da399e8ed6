"""The virtual machine, as far as it can be tested without one: scripts, quotas, refusals."""

from pathlib import Path

import pytest
from conftest import Ampsched

from ampsched import vm
from ampsched.vm.guest import Terminal, init_script
from ampsched.vm.kernel import PACKAGE, VERSION, fetch_kernel
from ampsched.vm.machine import _qemu
from ampsched.vm.shape import CpuGroups, cpu_groups
from ampsched.vm.speeds import evaluate


def script(*command: str, throttle: bool = False, terminal: Terminal | None = None) -> str:
    return init_script(
        command, Path("/a folder"), Path("/cache/config-6"), throttle=throttle, terminal=terminal
    )


def test_the_script_quotes_what_it_is_given() -> None:
    text = script("printf", "%s; rm -rf", "it's")
    assert """printf '%s; rm -rf' 'it'"'"'s' </dev/null""" in text
    assert "cd '/a folder'" in text
    assert "@" not in text.replace("#!/bin/sh", "")


def test_the_script_throttles_only_when_asked() -> None:
    assert "\nthrottle\n" in script("true", throttle=True)
    assert "\nthrottle\n" not in script("true")


def test_a_shell_has_a_terminal_of_its_own() -> None:
    text = script("bash", terminal=Terminal("xterm", 40, 120))
    assert "setsid -c bash" in text
    assert "stty sane rows 40 columns 120" in text
    assert "export TERM=xterm\n" in text


def test_quotas_are_shares_of_the_period() -> None:
    shape = vm.Shape(vm.CoreShape(2, 40), vm.CoreShape(1, 16.5))
    assert shape.quotas_us() == [40_000, 40_000, 16_500]


@pytest.mark.parametrize(
    ("big", "little", "text"),
    [
        (vm.CoreShape(2, 0.5), vm.CoreShape(2, 16), "big cores 2:0.5 % are not possible"),
        (vm.CoreShape(2, 40), vm.CoreShape(1, 101), "little cores 1:101 % are not possible"),
        (vm.CoreShape(0, 40), vm.CoreShape(0, 16), "needs a core"),
    ],
)
def test_impossible_cores_are_refused(big: vm.CoreShape, little: vm.CoreShape, text: str) -> None:
    with pytest.raises(vm.VmError, match=text):
        vm.Shape(big, little)


def test_batch_is_how_the_host_schedules_the_machine(tmp_path: Path) -> None:
    def command(*, batch: bool) -> list[str]:
        return _qemu(tmp_path / "vmlinuz", vm.Accelerator.TCG, vm.Shape(batch=batch), 512, tmp_path)

    assert command(batch=True) == ["chrt", "--batch", "0", *command(batch=False)]


def test_results_are_lines_of_json() -> None:
    output = 'begin\nRESULT {"a": 1}\nno RESULT 3\nRESULT [2.5]\n'
    assert vm.Outcome(0, output, "", timed_out=False).results() == [{"a": 1}, [2.5]]
    assert vm.Outcome(0, "", "", timed_out=False).results() == []


class FakeGroups:
    """A folder that looks like the root of control groups."""

    def __init__(self, root: Path, *, unified: bool) -> None:
        self.root = root if unified else root / "cpu"
        self.unified = unified
        self.root.mkdir(exist_ok=True)
        for name in self.files():
            (self.root / name).touch()
        if unified:
            (root / "cgroup.controllers").write_text("cpuset cpu io\n")

    def files(self) -> list[str]:
        if self.unified:
            return [
                "cgroup.procs",
                "cgroup.threads",
                "cgroup.subtree_control",
                "cgroup.type",
                "cpu.max",
                "cpu.weight",
            ]
        return ["tasks", "cpu.cfs_period_us", "cpu.cfs_quota_us", "cpu.shares"]


@pytest.mark.parametrize("unified", [False, True])
def test_each_thread_has_its_quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unified: bool) -> None:
    fake = FakeGroups(tmp_path, unified=unified)
    make, remove = Path.mkdir, Path.rmdir

    def make_group(path: Path) -> None:
        make(path)
        for name in fake.files():
            (path / name).touch()

    def remove_group(path: Path) -> None:
        for name in fake.files():
            (path / name).unlink()
        remove(path)

    monkeypatch.setattr(Path, "mkdir", make_group)
    monkeypatch.setattr(Path, "rmdir", remove_group)
    with cpu_groups("ours", tmp_path) as groups:
        groups.limit(1, {11: 40_000, 12: 16_000}, 100_000)
        folder = fake.root / "ours"
        if unified:
            assert (folder / "11" / "cpu.max").read_text() == "40000 100000"
            assert (folder / "12" / "cgroup.threads").read_text() == "12"
            assert (folder / "12" / "cgroup.type").read_text() == "threaded"
        else:
            assert (folder / "11" / "cpu.cfs_quota_us").read_text() == "40000"
            assert (folder / "12" / "tasks").read_text() == "12"
    assert not folder.exists()


def test_without_a_cpu_controller_nothing_is_slowed_down(tmp_path: Path) -> None:
    with pytest.raises(vm.VmError, match="has no CPU controller"):
        CpuGroups.find("ours", tmp_path)


def test_a_kernel_that_is_there_is_not_fetched(tmp_path: Path) -> None:
    image = tmp_path / f"vmlinuz-{vm.KERNEL_RELEASE}"
    image.touch()
    assert fetch_kernel(tmp_path) == image


def test_the_kernel_is_pinned() -> None:
    assert f"linux-image-{vm.KERNEL_RELEASE}" == PACKAGE
    assert VERSION.startswith(vm.KERNEL_RELEASE.split("+")[0])


def test_speeds_are_compared_by_kind() -> None:
    found = evaluate([500.0, 480.0, 200.0, 192.0], vm.Shape())
    assert found.ratio == pytest.approx(2.5)
    assert evaluate([5.0], vm.Shape(vm.CoreShape(1, 40), vm.CoreShape(0, 1))).ratio is None


def test_bad_cores_end_in_one_line(ampsched_here: Ampsched) -> None:
    ended = ampsched_here("vm", "run", "--big", "two", "--", "true")
    assert ended.code == 2
    assert (
        ended.err == 'error: --big "two" is not of the form CORES:PERCENT (two cores of 40 % each are 2:40)\n'
    )


def test_a_shell_needs_a_terminal(ampsched_here: Ampsched) -> None:
    ended = ampsched_here("vm", "shell")
    assert ended.code == 2
    assert ended.err.startswith("error: a shell needs a terminal")
