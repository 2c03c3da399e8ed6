"""``ampsched machine``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ampsched._core import InputError, format_cpus
from ampsched.catalog import THIS
from ampsched.cli import render
from ampsched.files import check_target, shown, write_text

if TYPE_CHECKING:
    from ampsched.machine_file.facts import MachineFacts

EXAMPLES = render.examples(
    "ampsched machine --out my-laptop.toml",
    "ampsched machine phone.txt --out phone.toml",
    "ampsched machine --collector > collect.sh",
)


def machine(
    source: Annotated[
        str,
        typer.Argument(
            help="'this' computer; or a saved tree of /sys (folder, tar, what --collector's script prints), "
            "lscpu -J, lscpu -e -J, hwloc's XML, a device tree (.dtb, .dts), LISA's plat_info."
        ),
    ] = "this",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write the machine to this .toml file; without it, print it."),
    ] = None,
    collector: Annotated[
        bool,
        typer.Option("--collector", help="Print a shell script that collects everything ampsched reads."),
    ] = False,
) -> None:
    """Write a machine file for this computer or another, from that one's files.

    Comments in it say of each number who states it or that it is an estimate, and what is not known. It can be used at
    once: ``-m FILE``. Where a machine is asked for, ``this`` means this computer at that moment. Nothing is measured;
    ``ampsched calibrate`` measures speeds.
    """
    from ampsched.machine_file import saved
    from ampsched.machine_file.making import make
    from ampsched.machine_file.sources import opened

    if collector:
        typer.echo(saved.collector(), nl=False)
        return
    if out is not None and out.suffix != ".toml":
        raise InputError(f"--out {out} does not end with .toml")
    check_target("--out", out)
    name = out.stem if out else THIS if source == THIS else Path(source).stem or "computer"
    with opened(source) as found:
        made = make(found, shown(name))
    if out is None:
        typer.echo(made.text, nl=False)
        return
    write_text(out, made.text)
    for line in _summary(made.facts):
        typer.echo(line)
    typer.echo(f"written: {shown(out)}")


def _summary(facts: "MachineFacts") -> list[str]:
    lines = []
    for cluster in facts.clusters:
        threads = ", two threads per core" if cluster.threads_per_core > 1 else ""
        stated, simulated = (f"{each or 0:.0f}" for each in (cluster.capacity, cluster.simulated_capacity))
        told = f"{stated} (simulated: {simulated})" if stated != simulated else stated
        speed = f", capacity {told}" if cluster.capacity else ""
        power = ", power" if cluster.power else ""
        lines.append(
            f"{cluster.name}: CPUs {format_cpus(cluster.cpus)}, {cluster.core_type.value}, "
            f"up to {cluster.mhz[-1]} MHz{threads}{speed}{power}"
        )
    return [*lines, *(f"not known: {lack}" for lack in facts.lacks)]
