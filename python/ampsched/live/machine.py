"""Classes, speeds and power of this computer's cores by a machine file, where the kernel does not tell them."""

from collections.abc import Iterator, Sequence
from os import PathLike

from ampsched._core import InputError, Machine, core_domains, core_kinds, format_cpus
from ampsched.catalog import Catalog
from ampsched.files import shown

FLAGS = ("--machine", "-m")
_BY_HAND = ("--big", "--middle", "--little", "--ratio", "--power")


def with_machine(arguments: Sequence[str], root: str | PathLike[str] = "/") -> list[str]:
    """Arguments of ``ampsched-live`` with what a machine says of cores in place of ``--machine NAME``.

    Args:
        arguments: As given; what stands behind ``--`` is the command's.
        root: The folder that stands for ``/``.

    Raises:
        InputError: The machine is not known or is not this computer, or classes are stated by hand, too.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept, names = [], []
    words = iter(arguments[:end])
    for word in words:
        flag, equals, value = word.partition("=")
        if flag not in FLAGS:
            kept.append(word)
        elif name := value if equals else next(words, ""):
            names.append(name)
        else:
            raise InputError(f"{flag} needs a machine: a name, a file, or this")
    if not names:
        return list(arguments)
    given = [flag for flag in _BY_HAND if any(word.partition("=")[0] == flag for word in kept)]
    if given or len(names) > 1:
        raise InputError(f"--machine {shown(names[0])} states what cores are; leave out "
                         f"{given[0] if given else f'--machine {shown(names[1])}'}")  # fmt: skip
    return [*kept, *_classes(names[0], root), *arguments[end:]]


def _classes(name: str, root: str | PathLike[str]) -> list[str]:
    """The options that state a machine's classes, once it is known to be this computer."""
    machine = Catalog.shipped().machine(name)
    place = f"--machine {shown(name)}"
    if any(machine.bounds()):
        raise InputError(f"{place}: this computer's kernel bounds clocks (scaling_min_freq, scaling_max_freq): "
                         "name the machine without bounds")  # fmt: skip
    domains, evidence = core_domains(root)
    by_kernel = {cpu: class_ for cpus, class_, *_ in domains for cpu in cpus}
    if machine.cores != len(by_kernel):
        told = format_cpus(sorted(by_kernel))
        raise InputError(f"{place}: has {machine.cores} cores, this computer {len(by_kernel)} (CPUs {told})")
    cluster_of = dict(zip(sorted(by_kernel), machine.cluster_of_core, strict=True))
    why = next(_contradictions(machine, cluster_of, by_kernel, evidence, root), None)
    if why:
        raise InputError(f"{place}: is not this computer: {why}")
    return _options(machine, cluster_of, place)


def _contradictions(
    machine: Machine,
    cluster_of: dict[int, int],
    by_kernel: dict[int, int],
    evidence: str,
    root: str | PathLike[str],
) -> Iterator[str]:
    """What a machine says of CPUs and the kernel says otherwise."""
    kinds = core_kinds(set(cluster_of), root)
    type_of = {cpu: kind.core_type for kind in kinds if kind.is_known for cpu in kind.cpus}
    own = {
        place: [cpu for cpu in cluster_of if cluster_of[cpu] == place] for place in set(cluster_of.values())
    }
    for place, cpus in own.items():
        what = f"cluster {machine.clusters[place][0]} has CPUs {format_cpus(cpus)}, which"
        types = sorted({type_of[cpu] for cpu in cpus if cpu in type_of})
        if len(types) > 1:
            yield f"{what} are {' and '.join(types)} here"
        if len({by_kernel[cpu] for cpu in cpus}) > 1:
            yield f"{what} are of different speeds here ({evidence})"
    for slow, low in own.items():
        for fast, high in own.items():
            is_slower = machine.clusters[slow][4] < machine.clusters[fast][4]
            if is_slower and by_kernel[low[0]] > by_kernel[high[0]]:
                yield f"CPUs {format_cpus(low)} are faster than {format_cpus(high)} here ({evidence})"


def _options(machine: Machine, cluster_of: dict[int, int], place: str) -> list[str]:
    classes = [class_ for *_, class_ in machine.clusters]
    count = max(classes) + 1
    if count == 1:
        raise InputError(f"{place}: its cores are all of one class, nothing is to be stated")
    cpus = [[cpu for cpu, own in cluster_of.items() if classes[own] == class_] for class_ in range(count)]
    speeds = [
        max(machine.energy_model(own)[-1][1] for own, of in enumerate(classes) if of == class_)
        for class_ in range(count)
    ]
    ratios = [speeds[-1] / speed for speed in speeds[-2::-1]]
    if any(fast >= slow for fast, slow in zip([1.0, *ratios], ratios, strict=False)):
        raise InputError(f"{place}: two classes are equally fast; give their clusters one class")
    little, *between, big = map(format_cpus, cpus)
    middle = [f"--middle={each}" for each in reversed(between)]
    ratio = f"--ratio={','.join(f'{each:.4g}' for each in ratios)}"
    return [f"--big={big}", *middle, f"--little={little}", ratio, *_power(machine, cluster_of)]


def _power(machine: Machine, cluster_of: dict[int, int]) -> list[str]:
    """The power of busy cores, of the clusters of which it is known."""
    found = []
    for place in range(len(machine.clusters)):
        points = machine.energy_model(place)
        if all(power_mw > 0 for *_, power_mw in points):
            cpus = format_cpus([cpu for cpu, own in cluster_of.items() if own == place])
            found.append(f"--power={cpus}={','.join(f'{mhz}:{power_mw:.6g}' for mhz, _, power_mw in points)}")
    return found
