"""Where it is run: machines, kernels, and what schedules."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ampsched import Catalog
from ampsched.vm.archive import Archive
from ampsched.vm.exact import Exact, loader
from ampsched_lab.campaign.boot import KERNEL, Guest, Scheduler, ours
from ampsched_lab.gain.inputs import write_inputs
from ampsched_lab.gain.mixes import DATA, ROOT

LINUX = "6.18"
"""A long-term kernel on which all of them load."""
X86, ARM = "x86_64", "aarch64"
SYSTEMS = {architecture: f"{architecture}-{LINUX}" for architecture in (X86, ARM)}
"""Names of the results' folders, by architecture."""
PEERS = ("scx_bpfland", "scx_lavd")
OURS = (
    "abreast",
    "acfs",
    "equal-progress",
    "max-fair",
    "colab",
    "prop-sp",
    "hsp",
    "wash",
    "cfs",
    "eevdf",
    "a-dwrr",
    "rr",
    "amps",
    "camp",
    "colab-collaboration-only",
    "guaranteed-fairness",
    "max-perf",
    "min-fair",
    "rr-amp",
    "similarity",
    "static",
    "uniformity",
)
"""All that can run in a kernel without frequencies and counters, which these guests do not have."""
EARLIER = "abreast-first"
"""The first version of abreast; what was measured of it is kept."""
ALONE = "alone"
"""Goes before a machine's name for that of as many cores, all of the fastest type, on which programs run alone."""
MACHINES = {
    "2B2S": "2B2S",
    "1B3S": "4B4S:big=1:little=3",
    "4B4S": "4B4S",
    "2P4E": "tensor:little=2",
}
"""Shipped machines and parts of such. 2P4E has three classes: 2 Cortex-X1, 2 Cortex-A76 and 2 Cortex-A55."""


def exact(machine: str, architecture: str, *, alone: bool = False) -> Exact:
    """A virtual machine of the campaign, or that of as many fast cores."""
    own = Catalog.shipped().machine(MACHINES[machine])
    return Exact(own.all_big() if alone else own, kernel=LINUX, architecture=architecture)


@dataclass(frozen=True)
class Workshop:
    """Where compiled programs, inputs and the programs of schedulers are on this computer.

    Attributes:
        programs: Folder with one of programs per architecture.
        peers: Folder of the other schedulers' programs.
        inputs: Gets the inputs of real programs.
        loaders: Programs that put our policies into a kernel, by architecture, if not the installed ones.
    """

    programs: Path
    peers: Path
    inputs: Path
    loaders: Mapping[str, Path] = field(default_factory=dict)

    def guest(self, machine: str, architecture: str, *, alone: bool = False) -> Guest:
        """A machine of the campaign, or that of as many fast cores."""
        name = f"{ALONE}-{machine}" if alone else machine
        own = exact(machine, architecture, alone=alone)
        return Guest(name, own, self.programs / architecture, self._files(architecture))

    def kernel(self) -> Scheduler:
        """The kernel's own scheduler."""
        return Scheduler(KERNEL)

    def schedulers(self, architecture: str) -> list[Scheduler]:
        """The kernel's own, those of others, ours."""
        return [self.kernel(), *self._peers(architecture), *self._ours(architecture)]

    def _peers(self, architecture: str) -> list[Scheduler]:
        if architecture != X86:
            return []
        return [Scheduler(name, (str(self.peers / name),)) for name in PEERS]

    def _ours(self, architecture: str) -> list[Scheduler]:
        program = self.loaders.get(architecture) or loader(architecture)
        return [ours(policy, program) for policy in OURS]

    def _files(self, architecture: str) -> dict[Path, Path]:
        """Programs of Debian's archive below their root, and their inputs."""
        folder = Archive().folder(f"programs-{architecture}")
        placed = {ROOT / file.relative_to(folder): _inside(file, folder) for file in _entries(folder)}
        inputs = write_inputs(self.inputs)
        return (
            placed
            | {DATA / name: file for name, file in inputs.items()}
            | {ROOT / "run/empty": inputs["text"]}
        )


def _entries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_symlink() or path.is_file())


def _inside(path: Path, folder: Path) -> Path:
    """Where a file of a package is, if it is a link that begins at the package's root."""
    target = path.readlink() if path.is_symlink() else path
    return folder / target.relative_to("/") if path.is_symlink() and target.is_absolute() else path
