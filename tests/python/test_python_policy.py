"""Policies written in Python: the same decisions give the same results as in Rust."""

import pytest

import ampsched
from ampsched import Event, Pick, Plan, Policy, Topology, View


class Pinned(Policy):
    """`static`, written anew."""

    events = ("lifecycle",)

    def start(self, topology: Topology) -> None:
        super().start(topology)
        self.seen: dict[int, int] = {}

    def on_event(self, view: View, event: Event, plan: Plan) -> None:
        if event.kind == "added":
            app = view.app(event.thread)
            number = self.seen.get(app, 0)
            self.seen[app] = number + 1
            plan.allow(event.thread, [number % self.topology.core_count])


class RoundRobin(Policy):
    """`rr`, by replacing rules of `cfs`."""

    rules = {  # noqa: RUF012
        "queues": "global",
        "order": "fifo",
        "steal": [],
        "kick_idle": True,
        "slice_ms": 1.0,
        "wake_preemption": False,
        "sleeper_credit_ms": 0,
        "fork_debit": False,
        "balance": False,
    }


def run(policy: object, workload: str = "sync-2") -> ampsched.Outcome:
    return ampsched.simulate("2B2S", workload, policy, check=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("workload", ["sync-2", "rand-5", "single-ferret"])
@pytest.mark.parametrize(("mine", "shipped"), [(Pinned, "static"), (RoundRobin, "rr")])
def test_twins_decide_alike(mine: type[Policy], shipped: str, workload: str) -> None:
    ours, theirs = run(mine, workload), run(shipped, workload)
    assert ours.policy == mine.__name__
    assert ours.threads == theirs.threads
    assert ours.counts == theirs.counts


def test_hooks_that_ask_the_rules_change_nothing() -> None:
    class Asking(RoundRobin):
        def place(self, view: View, thread: int) -> int:
            return view.by_rules_place(thread)

        def pick(self, view: View, core: int) -> Pick:
            return view.by_rules_pick(core)

        def slice_ns(self, view: View, thread: int, core: int) -> int:
            return view.by_rules_slice_ns(thread, core)

        def preempts(self, view: View, woken: int, running: int, core: int) -> bool:
            return view.by_rules_preempts(woken, running, core)

    assert run(Asking).threads == run("rr").threads


def test_hooks_decide() -> None:
    class Long(RoundRobin):
        def slice_ns(self, view: View, thread: int, core: int) -> int:
            return 10_000_000

    class OneCore(Policy):
        rules = {"balance": False}  # noqa: RUF012  # else threads come into queues that no core serves

        def place(self, view: View, thread: int) -> int:
            return 0

        def pick(self, view: View, core: int) -> Pick:
            queued = view.queued(core)
            return Pick.run(queued[0]) if core == 0 and queued else Pick.idle()

    assert run(Long).counts.switches < run("rr").counts.switches / 2
    assert [core.busy_ns > 0 for core in run(OneCore, "sync-1").cores] == [True, False, False, False]


def test_epoch_sees_the_system() -> None:
    class Watcher(Policy):
        epoch_ms = 10
        seen: list[tuple[int, int, float]] = []  # noqa: RUF012

        def epoch(self, view: View, plan: Plan) -> None:
            threads = view.threads()
            assert set(view.runnable()) <= set(threads)
            for thread in threads:
                assert view.state(thread) in ("ready", "running", "blocked")
                assert view.stats(thread).run_ns <= view.now_ns
                assert view.vruntime_ns(thread) >= 0
                assert view.blame_ns(thread) >= 0
                assert view.may_run(thread, 0)
            for core in self.all_cores():
                running = view.running(core)
                assert running is None or view.core(running) == core
                assert len(view.queued(core)) == view.queue_len(core)
                idle = view.running(core) is None and not view.queued(core)
                assert view.is_idle(core) == idle
            self.seen.append((view.now_ns, len(threads), view.speedup(threads[0])))

    outcome = run(Watcher, "sync-1")
    times = [time_ns for time_ns, _, _ in Watcher.seen]
    assert times[:2] in ([0, 10_000_000], [10_000_000, 20_000_000])
    assert times[-1] <= outcome.makespan_ns
    assert Watcher.seen[0][1] == 4
    assert Watcher.seen[0][2] > 1.5
    assert outcome.threads == run("cfs", "sync-1").threads


def test_plan_moves_threads() -> None:
    class LittleOnly(Policy):
        epoch_ms = 1
        rules = {"order": "highest_rank", "allocator": "least_loaded_in_class", "charge": "progress"}  # noqa: RUF012

        def epoch(self, view: View, plan: Plan) -> None:
            for thread in view.threads():
                plan.allow(thread, self.topology.little_cores())
                plan.weight(thread, 2048)
                plan.rank(thread, 1)
                plan.prefer(thread, "little")
                plan.speed(thread, [1.0, 2.0])

    outcome = run(LittleOnly, "sync-1")
    assert sum(thread.big_ns for thread in outcome.threads) <= 4 * 1_100_000


@pytest.mark.parametrize("speed", [63.5, 1e-9, 0.0, float("inf"), float("nan")])
def test_low_speeds_that_cannot_be_held_are_refused(speed: float) -> None:
    class Fast(Policy):
        epoch_ms = 1
        rules = {"allocator": "least_loaded_in_class", "charge": "progress"}  # noqa: RUF012

        def epoch(self, view: View, plan: Plan) -> None:
            for thread in view.threads():
                plan.speed(thread, [1.0, speed])

    with pytest.raises(
        ValueError, match=r"needs 1 to 4 speeds, each within 1/1024 to 63, not \[1\.0, "
    ) as caught:
        run(Fast, "sync-1")
    assert caught.value.__notes__ == ["under policy Fast"]


def test_a_change_that_no_rule_reads_is_refused() -> None:
    class Prefers(Policy):
        epoch_ms = 1

        def epoch(self, view: View, plan: Plan) -> None:
            for thread in view.threads():
                plan.prefer(thread, "big")

    with pytest.raises(
        ampsched.InputError, match="policy Prefers asks for `prefer`, which none of its rules reads"
    ) as caught:
        run(Prefers, "sync-1")
    assert "allocator = least_loaded_in_class" in str(caught.value)


def test_a_rule_that_reads_load_needs_load_that_is_tracked() -> None:
    """Without it nothing was ever balanced, silently."""

    class Saves(Policy):
        rules = {"balance_when": "over_utilised"}  # noqa: RUF012

    with pytest.raises(
        ampsched.InputError,
        match="policy Saves has the rule balance_when = over_utilised, which reads tracked load, but its needs do not "
        "name load_tracking",
    ):
        run(Saves, "sync-1")

    class Tracks(Saves):
        load_tracking = "by_work"

    assert run(Tracks, "sync-2").counts.migrations > 0

    class OfBase(Saves):
        base = "eas"

    run(OfBase, "sync-1")


def test_each_simulation_gets_a_fresh_policy() -> None:
    class Once(Policy):
        epoch_ms = 10
        used = False

        def start(self, topology: Topology) -> None:
            super().start(topology)
            assert not self.used
            self.used = True

        def epoch(self, view: View, plan: Plan) -> None:
            pass

    for policy in (Once, Once(), lambda: Once()):
        result = ampsched.compare("2B2S", "sync-1", ["cfs", policy], repeat=2)
        assert {run.policy for run in result.runs} == {"cfs", "Once"}
        cfs, mine = (result.select("2B2S", "sync-1", name) for name in ("cfs", "Once"))
        assert [run.outcome.threads for run in cfs] == [run.outcome.threads for run in mine]


def test_view_is_only_lent() -> None:
    class Keeper(Policy):
        epoch_ms = 10
        kept: View

        def epoch(self, view: View, plan: Plan) -> None:
            type(self).kept = view

    run(Keeper, "sync-1")
    with pytest.raises(RuntimeError, match="only while the simulation calls the policy"):
        _ = Keeper.kept.now_ns


def failing(method: str, value: object) -> type[Policy]:
    """A policy with a method that returns a value, or raises it."""

    def body(*_: object) -> object:
        if isinstance(value, Exception):
            raise value
        return value

    return type("Failing", (Policy,), {method: body, **({"epoch_ms": 1} if method == "epoch" else {})})


@pytest.mark.parametrize(
    ("method", "value", "error", "text"),
    [
        ("epoch", KeyError("lost"), KeyError, "lost"),
        ("on_event", ZeroDivisionError("nothing"), ZeroDivisionError, "nothing"),
        ("place", 99, ampsched.InputError, "policy Failing places thread 0 on core 99"),
        ("place", "left", TypeError, "place must return a core, not 'left'"),
        ("pick", 3, TypeError, "pick must return a Pick"),
        ("pick", Pick.run(77), ampsched.InputError, "policy Failing picks thread 77"),
        ("slice_ns", 0, ValueError, "slice_ns must return at least 1000 ns, not 0"),
        ("slice_ns", 1.5, TypeError, "slice_ns must return a whole number of ns, not 1.5"),
        ("preempts", None, TypeError, "preempts must return True or False, not None"),
    ],
)
def test_mistakes_of_a_policy_are_reported(
    method: str, value: object, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        run(failing(method, value), "sync-2")


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({"base": "cfss"}, 'unknown policy "cfss" (did you mean "cfs"?)'),
        ({"base": "cfs:latency_ms=-1"}, "latency_ms = -1 is not within 0 to 1000"),
        ({"epoch_ms": 10}, "policy Wrong: epoch and epoch_ms go together"),
        ({"epoch": lambda *_: None}, "policy Wrong: epoch and epoch_ms go together"),
        ({"epoch": lambda *_: None, "epoch_ms": 0}, "epoch_ms = 0 is not within"),
        ({"events": ("live",)}, "unknown group of events of policy"),
        ({"rules": {"ordre": "fifo"}}, 'unknown rule "ordre" (did you mean "order"?)'),
        ({"rules": {"order": "lifo"}}, "rule order = 'lifo' is not one of fifo, vruntime"),
        ({"rules": {"slice_ms": 0}}, "rule slice_ms = 0 is not a number of ms within 0.001"),
        ({"rules": {"kick_idle": "yes"}}, "rule kick_idle = 'yes' is not True or False"),
        ({"rules": {"steal": ["moon"]}}, "rule steal = ['moon'] is not a list of own_cluster"),
        ({"rules": {"balance": True}}, "rule balance = True is not False"),
    ],
)
def test_impossible_policies_are_refused(members: dict[str, object], text: str) -> None:
    with pytest.raises(ampsched.InputError) as caught:
        run(type("Wrong", (Policy,), members))
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_things_that_are_no_policy_are_refused() -> None:
    for thing in (3, lambda: 3, dict):
        with pytest.raises(TypeError, match="a policy is a name"):
            run(thing)


