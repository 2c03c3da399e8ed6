"""The measurement of what a policy gains: its form, without a virtual machine.

How much is gained is measured by `make gain`.
"""

import subprocess
from pathlib import Path

import pytest
from truth.gain import measure, report
from truth.gain.mixes import MIXES
from truth.gain.simulated import Simulator

from ampsched import vm
from ampsched.live import MixProgram, run_programs
from ampsched.vm.accelerator import Accelerator
from ampsched.vm.machine import _qemu

SOURCES = Path(__file__).resolve().parents[2] / "truth/programs"
BOOTS = [measure.Boot([1], 3.0, 7.5), measure.Boot([2], 3.1, 7.8)]
RUNS = [
    measure.Run(number, mix.name, policy, program, 8.0 + number - (policy == "colab"), 4.0)
    for boot in BOOTS
    for number in boot.rounds
    for mix in MIXES
    for policy in measure.POLICIES
    for program in mix.programs
]


def test_measurements_are_kept_as_they_are() -> None:
    kept = measure.from_json(measure.to_json(BOOTS, RUNS, ["a note"]))
    assert kept == (BOOTS, RUNS, ["a note"])


def test_the_simulated_machine_is_as_unequal_as_the_measured_one(tmp_path: Path) -> None:
    simulator = Simulator(tmp_path, measure.Boot([1], 3.0, 9.0))
    assert simulator.simulated_ratio() == pytest.approx(3.0, rel=0.01)


def test_the_report_has_every_mix_and_its_picture(tmp_path: Path) -> None:
    report.write(tmp_path, MIXES, BOOTS, RUNS, [])
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert (tmp_path / "h-antt.svg").exists()
    for mix in MIXES:
        assert f"| `{mix.name}` | COLAB |" in text
    # Turnarounds of 9 and 10 s become 8 and 9 s: -11.1 % and -10 %.
    assert "Mean change of H_ANTT over the mixes: COLAB -10.6% [-17.6%, -3.5%]" in text
    assert "Met in: `locks`, `pipelines`, `hogs`. Not met in: none." in text


@pytest.mark.parametrize("mix", MIXES, ids=lambda mix: mix.name)
def test_the_programs_of_a_mix_run_as_they_are_called(mix, tmp_path: Path) -> None:
    for name in {scenario.program for scenario in mix.programs.values()}:
        sources = [SOURCES / f"{name}.c", SOURCES / "truth.c"]
        subprocess.run(["cc", "-O1", "-std=gnu11", "-pthread", "-o", tmp_path / name, *sources], check=True)
    for row in mix.commands(tmp_path):
        # Amounts stand behind their names; a thousandth of them is enough here.
        words = [
            str(max(1, int(word) // 1000)) if word.isdigit() and int(word) > 1000 else word
            for word in row["command"]
        ]
        assert run_programs([MixProgram(row["name"], tuple(words))], [], limit_s=60)[0] > 0


def test_cores_can_be_kept_busy(tmp_path: Path) -> None:
    steady = _qemu(tmp_path, Accelerator.TCG, vm.Shape(steady=True), 512, tmp_path)
    plain = _qemu(tmp_path, Accelerator.TCG, vm.Shape(), 512, tmp_path)
    words = [set(command[command.index("-append") + 1].split()) for command in (steady, plain)]
    assert words[0] - words[1] == {"idle=poll"}
