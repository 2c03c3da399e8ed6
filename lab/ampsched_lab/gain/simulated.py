"""The same mixes in the simulator, with the speeds that the virtual cores have for integer code and nothing else."""

import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import ampsched
from ampsched.vm.exact import Exact
from ampsched_lab.gain.machines import MACHINES
from ampsched_lab.gain.mixes import Chosen, Synthetic

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
FASTEST_MHZ = 3000
FITS = 4
"""Steps by which the clocks of slower cores are found."""
CLUSTER = """
[[clusters]]
name = "{name}"
core_type = "generic"
cores = {cores}
class = {rank}
opps = [{{ mhz = {mhz}, volt = 1.0 }}]
"""
HOG = """
[[threads]]
name = "hog"
cores = [{core}]
body = [{{ run_us = 1e5, profile = "blackscholes" }}]
"""


class Simulator:
    """Simulates mixes on a machine with cores as fast as those of a virtual one.

    The machine's own clocks are not taken: the simulator's programs have a profile, which gains by what it is, and
    those of the mixes are plain integer code. So each class is a generic core of a clock with which the profile is as
    many times slower than on the fastest as integer code is there.

    Args:
        folder: For its files.
        machine: Its name in the campaign.
        exact: The virtual machine.
        unit_us: What a MS of the mixes' work takes alone on its fastest cores (measured).
    """

    def __init__(self, folder: Path, machine: str, exact: Exact, unit_us: float) -> None:
        self.folder, self.unit_us = folder, unit_us
        speeds = [cluster.speed for cluster in exact.clusters()]
        self.cores = [len(cluster.cores) for cluster in exact.clusters()]
        self.ranks = [rank for *_, rank in exact.machine.clusters]
        self.ratios = [max(speeds) / speed for speed in speeds]
        self.costs = _costs(machine)
        self.mhz = [FASTEST_MHZ / ratio for ratio in self.ratios]
        # Memory does not become slower with the clock.
        for _ in range(FITS):
            found = self.found_ratios()
            self.mhz = [
                mhz * got / ratio for mhz, got, ratio in zip(self.mhz, found, self.ratios, strict=True)
            ]

    def turnarounds_ns(self, mix: Chosen, policy: str, offset: int) -> list[float]:
        """Turnaround of each program of a mix that begins with these offsets."""
        starts_us = mix.mix().starts_us(offset)
        apps = self.outcome(mix, policy, offset).apps
        return [app.turnaround_ns - start_us * 1000.0 for app, start_us in zip(apps, starts_us, strict=True)]

    def outcome(self, mix: Chosen, policy: str, offset: int) -> ampsched.Outcome:
        """All that the simulator says of a mix that begins with these offsets."""
        starts_us = mix.mix().starts_us(offset)
        apps = [
            (self._program(each, number, start_us), self._params(each, start_us))
            for number, (each, start_us) in enumerate(zip(synthetic(mix), starts_us, strict=True))
        ]
        return self._simulate(apps, policy, self._machine(self.cores, self.mhz))

    def alone_ns(self, mix: Chosen) -> list[float]:
        """Turnaround of each program alone on as many of the fastest cores."""
        count = sum(self.cores)
        machine = self._machine([count], [FASTEST_MHZ])
        return [
            float(
                self._simulate([(self._program(each, 0, 0), self._params(each, 0))], "eevdf", machine)
                .apps[0]
                .turnaround_ns
            )
            for each in synthetic(mix)
        ]

    def found_ratios(self) -> list[float]:
        """How many times slower than the fastest a core of each cluster is."""
        machine = self._machine(self.cores, self.mhz)
        program = self.folder / "hog.toml"
        firsts = [sum(self.cores[:cluster]) for cluster in range(len(self.cores))]
        took = []
        for core in firsts:
            program.write_text(HOG.format(core=core), "utf-8")
            took.append(ampsched.simulate(machine, program, "eevdf").apps[0].turnaround_ns)
        return [each / min(took) for each in took]

    def _program(self, each: Synthetic, number: int, start_us: int) -> Path:
        """The program with a start of its own."""
        text = (PROGRAMS / f"{each.program}.toml").read_text("utf-8")
        text = text.replace("[[threads]]\n", f"[[threads]]\nstart_us = {start_us}\n")
        path = self.folder / f"{each.program}-{number}.toml"
        path.write_text(text, "utf-8")
        return path

    def _params(self, each: Synthetic, start_us: int) -> str:
        works = {f"{name}_us": work * self.unit_us for name, work in each.works.items()}
        numbers = {name.replace("-", "_"): float(value) for name, value in each.numbers.items()}
        if "nice" in each.texts:
            numbers["threads"] = float(len(each.texts["nice"].split(",")))
        return ", ".join(f"{name} = {value!r}" for name, value in {**works, **numbers}.items())

    def _simulate(self, apps: Sequence[tuple[Path, str]], policy: str, machine: Path) -> ampsched.Outcome:
        rows = "\n".join(
            f'  {{ name = "{number}", program = "{program}", params = {{ {params} }} }},'
            for number, (program, params) in enumerate(apps)
        )
        workload = self.folder / "mix.workload.toml"
        workload.write_text(f'[workloads.mix]\ndescription = "A mix"\napps = [\n{rows}\n]\n', "utf-8")
        return ampsched.simulate(machine, workload, policy, limit_s=60)

    def _machine(self, cores: Sequence[int], mhz: Sequence[float]) -> Path:
        ranks = self.ranks if len(cores) == len(self.ranks) else [0]
        clusters = "".join(
            CLUSTER.format(name=f"c{number}", cores=count, rank=rank, mhz=round(clock))
            for number, (count, rank, clock) in enumerate(zip(cores, ranks, mhz, strict=True))
        )
        path = self.folder / "machine.toml"
        path.write_text(f'name = "machine"\ndescription = "A virtual one"\n{clusters}{self.costs}', "utf-8")
        return path


def synthetic(mix: Chosen) -> list[Synthetic]:
    """The programs of a mix that the simulator knows; all of them, or it is refused."""
    found = [each for each in mix.programs.values() if isinstance(each, Synthetic)]
    if len(found) != len(mix.programs):
        raise ValueError(f"mix {mix.name} has programs that cannot be simulated")
    return found


def _costs(machine: str) -> str:
    """What switches, moves and wake-ups cost, as the shipped machine's file has it."""
    base = MACHINES[machine].partition(":")[0]
    text = (files("ampsched") / "data/machines" / f"{base}.toml").read_text("utf-8")
    costs: Mapping[str, object] = tomllib.loads(text)["costs"]
    return "\n[costs]\n" + "\n".join(f"{name} = {value}" for name, value in costs.items()) + "\n"
