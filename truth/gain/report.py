"""The report: what was measured, with intervals, and what the simulator says of the same mixes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from ampsched.experiments import plots
from ampsched.experiments.plots import Bar, Figure
from ampsched.markdown import wrapped
from ampsched.metrics import MixMetrics, mix_metrics
from ampsched.statistics import Estimate, estimate
from ampsched.vm import KERNEL_RELEASE
from truth.gain.measure import DILATION, POLICIES, SHAPE, Boot, Run
from truth.gain.mixes import Mix
from truth.gain.simulated import MIGRATE_NS, PAUSED_MIGRATE_NS, Simulator
from truth.gain.simulated import POLICIES as SIMULATED
from truth.report import table

TITLES = {"default": "EEVDF", "colab": "COLAB"}
AIM = 0.10
FIGURE = "h-antt"
NS_PER_S = 1e9


def title(policy: str) -> str:
    return TITLES.get(policy, policy)


@dataclass(frozen=True)
class Measured:
    """All rounds of a mix. Slowdowns are against the mean of each program alone."""

    mix: Mix
    runs: Sequence[Run]

    def of(self, policy: str, program: str) -> list[Run]:
        chosen = [run for run in self.runs if (run.policy, run.program) == (policy, program)]
        return sorted(chosen, key=lambda run: run.round)

    def alone_s(self, program: str) -> float:
        return fmean(run.alone_s for run in self.of(POLICIES[0], program))

    def turnaround_s(self, policy: str, program: str) -> Estimate:
        return estimate([run.turnaround_s for run in self.of(policy, program)])

    def metrics(self, policy: str) -> list[MixMetrics]:
        """One per round."""
        alone = [self.alone_s(program) * NS_PER_S for program in self.mix.programs]
        columns = [self.of(policy, program) for program in self.mix.programs]
        return [
            mix_metrics([run.turnaround_s * NS_PER_S for run in row], alone)
            for row in zip(*columns, strict=True)
        ]

    def value(self, policy: str, of: Callable[[MixMetrics], float]) -> Estimate:
        return estimate([of(each) for each in self.metrics(policy)])

    def change(self, policy: str, of: Callable[[MixMetrics], float]) -> Estimate:
        """Against the first policy, paired by round."""
        both = zip(self.metrics(policy), self.metrics(POLICIES[0]), strict=True)
        return estimate([of(own) / of(first) - 1 for own, first in both])

    def makespan_s(self, policy: str) -> Estimate:
        columns = [self.of(policy, program) for program in self.mix.programs]
        return estimate([max(run.turnaround_s for run in row) for row in zip(*columns, strict=True)])


@dataclass(frozen=True)
class Predicted:
    """The simulations of a mix: one per boot, with the speeds that the cores had then."""

    alone_s: Sequence[Sequence[float]]
    """By boot and program."""
    turnaround_s: dict[str, Sequence[Sequence[float]]]
    """By policy, boot and program."""

    def metrics(self, policy: str) -> list[MixMetrics]:
        return [
            mix_metrics([time_s * NS_PER_S for time_s in times], [time_s * NS_PER_S for time_s in alone])
            for times, alone in zip(self.turnaround_s[policy], self.alone_s, strict=True)
        ]

    def h_antt(self, policy: str) -> Estimate:
        return estimate([each.h_antt for each in self.metrics(policy)])

    def change(self, policy: str) -> Estimate:
        """Of H_ANTT, against the first policy."""
        both = zip(self.metrics(policy), self.metrics(POLICIES[0]), strict=True)
        return estimate([own.h_antt / first.h_antt - 1 for own, first in both])


def predict(mixes: Sequence[Mix], boots: Sequence[Boot], migrate_ns: int = MIGRATE_NS) -> list[Predicted]:
    with TemporaryDirectory() as folder:
        simulators = [Simulator(Path(folder), boot, migrate_ns) for boot in boots]
        return [
            Predicted(
                [simulator.alone_s(mix) for simulator in simulators],
                {policy: [each.turnarounds_s(mix, policy) for each in simulators] for policy in SIMULATED},
            )
            for mix in mixes
        ]


def h_antt(metrics: MixMetrics) -> float:
    return metrics.h_antt


def h_stp(metrics: MixMetrics) -> float:
    return metrics.h_stp


def plain(value: Estimate, digits: int = 3) -> str:
    return f"{value.mean:.{digits}f} ± {value.half_width:.{digits}f}"


def percent(value: Estimate) -> str:
    return f"{value.mean:+.1%} [{value.low:+.1%}, {value.high:+.1%}]"


def error(simulated: float, measured: float) -> str:
    return f"{simulated / measured - 1:+.1%}"


def mix_text(mix: Mix) -> str:
    programs_of = "; ".join(f"`{name}`: {scenario.what}" for name, scenario in mix.programs.items())
    return f"* `{mix.name}`, {mix.what}: {programs_of}."


def gains(all_measured: Sequence[Measured]) -> str:
    header = ["mix", "scheduler", "H_ANTT", "against EEVDF", "H_STP", "against EEVDF", "makespan (s)"]
    rows = [
        [
            f"`{measured.mix.name}`",
            title(policy),
            plain(measured.value(policy, h_antt)),
            "" if policy == POLICIES[0] else percent(measured.change(policy, h_antt)),
            plain(measured.value(policy, h_stp)),
            "" if policy == POLICIES[0] else percent(measured.change(policy, h_stp)),
            plain(measured.makespan_s(policy), 2),
        ]
        for measured in all_measured
        for policy in POLICIES
    ]
    return table(header, rows)


def mean_changes(all_measured: Sequence[Measured]) -> dict[str, Estimate]:
    """Change of H_ANTT against the first policy: the mean over mixes, round by round."""
    changes = {}
    for policy in POLICIES[1:]:
        by_mix = [
            [
                own.h_antt / first.h_antt - 1
                for own, first in zip(each.metrics(policy), each.metrics(POLICIES[0]), strict=True)
            ]
            for each in all_measured
        ]
        changes[policy] = estimate([fmean(round_) for round_ in zip(*by_mix, strict=True)])
    return changes


def verdict(all_measured: Sequence[Measured]) -> str:
    met = [each.mix.name for each in all_measured if each.change("colab", h_antt).mean <= -AIM]
    missed = [each.mix.name for each in all_measured if each.mix.name not in met]
    means = ", ".join(
        f"{title(policy)} {percent(change)}" for policy, change in mean_changes(all_measured).items()
    )
    names = [", ".join(f"`{name}`" for name in which) or "none" for which in (met, missed)]
    return (
        f"Mean change of H_ANTT over the mixes: {means}.\n\n"
        f"Aim: COLAB's H_ANTT at least {AIM:.0%} below EEVDF's. Met in: {names[0]}. Not met in: {names[1]}."
    )


def programs(all_measured: Sequence[Measured]) -> str:
    header = ["mix", "program", "alone (s)", *map(title, POLICIES)]
    rows = [
        [
            f"`{measured.mix.name}`",
            f"`{name}`",
            f"{measured.alone_s(name):.2f}",
            *(plain(measured.turnaround_s(policy, name), 2) for policy in POLICIES),
        ]
        for measured in all_measured
        for name in measured.mix.programs
    ]
    return table(header, rows)


def errors(all_measured: Sequence[Measured], predicted: Sequence[Predicted]) -> str:
    header = ["mix", "scheduler", "H_ANTT, kernel", "simulated", "error", "gain, kernel", "simulated"]
    rows = []
    for measured, ours in zip(all_measured, predicted, strict=True):
        for policy in SIMULATED:
            real, own = measured.value(policy, h_antt), ours.h_antt(policy)
            is_first = policy == POLICIES[0]
            rows.append(
                [
                    f"`{measured.mix.name}`",
                    title(policy),
                    plain(real),
                    plain(own),
                    error(own.mean, real.mean),
                    "" if is_first else percent(measured.change(policy, h_antt)),
                    "" if is_first else percent(ours.change(policy)),
                ]
            )
    return table(header, rows)


def pauses(
    all_measured: Sequence[Measured], predicted: Sequence[Predicted], paused: Sequence[Predicted]
) -> str:
    header = ["mix", "scheduler", "H_ANTT, kernel", "simulated", "error", "with late moves", "error"]
    rows = []
    for measured, ours, late in zip(all_measured, predicted, paused, strict=True):
        for policy in SIMULATED:
            real, row = measured.value(policy, h_antt), []
            for own in (ours.h_antt(policy), late.h_antt(policy)):
                row += [plain(own), error(own.mean, real.mean)]
            rows.append([f"`{measured.mix.name}`", title(policy), plain(real), *row])
    return table(header, rows)


def program_errors(all_measured: Sequence[Measured], predicted: Sequence[Predicted]) -> str:
    header = ["mix", "program", "what", "kernel (s)", "simulated", "error"]
    rows = []
    for measured, ours in zip(all_measured, predicted, strict=True):
        for number, name in enumerate(measured.mix.programs):
            cases = [("alone", measured.alone_s(name), ours.alone_s)]
            cases += [
                (title(policy), measured.turnaround_s(policy, name).mean, ours.turnaround_s[policy])
                for policy in SIMULATED
            ]
            for what, real, by_round in cases:
                own = fmean(times[number] for times in by_round)
                row = [what, f"{real:.2f}", f"{own:.2f}", error(own, real)]
                rows.append([f"`{measured.mix.name}`", f"`{name}`", *row])
    return table(header, rows)


def figure(all_measured: Sequence[Measured], predicted: Sequence[Predicted]) -> Figure:
    bars = []
    for measured, ours in zip(all_measured, predicted, strict=True):
        name = measured.mix.name
        bars += [Bar(name, "kernel", title(policy), measured.value(policy, h_antt)) for policy in POLICIES]
        bars += [Bar(name, "simulated", title(policy), ours.h_antt(policy)) for policy in SIMULATED]
    row = "H_ANTT (lower is better)"
    return Figure(FIGURE, "Mean slowdown", {row: tuple(bars)}, None)


def write(out: Path, mixes: Sequence[Mix], boots: list[Boot], runs: list[Run], notes: list[str]) -> None:
    """Writes report.md and the figure."""
    predicted, paused = predict(mixes, boots), predict(mixes, boots, PAUSED_MIGRATE_NS)
    all_measured = [Measured(mix, [run for run in runs if run.mix == mix.name]) for mix in mixes]
    plots.draw(figure(all_measured, predicted), out / f"{FIGURE}.svg")
    blocks = [
        "# What COLAB gains in a real kernel",
        INTRODUCTION.format(
            rounds=sum(len(boot.rounds) for boot in boots),
            boots=len(boots),
            kernel=KERNEL_RELEASE,
            big=SHAPE.big,
            little=SHAPE.little,
            period_ms=SHAPE.period_us / 1000,
        ),
        verdict(all_measured),
        f"![H_ANTT of each mix]({FIGURE}.svg)",
        "## Mixes",
        "\n".join(mix_text(mix) for mix in mixes),
        "## Gains",
        gains(all_measured),
        "Turnaround of each program in s:",
        programs(all_measured),
        "## Prediction and reality",
        PREDICTION.format(
            ratio=plain(estimate([boot.ratio for boot in boots]), 2),
            big=plain(estimate([boot.big_ns_per_iteration for boot in boots]), 2),
            dilation=DILATION,
        ),
        errors(all_measured, predicted),
        program_errors(all_measured, predicted),
        "## What pausing cores do",
        PAUSES.format(
            percent=SHAPE.little.percent,
            period_ms=SHAPE.period_us / 1000,
            late_ms=PAUSED_MIGRATE_NS / 1e6,
        ),
        pauses(all_measured, predicted, paused),
        "## What to bear in mind",
        LIMITS.format(dilation=DILATION),
        *(["Notes of the runs:\n\n" + "\n".join(f"* {note}" for note in notes)] if notes else []),
    ]
    (out / "report.md").write_text(wrapped("\n\n".join(blocks) + "\n"), encoding="utf-8")


INTRODUCTION = """Made by `make gain`: mixes of real programs under the kernel's own EEVDF, under our COLAB inside the \
kernel and under the sched_ext schedulers scx_bpfland 1.1.4 and scx_lavd 1.1.4, {rounds} times each. The computer is a \
virtual machine (Linux {kernel}) with {big.count} big cores, each {big.percent:g} % of a host core, and {little.count} \
little ones, each {little.percent:g} %, by CPU quotas with a period of {period_ms:g} ms; idle cores poll, so that they \
use up their share. It was booted {boots} times; in each boot schedulers and mixes have an order of their own, each \
scheduler is loaded once and runs all mixes, and that several times. Nothing was tuned: mixes and parameters were \
fixed before schedulers were compared, COLAB runs with its defaults, and all threads count as gaining the ratio of the \
cores' speeds, so that only *who waits for whom* tells threads apart.

