"""What only the virtual machine by quotas can show: it runs commands on this computer's own root, on unequal cores."""

from pathlib import Path

from ampsched import vm


def test_a_command_runs_on_this_computers_root_and_big_cores_are_faster() -> None:
    done = vm.run(["sh", "-c", "cat /proc/sys/kernel/osrelease; ls /; exit 7"], limit_s=600)
    release, *names = done.output.split()
    assert (done.code, release) == (7, vm.KERNEL_RELEASE)
    assert set(names) >= {
        path.name for path in Path("/").iterdir() if path.is_dir() and path.name in ("usr", "etc")
    }
    speeds = vm.measure()
    assert speeds.ratio is not None
    # How much faster depends on this computer's load.
    assert speeds.ratio > 1
