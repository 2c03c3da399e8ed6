"""`ampsched live --machine`: classes and speeds of cores by a machine file."""

import os
from pathlib import Path

import pytest
from computers import CPU, Files, collected, laptop, phone, write
from conftest import Ampsched

from ampsched import InputError
from ampsched.live.machine import with_machine
from ampsched.machine_file.making import make
from ampsched.machine_file.sources import opened

COSTS = "[costs]\ncontext_switch_ns = 1\nmigrate_same_cluster_ns = 1\nmigrate_cross_cluster_ns = 1\nwakeup_latency_ns = 1\n"


def machine(folder: Path, *clusters: tuple[str, object, int, float]) -> str:
    """A machine file; clusters as core type, cores, class and relative speed."""
    text = "".join(
        f'[[clusters]]\nname = "c{place}"\ncore_type = "{core_type}"\ncores = {cores}\nclass = {class_}\n'
        f"relative_speed = {speed}\nopps = [{{ mhz = 1000, volt = 1.0 }}]\n"
        for place, (core_type, cores, class_, speed) in enumerate(clusters)
    )
    (folder / "m.toml").write_text(text + COSTS)
    return str(folder / "m.toml")


def silent(cpus: int) -> Files:
    """A computer whose kernel says nothing of its cores."""
    return {f"{CPU}/online": f"0-{cpus - 1}"}


ALIKE = ("cortex-a53", [0, 1], 0, 0.5), ("cortex-a53", [2, 4], 2, 1.0), ("cortex-a53", [3, 5], 1, 0.8)


def test_classes_and_ratios_are_those_of_the_file(tmp_path: Path) -> None:
    file, root = machine(tmp_path, *ALIKE), write(tmp_path / "root", silent(6))
    stated = ["--big=2,4", "--middle=3,5", "--little=0-1", "--ratio=1.25,2"]
    for given in (["--machine", file], ["-m", file], [f"--machine={file}"]):
        arguments = ["-p", "camp", *given, "--quiet", "--", "make", "--machine", "x"]
        rest = ["--", "make", "--machine", "x"]
        assert with_machine(arguments, root) == ["-p", "camp", "--quiet", *stated, *rest]
    assert with_machine(["-p", "camp"], root) == ["-p", "camp"]


def test_cores_are_the_cpus_that_are_online_in_their_order(tmp_path: Path) -> None:
    file = machine(tmp_path, ("cortex-a53", 2, 0, 0.5), ("cortex-a53", 2, 1, 1))
    root = write(tmp_path / "root", {f"{CPU}/online": "0,2-3,7"})
    assert with_machine(["-m", file], root) == ["--big=3,7", "--little=0,2", "--ratio=2"]


def test_a_hybrid_whose_kernel_tells_no_speeds_gets_them(tmp_path: Path) -> None:
    file = machine(tmp_path, ("golden-cove", 8, 1, 1), ("golden-cove", 8, 0, 0.625))
    root = write(tmp_path / "root", laptop())
    assert with_machine(["-m", file], root) == ["--big=0-7", "--little=8-15", "--ratio=1.6"]


def test_powers_are_those_of_the_energy_model(tmp_path: Path) -> None:
    path = tmp_path / "phone.txt"
    path.write_text(collected(phone()))
    with opened(str(path)) as source:
        (tmp_path / "phone.toml").write_text(make(source, "phone").text)
    root = write(tmp_path / "root", {f"{CPU}/online": "0-7"})
    assert with_machine(["-m", str(tmp_path / "phone.toml")], root)[-2:] == [
        "--power=0-3=300:20,1056:60,1766:154",
        "--power=4-7=825:160,1996:560,2803:1508",
    ]


@pytest.mark.parametrize(
    ("clusters", "files", "expected"),
    [
        (ALIKE, silent(4), "has 6 cores, this computer 4 (CPUs 0-3)"),
        (
            (("cortex-a53", 4, 1, 1), ("cortex-a53", 4, 0, 0.5)),
            phone(),
            "is not this computer: CPUs 4-7 are faster than 0-3 here (cpu_capacity)",
        ),
        (
            (("cortex-a53", 2, 0, 0.5), ("cortex-a53", 6, 1, 1)),
            phone(),
            "is not this computer: cluster c1 has CPUs 2-7, which are ",
        ),
        ((("cortex-a53", 2, 0, 1), ("cortex-a53", 2, 0, 1)), silent(4), "its cores are all of one class"),
        ((("cortex-a53", 2, 0, 1), ("cortex-a53", 2, 1, 1)), silent(4), "two classes are equally fast"),
    ],
)  # fmt: skip
def test_another_computer_is_refused(
    clusters: tuple[tuple[str, object, int, float], ...], files: Files, expected: str, tmp_path: Path
) -> None:
    file, root = machine(tmp_path, *clusters), write(tmp_path / "root", files)
    with pytest.raises(InputError) as raised:
        with_machine(["-m", file], root)
    assert str(raised.value).startswith(f"--machine {file}: {expected}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--machine"], "--machine needs a machine: a name, a file, or this"),
        (["-m="], "-m needs a machine"),
        (["-m", "a", "-m", "b"], "--machine a states what cores are; leave out --machine b"),
        (["-m", "a", "--ratio=2"], "--machine a states what cores are; leave out --ratio"),
        (["-m", "none.toml"], "none.toml: cannot be read: No such file or directory"),
        (["-m", "2B2Z"], 'unknown machine "2B2Z"'),
    ],
)
def test_wrong_arguments(arguments: list[str], expected: str) -> None:
    with pytest.raises(InputError) as raised:
        with_machine(arguments)
    assert str(raised.value).startswith(expected)


def test_the_commands_take_it(ampsched_here: Ampsched, tmp_path: Path) -> None:
    refused = [
        ampsched_here("live", name, "-m", machine(tmp_path, ("cortex-a53", 4096, 0, 1)))
        for name in ("run", "doctor")
    ]
    mix = tmp_path / "mix.toml"
    mix.write_text('[[programs]]\ncommand = "true"\n')
    refused.append(ampsched_here("live", "compare", str(mix), "-m", str(tmp_path / "m.toml")))
    for each in refused:
        assert each.code == 2
        assert f"m.toml: has 4096 cores, this computer {os.cpu_count()} (CPUs" in each.err
        assert each.err.count("\n") == 1


@pytest.mark.skipif(
    (os.cpu_count() or 1) < 2, reason="SKIPPED: one CPU only, so there are no two classes of cores"
)
def test_the_doctor_has_the_classes_and_powers(ampsched_process: Ampsched, tmp_path: Path) -> None:
    rest = (os.cpu_count() or 1) - 1
    file = Path(machine(tmp_path, ("cortex-a53", 1, 1, 1), ("cortex-a53", rest, 0, 0.5)))
    file.write_text(file.read_text().replace("relative", "power = { dynamic_uw_per_mhz_v2 = 100 }\nrelative"))
    finished = ampsched_process("live", "doctor", "--machine", str(file))
    assert finished.code == 0, finished.err
    assert "big 0, little 1" in finished.out
    assert "(stated by hand)" in finished.out
    assert "a busy core 100 mW at 1000 MHz to 100 mW at 1000 MHz (stated by hand)" in " ".join(
        finished.out.split()
    )
