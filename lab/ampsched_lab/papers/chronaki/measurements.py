"""What is measured for the claims of Chronaki et al.: means over programs by method and configuration."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import NewType

from ampsched._core import InputError
from ampsched.statistics import Estimate
from ampsched_lab.papers.chronaki.runs import Metric, Results
from ampsched_lab.papers.chronaki.setup import (
    BARRIERS,
    CORES,
    EIGHT,
    FOUR,
    LOOPS,
    METHODS,
    PIPELINES,
    PROGRAMS,
    RATIOS,
    SPINNING,
    STATIC,
    TASK,
    WITH_LOOPS,
    Cores,
    Method,
)
from ampsched_lab.shared.claims.measured import Count, Measurements, Name, Number, Range, one_of, some_of

LITTLE, MIXED, BIG = FOUR
ALL_ON = EIGHT[-1]

Program = NewType("Program", str)
Programs = NewType("Programs", tuple[str, ...])
GROUPS = {"all": PROGRAMS, "pipelines": PIPELINES, "barriers": BARRIERS, "with loops": WITH_LOOPS}
ALL = Programs(PROGRAMS)


@dataclass(frozen=True, slots=True)
class On:
    """A method on a configuration."""

    method: Method
    cores: Cores


def _method(text: str) -> Method:
    methods = {method.name: method for method in (*METHODS, *LOOPS)}
    return methods[one_of("method", tuple(methods))(text)]


def _methods(text: str) -> tuple[Method, ...]:
    return tuple(map(_method, text.split(",")))


def _cores(text: str) -> Cores:
    cores = {str(cores): cores for cores in CORES}
    return cores[one_of("configuration", tuple(cores))(text)]


def _on(text: str) -> On:
    method, _, cores = text.rpartition(" ")
    if not method:
        raise InputError(f'"{text}" is no method with a configuration, such as "task 4+4"')
    return On(_method(method), _cores(cores))


def _programs(text: str) -> tuple[str, ...]:
    return GROUPS[text] if text in GROUPS else some_of("program or group", (*GROUPS, *PROGRAMS))(text)


measurement = Measurements(
    {
        Method: _method,
        tuple[Method, ...]: _methods,
        Cores: _cores,
        On: _on,
        Program: one_of("program", PROGRAMS),
        Programs: _programs,
    }
)
MEASUREMENTS = {"programs": measurement, "loops": measurement}
"""By part of the experiment; both have the same kind of results."""


@measurement
def mean(
    results: Results, *, methods: tuple[Method, ...], cores: Cores, metric: Metric = "speedup"
) -> Number:
    """The mean over programs and methods."""
    return Number(
        results.over_seeds(
            lambda seed: fmean(results.mean_of(metric, method, cores, seed) for method in methods)
        )
    )


@measurement
def spread(results: Results, *, methods: tuple[Method, ...], cores: Cores) -> Range:
    """The means over programs of the speed-up under several methods."""
    return Range.of([results.mean("speedup", method, cores).mean for method in methods])


@measurement
def change(
    results: Results, *, to: On, since: On, metric: Metric = "speedup", programs: Programs = ALL
) -> Number:
    """The relative change of the mean over programs."""
    return Number(results.change(metric, (to.method, to.cores), (since.method, since.cores), programs))


@measurement
def share_of_most_power(results: Results, *, method: Method, cores: Cores) -> Number:
    """Power / the most under any other method, or on any other four cores."""
    powers = {(each, where): results.mean("power_w", each, where) for each in METHODS for where in FOUR}
    ours = powers.pop((method, cores))
    most = max(power.mean for power in powers.values())
    share = Estimate(ours.mean / most, ours.low / most, ours.high / most, ours.n)
    return Number(share, text=f"{ours.mean:.2f} W, the others at most {most:.2f} W")


@measurement
def best_cores(results: Results, *, metric: Metric) -> Name:
    """The four cores with the least of a metric, if they are the same under all methods."""
    best = {
        method.name: min(FOUR, key=lambda cores: results.mean(metric, method, cores).mean)
        for method in METHODS
    }
    names = sorted({str(cores) for cores in best.values()})
    return Name(" or ".join(names), text=", ".join(f"{name} {cores}" for name, cores in best.items()))


@measurement
def back_at_speed(results: Results, *, method: Method) -> Name:
    """With which little cores beside four big ones a method first reaches the speed of big ones alone."""
    speeds = {cores: results.mean("speedup", method, cores).mean for cores in EIGHT}
    return Name(next((str(cores) for cores in EIGHT[1:] if speeds[cores] >= speeds[BIG]), "never"))


@measurement
def saves_energy_from(results: Results) -> Name:
    """With which little cores beside four big ones mean energy first falls below that of those alone."""
    energy = {
        cores: fmean(results.mean("energy", method, cores).mean for method in METHODS) for cores in EIGHT
    }
    return Name(next((str(cores) for cores in EIGHT[1:] if energy[cores] < energy[BIG]), "never"))


@measurement
def share_of_ideal(results: Results, *, program: Program, method: Method, cores: Cores) -> Number:
    """A program's speed-up / what no schedule exceeds."""
    ideal = cores.ideal(RATIOS[program])
    value = results.over_seeds(lambda seed: results.value("speedup", program, method, cores, seed) / ideal)
    return Number(value, text=f"{value.mean:.0%} of it")


