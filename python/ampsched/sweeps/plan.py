"""Which simulations a sweep consists of, and the key of each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampsched._core import InputError, Machine, Workload
from ampsched.api import MachineLike, WorkloadLike, core_orders
from ampsched.catalog import Catalog, is_path
from ampsched.factors import Factors
from ampsched.files import read_text
from ampsched.models import FOLDER as MODELS
from ampsched.models import SUFFIX as MODEL_SUFFIX
from ampsched.noise import Noise
from ampsched.placed import Placed, has_recordings, noise_of
from ampsched.policy import Policy, PolicySpec
from ampsched.ranges import Range
from ampsched.settings import CoreOrders, MixSettings, complete, declared
from ampsched.sweeps import code
from ampsched.sweeps.digests import content_of, sha
from ampsched.sweeps.grid import Axes, Pattern, sampled
from ampsched.sweeps.work import Point, Thing, options_of

if TYPE_CHECKING:
    from ampsched.recording.model_error import ModelError

OPTIONS = ("factors", "noise", "overhead", "governor")
"""Settings that can be varied."""
SweptPolicy = str | type[Policy]
POINTS_MAX = 10_000_000


@dataclass(frozen=True, slots=True)
class Known:
    """What verdicts need to know of a workload on a machine.

    Attributes:
        apps: How many applications it has; 0: not known.
        has_durations: Whether each of them states how long it runs.
        model_error: The model's own, if it was measured for such programs.
        against: Why it is no basis of advice, a reason each.
    """

    apps: int = 0
    has_durations: bool = False
    model_error: "ModelError | None" = None
    against: tuple[str, ...] = ()

    @staticmethod
    def of(
        workload: Workload, model_error: "ModelError | None" = None, against: Sequence[str] = ()
    ) -> "Known":
        """What is known of a workload."""
        has_durations = all(each is not None for each in workload.durations_ns)
        return Known(len(workload.apps), has_durations, model_error, tuple(against))


@dataclass(frozen=True, slots=True)
class Plan:
    """The simulations of a sweep, those that share baselines side by side."""

    points: tuple[Point, ...]
    baseline: str
    """The policy that others are measured against."""
    files: tuple[str, ...]
    """Files of the catalogue, beside the shipped ones."""
    mixes: Mapping[tuple[str, str], Known] = field(default_factory=dict)
    """By names of machine and workload."""

    def can_be_sent(self) -> bool:
        """Whether all is named by texts, which mean something to other processes."""
        things = {each for point in self.points for each in (point.machine, point.workload)}
        return all(isinstance(each.given, str) for each in things)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a sweep is asked for."""

    machines: Sequence[MachineLike]
    workloads: Sequence[WorkloadLike]
    policies: Sequence[SweptPolicy]
    options: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Texts of settings that are varied; those not named have their defaults."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The other settings of `compare`."""
    core_order: CoreOrders = "both"
    seeds: Sequence[int] = (1,)
    files: tuple[str, ...] = ()
    sample: int | None = None
    """How many combinations to take by chance, instead of all."""
    sample_seed: int = 1


def plan(wanted: Wanted) -> Plan:
    """The simulations that are asked for.

    Raises:
        InputError: If something does not exist or is wrong, comes twice, or there are too many.
    """
    maker = _Maker(wanted)
    groups: dict[tuple[str, ...], list[str]] = {}
    for choice in maker.choices():
        policy = choice.pop("policy")
        groups.setdefault(tuple(choice.values()), []).append(policy)
    points: list[Point] = []
    for place, policies in groups.items():
        points += maker.points(dict(zip(maker.axes.patterns, place, strict=False)), policies)
        Range(1, POINTS_MAX).check("number of simulations", len(points))
    return Plan(tuple(points), maker.baseline, wanted.files, maker.mixes)


