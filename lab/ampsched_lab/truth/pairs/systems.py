"""The systems of the comparison: exact machines with a kernel, on which big and little cores differ only by speed."""

from dataclasses import dataclass
from pathlib import Path

from ampsched import Catalog
from ampsched.vm.exact import Exact
from ampsched.vm.exact.costs import SHARES, ClassCosts
from ampsched_lab.campaign.boot import Guest

MACHINE = "2B2S"
MIPS = (1000.0, 400.0)
"""Of big and little cores: a ratio of 2.5 and no other difference."""
QUANTUM_US = 10.0
BESIDE = "eevdf"
"""The kernel's own, and what stands for it in the simulator."""


@dataclass(frozen=True)
class System:
    """A machine with a kernel whose own scheduler is compared.

    Attributes:
        name: Unique; names files.
        architecture: Of the kernel.
        kernel: Version that names it.
        machine: Name of the machine; names a folder.
        spec: The machine of the catalogue.
        governor: That of Linux which changes frequencies; without, they stay at the highest.
        costs: Whose costs it has, if they are not its own.
    """

    name: str
    architecture: str
    kernel: str
    machine: str = MACHINE
    spec: str = MACHINE
    governor: str | None = None
    costs: str = ""

    def exact(self) -> Exact:
        """The machine itself."""
        return exact_machine(self.architecture, self.kernel, self.spec, self.governor)

    def guest(self, programs: Path) -> Guest:
        """The machine with its programs.

        Args:
            programs: Folder with a folder of compiled programs for each architecture.
        """
        return Guest(self.machine, self.exact(), (programs / self.architecture).resolve())

    @property
    def sees(self) -> str:
        """How its kernel tells cores apart."""
        return "capacities" if self.architecture == "aarch64" else "nothing"

    @property
    def director_uclamp_min(self) -> int:
        """What a real-time thread asks for by default (``sched_util_clamp_min_rt_default``): all, if its kernel has
        clamps (``CONFIG_UCLAMP_TASK``) and tells capacities apart. Debian's arm64 kernels for clouds have none.
        """
        return 1024 if self.governor else 0

    @property
    def costs_name(self) -> str:
        """Of the file of costs."""
        return f"{BESIDE}-{self.costs or self.name}"

    def machine_file(self, folder: Path) -> Path:
        """Its machine's file for the simulator."""
        return folder / f"exact-{self.machine}-{BESIDE}-{self.name}.toml"


def _plain(architecture: str, kernel: str) -> System:
    return System(f"{architecture}-{kernel}", architecture, kernel)


def _energy(kernel: str) -> System:
    """With frequencies and the energy model of the HiKey 960; its costs are those at the highest frequencies."""
    plain = f"aarch64-{kernel}"
    return System(
        f"{plain}-energy",
        "aarch64",
        kernel,
        machine="hikey960-2B2S",
        spec="hikey960:little=2:big=2",
        governor="schedutil",
        costs=plain,
    )


SYSTEMS = (
    _plain("x86_64", "6.18"),
    _plain("x86_64", "7.3"),
    _plain("aarch64", "6.18"),
    _plain("aarch64", "7.3"),
    _energy("6.18"),
    _energy("7.3"),
)
"""Kernels of x86-64 do not know how fast a core is; those of arm64 read its capacity from the device tree."""
POLICY_OF = {each.name: f"linux:kernel={each.kernel}" for each in SYSTEMS}
"""What stands for each system's own scheduler in the simulator."""


def system(name: str) -> System:
    """The system of that name.

    Raises:
        ValueError: There is none.
    """
    found = [each for each in SYSTEMS if each.name == name]
    if not found:
        raise ValueError(f"{name}: one of {', '.join(each.name for each in SYSTEMS)}")
    return found[0]


def exact_machine(
    architecture: str = "x86_64", kernel: str = "6.18", spec: str = MACHINE, governor: str | None = None
) -> Exact:
    """Big and little cores that differ by nothing but their speed."""
    machine = Catalog.shipped().machine(spec)
    plain = (SHARES,) * 5
    speeds = [ClassCosts(round(mips * 1000), plain) for mips in speeds_of(machine.clusters)]
    return Exact(
        machine,
        kernel=kernel,
        architecture=architecture,
        quantum_us=QUANTUM_US,
        speeds=speeds,
        governor=governor,
    )


def speeds_of(clusters: list[tuple[str, str, int, int, int]]) -> list[float]:
    """Speed of each cluster's cores in million instructions per second: those of the highest class are big."""
    big = max(class_ for *_, class_ in clusters)
    return [MIPS[0] if class_ == big else MIPS[1] for *_, class_ in clusters]