@measurement
def fastest_with(results: Results, *, method: Method, cores: Cores, programs: Programs) -> Count:
    """How many programs are fastest with those cores."""
    best = (
        max(CORES, key=lambda where: results.mean("speedup", method, where, [program]).mean)
        for program in programs
    )
    return Count(sum(where == cores for where in best), len(programs))


@measurement
def greatest_change(results: Results, *, method: Method, programs: Programs) -> Number:
    """The greatest change against static threading with any number of little cores beside four big ones."""
    changes = {
        cores: results.change("speedup", (method, cores), (STATIC, cores), programs) for cores in EIGHT
    }
    most = max(changes, key=lambda cores: changes[cores].mean)
    return Number(changes[most], of=str(most))


@measurement
def mean_change(results: Results, *, method: Method, programs: Programs) -> Number:
    """The mean, over the same configurations, of the change against static threading."""
    return Number(
        results.over_seeds(
            lambda seed: fmean(
                results.mean_of("speedup", method, cores, seed, programs)
                / results.mean_of("speedup", STATIC, cores, seed, programs)
                - 1.0
                for cores in EIGHT
            )
        )
    )


@measurement
def greatest_gain(results: Results, *, method: Method, cores: Cores, programs: Programs) -> Number:
    """The change against static threading of the program that gains most."""
    gains = {
        program: results.change("speedup", (method, cores), (STATIC, cores), [program])
        for program in programs
    }
    most = max(gains, key=lambda program: gains[program].mean)
    return Number(gains[most], of=most)


@measurement
def lead(results: Results, *, program: Program, method: Method, cores: Cores) -> Number:
    """By how much a method is faster than the best of the others."""
    speeds = {each: results.mean("speedup", each, cores, [program]).mean for each in LOOPS}
    second = max((each for each in LOOPS if each != method), key=speeds.__getitem__)
    text = f"{method.name} {speeds[method]:.2f}, {second.name} {speeds[second]:.2f}"
    return Number(results.change("speedup", (method, cores), (second, cores), [program]), text=text)


@dataclass(frozen=True, slots=True)
class Facts:
    """What two tests say about the causes of misses; changes are relative ones of means over the programs."""

    idle_w: float
    """Power of the big cluster if it idles beside four little cores, not off; what follows is with it."""
    idle_power_w: float
    """Power of static threading on four little cores."""
    idle_best_cores: str
    """With which four cores energy x delay of task is best."""
    idle_edp_change: float
    """Of task, from four little cores to two of each kind."""
    idle_power_change: float
    """Of static threading with barrier programs, between the same."""
    idle_energy_change: float
    spinning_speedup_4_1: float
    """GTS if it never moves a thread down, from four big cores to those and a little one."""
    spinning_speedup: float
    """The same to four big and four little ones, as are the following."""
    spinning_speedups: str
    """Its speed-ups with 0 to 4 little cores beside four big ones."""
    spinning_bodytrack: float
    spinning_power: float
    spinning_energy: float
    spinning_edp: float
    spinning_against_static: float
    """Its speed-up against static threading on all cores."""

    @classmethod
    def of(cls, results: Results, idle_w: Mapping[Cores, float]) -> "Facts":
        """What results of the part "programs" say, and the power of idle clusters."""
        idle = results.with_idle_cluster(idle_w)
        edp = {cores: idle.mean("edp", TASK, cores).mean for cores in FOUR}

        def barriers(metric: Metric) -> float:
            return idle.change(metric, (STATIC, MIXED), (STATIC, LITTLE), BARRIERS).mean

        def spinning(metric: Metric, to: Cores = ALL_ON, programs: tuple[str, ...] = PROGRAMS) -> float:
            return results.change(metric, (SPINNING, to), (SPINNING, BIG), programs).mean

        line = [results.mean("speedup", SPINNING, cores).mean for cores in EIGHT]
        return cls(
            idle_w=idle_w[LITTLE],
            idle_power_w=idle.mean("power_w", STATIC, LITTLE).mean,
            idle_best_cores=str(min(edp, key=edp.__getitem__)),
            idle_edp_change=idle.change("edp", (TASK, MIXED), (TASK, LITTLE)).mean,
            idle_power_change=barriers("power_w"),
            idle_energy_change=barriers("energy"),
            spinning_speedup_4_1=spinning("speedup", EIGHT[1]),
            spinning_speedup=spinning("speedup"),
            spinning_speedups=", ".join(f"{value:.1f}" for value in line),
            spinning_bodytrack=spinning("speedup", programs=("bodytrack",)),
            spinning_power=spinning("power_w"),
            spinning_energy=spinning("energy"),
            spinning_edp=spinning("edp"),
            spinning_against_static=results.change("speedup", (SPINNING, ALL_ON), (STATIC, ALL_ON)).mean,
        )