H_ANTT is the mean slowdown of a mix's programs against running alone on the big cores (lower is better), H_STP the \
sum of their progress (higher is better). ± and brackets are 95 % intervals over repetitions; changes are paired by \
repetition."""

PREDICTION = """The simulator knows of this machine what was measured of its cores without a mix and nothing else: an \
iteration of the programs' work takes {big} ns on a big core, {ratio} times as long on a little one (each boot is \
simulated with its own speeds). EEVDF is simulated as it is, COLAB with its time {dilation} times slower, as in the \
kernel."""

PAUSES = """COLAB lets a big core without work take a thread that runs on a little one. A real little core gives it away \
within microseconds; one that has used up its {percent:g} % of a {period_ms:g} ms period does so when its next period \
begins, on average (1 - {percent:g} %)² x {period_ms:g} ms / 2 = {late_ms:.2f} ms later, while the big core waits. \
EEVDF hardly ever moves running threads. Here are the same simulations once more, with every move to the other cluster \
late by that time, which is computed from the quotas, not fitted. Where the late moves bring COLAB's prediction close \
to the kernel's result, its loss is the emulation's, not COLAB's; elsewhere the cause is not known. Each boot is \
simulated once, and chaotic schedules differ much: ± says how little a few boots tell."""

LIMITS = """* Slow cores by quotas are full-speed cores that pause: steps of the programs, some 10 to 60 ms, are as \
long as one to three periods of the quotas, so that a single step may be faster or slower than it would be on a core \
that is really slow.
* The machine's instructions are translated: what the kernel and schedulers do themselves takes ten to twenty times as \
long, what the programs compute does not. COLAB's epochs and slices are {dilation} times as long as its defaults for \
that reason, and so are the programs' steps. The other schedulers run as they are: their slices are as short as ever, \
which costs them more switches than on a real machine.
* All programs gain the same on big cores here. What COLAB makes of different speed-ups, this does not show.
* Programs are small and synthetic; they compute and wait, and use neither memory nor devices."""