def test_views_refuse_what_does_not_exist() -> None:
    class Lost(Policy):
        epoch_ms = 1
        question = staticmethod(lambda view: view.core(500))

        def epoch(self, view: View, plan: Plan) -> None:
            type(self).question(view)

    with pytest.raises(IndexError, match="thread 500 does not exist"):
        run(Lost)
    Lost.question = staticmethod(lambda view: view.running(9))
    with pytest.raises(IndexError, match=r"core 9 does not exist \(cores 0 to 3\)"):
        run(Lost)


class Slow(Policy):
    """CFS with all clocks at their lowest."""

    base = "cfs"
    epoch_ms = 1.0

    def epoch(self, view: View, plan: Plan) -> None:
        for cluster, lowest in enumerate([200, 200]):
            assert view.frequency_mhz(cluster) in self.topology.frequencies_mhz(cluster)
            plan.set_frequency(cluster, lowest)


def test_a_policy_sets_frequencies() -> None:
    outcome = ampsched.simulate("exynos5422-2B2S", "single-blackscholes", Slow)
    assert [cluster.residency[0][0] for cluster in outcome.clusters] == [200, 200]
    assert all(cluster.frequency_changes == 1 for cluster in outcome.clusters)
    assert outcome.clusters[0].mean_mhz < 210
    assert (
        outcome.makespan_ns
        > 3 * ampsched.simulate("exynos5422-2B2S", "single-blackscholes", "cfs").makespan_ns
    )