class _Maker:
    """Makes points of texts, and reads each text once."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.catalog = Catalog.shipped().with_files(*wanted.files) if wanted.files else Catalog.shipped()
        self.objects: dict[str, object] = {}
        given: dict[str, Sequence[object]] = {
            "machine": wanted.machines,
            "workload": wanted.workloads,
            **{
                name: wanted.options.get(name, [str(declared(MixSettings)[name].setting.default)])
                for name in OPTIONS
            },
            "policy": wanted.policies,
        }
        self.axes = Axes({name: self._patterns(name, values) for name, values in given.items()})
        self.baseline = self._baseline()
        self._things: dict[tuple[str, str], Thing] = {}
        self._machines: dict[str, Machine] = {}
        self._digests: dict[tuple[str, ...], str] = {}
        self._known: dict[tuple[str, str], Known] = {}
        self._recorded: dict[str, bool] = {}
        self.mixes: dict[tuple[str, str], Known] = {}

    def _patterns(self, axis: str, values: Sequence[object]) -> list[Pattern]:
        if not values:
            raise InputError(f"no {axis} is given")
        found = [self._pattern(axis, value) for value in values]
        texts = [pattern.parts for pattern in found]
        for text in texts:
            if texts.count(text) > 1:
                raise InputError(f'{axis} "{"..".join(text)}" is given twice')
        return found

    def _pattern(self, axis: str, value: object) -> Pattern:
        if isinstance(value, str | Path):
            return Pattern.of(str(value).strip(), axis)
        if isinstance(value, type) and issubclass(value, Policy):
            name = value.label()
        elif axis == "policy":
            raise InputError(
                f"policy {value!r}: in a sweep a policy is a text or a subclass of Policy, so that it can be told "
                "what has changed and be sent to other processes"
            )
        elif isinstance(value, Machine | Workload):
            name = value.name
        else:
            name = str(value)
        self.objects[name] = value
        return Pattern((name,), (), ())

    def _baseline(self) -> str:
        first = self.axes.patterns["policy"][0]
        if self.wanted.sample is None:
            return next(iter(first.all()))
        if first.values:
            raise InputError(
                f'policy "{self.wanted.policies[0]}": others are measured against the first policy; of a sample it has '
                "no range (put one such as linux before it)"
            )
        return first.filled(())

    def choices(self) -> Iterable[dict[str, str]]:
        """The combinations; of a sample each with the first policy, too."""
        count = self.wanted.sample
        if count is None:
            return self.axes.all()
        Range(1, POINTS_MAX).check("sample", count)
        rest = list(self.axes.patterns["policy"])[1:]
        if not rest:
            raise InputError("a sample needs a second policy: the first is what others are measured against")
        found = sampled(Axes({**self.axes.patterns, "policy": rest}), count, self.wanted.sample_seed)
        first = {tuple(each.values())[:-1]: {**each, "policy": self.baseline} for each in found}
        return [*first.values(), *found]

    def points(self, place: Mapping[str, str], policies: Sequence[str]) -> Iterable[Point]:
        """All seeds and core orders of some policies at one place."""
        machine, workload = self._thing("machine", place["machine"]), self._placed(place)
        for key, digest in (
            ((machine.name,), machine.digest),
            ((machine.name, workload.name), workload.digest),
        ):
            if self._digests.setdefault(key, digest) != digest:
                raise InputError(
                    f'"{key[-1]}" is the name of two different files: sweep them one by one; ampsched compare tells them apart'
                )
        key = (place["machine"], place["workload"])
        self.mixes[machine.name, workload.name] = self._known.get(key) or self._known["", key[1]]
        options, digest = self._options(place)
        things = [self._thing("policy", policy) for policy in dict.fromkeys(policies)]
        about = [
            sha(
                code.engine(),
                machine.name,
                machine.digest,
                workload.name,
                workload.digest,
                digest,
                each.name,
                each.digest,
            )
            for each in things
        ]
        orders = core_orders({"core_order": self.wanted.core_order}, self._machines[place["machine"]])
        for seed in self.wanted.seeds:
            for order in orders:
                for each, start in zip(things, about, strict=True):
                    yield Point(machine, workload, each, options, order, seed, sha(start, order, str(seed)))

    def _placed(self, place: Mapping[str, str]) -> Thing:
        """The workload at a place: of a recording, what it is on that machine."""
        text = place["workload"]
        if not self._is_recorded(text):
            return self._thing("workload", text)
        key = (place["machine"], text)
        if key not in self._things:
            found = Placed.of(self.catalog, text, self._machines[place["machine"]])
            error = found.conditions.model_error if found.conditions else None
            against = found.conditions.against if found.conditions else ()
            self._known[key] = Known.of(found.workload, error, against)
            self._things[key] = Thing(found.workload.name, _sent(text), content_of(found.workload))
        return self._things[key]

    def _is_recorded(self, text: str) -> bool:
        """Whether a workload has recordings: its file is read once, not at each place."""
        if text not in self._recorded:
            self._recorded[text] = has_recordings(self.catalog, self.objects.get(text, text))
        return self._recorded[text]

    def _thing(self, axis: str, text: str) -> Thing:
        if (axis, text) not in self._things:
            self._things[axis, text] = self._read(axis, text)
        return self._things[axis, text]

    def _read(self, axis: str, text: str) -> Thing:
        given: Any = self.objects.get(text, text)
        sent = _sent(given)
        match axis:
            case "machine":
                machine = self.catalog.machine(given)
                self._machines[text] = machine
                return Thing(machine.name, sent, content_of(machine))
            case "workload":
                workload = self.catalog.workload(given)
                self._known["", text] = Known.of(workload)
                return Thing(workload.name, sent, content_of(workload))
            case _:
                spec = PolicySpec.of(given)
                is_file = isinstance(given, str) and spec.file is not None
                sent = str(Path.cwd() / given) if is_file else given
                return Thing(spec.label, sent, code.of_policy(given, spec))

    def _options(self, place: Mapping[str, str]) -> tuple[tuple[tuple[str, Any], ...], str]:
        """Settings at a place, and a digest of what they mean."""
        noise = noise_of(place["noise"], has_recordings=self._is_recorded(place["workload"]))
        given = {**self.wanted.settings, **{name: place[name] for name in OPTIONS}, "noise": str(noise)}
        settings = complete(MixSettings, given)
        options = options_of(settings)
        means = [
            _model(Factors.of(settings["factors"])),
            Noise.of(settings["noise"]).text,
        ]
        shown = [f"{name}={value}" for name, value in options if name not in ("seed", "check")]
        return options, sha(*shown, *means)


def _sent(given: Any) -> Any:  # noqa: ANN401 (what is given)
    """What a worker gets that may be in another folder."""
    is_file = isinstance(given, str) and is_path(given.partition(":")[0])
    return str(Path.cwd() / given) if is_file else given


def _model(factors: Factors) -> str:
    """What a source of speed-ups reads: a file, or one of the shipped ones, chosen by the machine."""
    if factors.kind != "predicted":
        return ""
    if factors.model.endswith(MODEL_SUFFIX):
        return read_text(Path(factors.model))
    return sha(
        *(each.read_text(encoding="utf-8") for each in sorted(MODELS.iterdir(), key=lambda each: each.name))
    )
