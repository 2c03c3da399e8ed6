"""What was asked for, so that a page can say how to repeat it and look closer at single runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ampsched import _core, api
from ampsched._core import InputError, Machine
from ampsched.catalog import Catalog
from ampsched.execution import ordered
from ampsched.placed import noise_beside
from ampsched.policy import PolicyLike
from ampsched.settings import SimulateSettings, catalog_of, declared, only
from ampsched.turns import Timeline


@dataclass(frozen=True, slots=True)
class Asked:
    """What a result came from, as far as that is known; a result that was read from a file knows names only.

    Attributes:
        command: What to type to get the same.
        machines: By the machines' names.
        workloads: By the workloads' names, what was given for them.
        policies: By the policies' labels.
        settings: Those of the simulations; none if they are not known.
    """

    command: str = ""
    machines: Mapping[str, Machine] = field(default_factory=dict)
    workloads: Mapping[str, api.WorkloadLike] = field(default_factory=dict)
    policies: Mapping[str, PolicyLike] = field(default_factory=dict)
    settings: Mapping[str, Any] | None = None

    @staticmethod
    def of(
        machines: Sequence[api.MachineLike],
        workloads: Sequence[api.WorkloadLike],
        policies: Sequence[PolicyLike],
        settings: Mapping[str, Any],
        command: str = "",
    ) -> "Asked":
        """What was given to `ampsched.simulate` or `ampsched.compare`."""
        from ampsched.policy import PolicySpec

        catalog = catalog_of(settings)  # type: ignore[arg-type]
        on = [catalog.machine(each) for each in machines]
        mixes = [catalog.workload(each) for each in workloads]
        noise = noise_beside(settings["noise"], *workloads, catalog=catalog)
        return Asked(
            command,
            {each.name: each for each in on},
            {each.name: given for each, given in zip(mixes, workloads, strict=True)},
            {PolicySpec.of(each).label: each for each in policies},
            {**settings, "noise": noise},
        )

    def machine(self, name: str, core_order: str = "as-is") -> Machine | None:
        """The machine of that name with its cores in an order: a given one, else the shipped one, if there is any."""
        found = self.machines.get(name)
        if found is None:
            try:
                found = Catalog.shipped().machine(name)
            except InputError:
                return None
        return ordered(found, core_order)  # type: ignore[arg-type]

    def timeline(self, run: Mapping[str, Any]) -> Timeline | None:
        """The turns of one run, which is simulated again; none if not everything is known that it needs.

        Args:
            run: Machine, workload, policy, seed, core order.
        """
        if self.settings is None:
            return None
        machine, workload = self.machines.get(run["machine"]), self.workloads.get(run["workload"])
        policy = self.policies.get(run["policy"])
        if machine is None or workload is None or policy is None:
            return None
        again = {"seed": run["seed"], "core_order": run["core_order"]}
        settings = only(SimulateSettings, {**self.settings, **again})
        return api.timeline(machine, workload, policy, **settings)

    def stated(self) -> list[tuple[str, str]]:
        """Settings that are not the usual ones, and those that every reader wants to know."""
        if self.settings is None:
            return []
        always = ("factors", "noise", "seed", "repeat", "core_order")
        rows = []
        for name, row in declared(api_settings(self.settings)).items():
            value = self.settings.get(name)
            if name in ("catalog", "jobs", "check"):
                continue
            if name in always or str(value) != str(row.setting.default):
                rows.append((name.replace("_", " "), "none" if value is None else str(value)))
        return rows


def api_settings(settings: Mapping[str, Any]) -> type:
    """The class that declares these settings."""
    from ampsched.settings import CompareSettings

    return CompareSettings if "repeat" in settings else SimulateSettings


def known_policy(label: str) -> tuple[str, str, str] | None:
    """What a shipped policy does, when to use it, and its parameters, given ones first; none if it is not shipped."""
    from ampsched.policy import policy_info
    from ampsched.spec import parse_spec

    try:
        name, given = parse_spec(label, "policy")
        info = policy_info(name)
        _core.check_policy(name, list(given))
    except InputError:
        return None
    values = dict(given)

    def told(*, are_given: bool) -> str:
        params = [param for param in info.params if (param.name in values) == are_given]
        return ", ".join(
            f"{each.name} = {each.shown(values.get(each.name, each.default))}" for each in params
        )

    own, usual = told(are_given=True), told(are_given=False)
    params = "; ".join(each for each in (own, usual and f"by default: {usual}") if each)
    return info.summary, info.part("When to use"), params
