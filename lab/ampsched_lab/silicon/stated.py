"""What device trees state of cores' speeds (capacity-dmips-mhz), beside what was measured and what is simulated."""

from collections.abc import Iterator, Sequence
from statistics import mean

from ampsched.machine_file.core_types import modelled
from ampsched_lab.silicon.chip import Kind
from ampsched_lab.silicon.data import chips, rows
from ampsched_lab.silicon.judge import Row

TREES = {
    "tensor-g1": "gs101-oriole",
    "snapdragon-845": "sdm845-mtp",
    "snapdragon-865": "sm8250-mtp",
    "s922x": "meson-g12b-odroid-n2-plus",
}
"""Of chips whose operating points come from other data."""


def _per_mhz(chip: str) -> dict[str, float]:
    """capacity-dmips-mhz of each cluster that the chip's tree states, by its order among the tree's groups."""
    clusters = chips()[chip]["clusters"]
    of_tree = [str(cluster["opps"]).split(":") for cluster in clusters]
    tree = TREES.get(chip) or next((place[1] for place in of_tree if place[0] == "tree"), "")
    stated = list(
        dict.fromkeys(
            (row["cpus"], row["core"], row["capacity_dmips_mhz"])
            for row in rows("trees")
            if row["tree"] == tree
        )
    )
    if len(stated) != len(clusters):
        return {}
    pairs = zip(clusters, stated, strict=True)
    return {cluster["name"]: float(found[2]) for cluster, found in pairs if found[2]}


def errors(found: Sequence[Row]) -> Iterator[tuple[Row, float, float]]:
    """Of each ratio of kinds: the error of what the tree states, and of the simulation made as fast as that."""
    for row in found:
        if row.question not in {"coremark", "seven-zip"}:
            continue
        per_mhz, kinds = _per_mhz(row.chip), {kind.name: kind for kind in Kind.of(row.chip)}
        pair = row.what.split(" / ")
        if not all(name in per_mhz for name in pair):
            continue
        slow, fast = (kinds[name] for name in pair)
        stated = per_mhz[slow.name] * slow.mhz / (per_mhz[fast.name] * fast.mhz)
        low, high = modelled([(kind.core_type, kind.mhz) for kind in (slow, fast)])
        yield row, stated / row.measured - 1, row.simulated * stated / (low / high) / row.measured - 1


def means(found: Sequence[Row]) -> dict[str, str]:
    """What the page says of it."""
    every = list(errors(found))
    of = {
        "stated_points": str(len(every)),
        "stated_chips": str(len({row.chip for row, *_ in every})),
        "stated_simulated": f"{mean(abs(row.error) for row, *_ in every):.0%}",
        "stated_scaled": f"{mean(abs(scaled) for *_, scaled in every):.0%}",
    }
    for question, name in (("coremark", "stated_coremark"), ("seven-zip", "stated_seven_zip")):
        of[name] = f"{mean(abs(stated) for row, stated, _ in every if row.question == question):.0%}"
    return of
