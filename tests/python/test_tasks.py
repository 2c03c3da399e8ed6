"""Task graphs from Python and on the command line."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import polars
import pytest
from conftest import ROOT, Ampsched

import ampsched
from ampsched import InputError
from benchmarks import graphs

TOPCUOGLU = ROOT / "crates/sim/tests/task_graphs/topcuoglu.dot"
EIGHT = "4x10,4x4"
# Makespans of an independent program in Python, to four decimals: FIFO (ready queue, lowest idle core first), HEFT
# (insertion).
REFERENCE = {
    "layered10k": ("992.2130", "990.5736"),
    "layered100k": ("9831.8360", "9830.4452"),
    "chol38": ("327.7667", "327.2833"),
    "chol83": ("3404.6500", "3404.0667"),
}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    file = tmp_path / "small.csv"
    file.write_text("a,4,LOAD,\nb,2,RUN,a\nc,2,RUN,a\n")
    return file


@pytest.mark.parametrize("name", REFERENCE)
def test_reference_makespans(tmp_path: Path, name: str) -> None:
    file = tmp_path / f"{name}.csv"
    file.write_text(graphs.GRAPHS[name]())
    graph = ampsched.read_task_graph(file)
    for policy, expected in zip(("fifo", "heft"), REFERENCE[name], strict=True):
        schedule = ampsched.run_tasks(graph, EIGHT, policy)
        assert f"{schedule.makespan_s:.4f}" == expected, policy
        assert schedule.makespan_s >= schedule.lower_bound_s


def test_schedule_as_a_frame(small: Path) -> None:
    schedule = ampsched.run_tasks(small, "1x2,1x1", "fifo")
    frame = schedule.to_polars()
    assert frame.columns == ["task", "kind", "worker", "start_s", "end_s"]
    assert frame.rows() == [("a", "LOAD", 0, 0.0, 2.0), ("b", "RUN", 0, 2.0, 3.0), ("c", "RUN", 1, 2.0, 4.0)]
    assert schedule.makespan_s == 4.0
    assert schedule.lower_bound_s == 3.0
    assert schedule.over_bound == pytest.approx(1 / 3)
    assert schedule.utilisation == [0.75, 0.5]
    assert schedule.classes == [("2", 1), ("1", 1)]
    assert schedule.class_utilisation() == [0.75, 0.5]


def test_grabs_take_time(small: Path) -> None:
    schedule = ampsched.run_tasks(small, "1x2,1x1", "fifo", grab_us=[1e5, 5e5])
    assert schedule.to_polars()["start_s"].to_list() == pytest.approx([0.1, 2.2, 2.6])


def test_every_policy_runs(small: Path) -> None:
    infos = ampsched.task_policies()
    assert len(infos) == 14
    assert sum(info.off_line for info in infos) == 7
    for info in infos:
        schedule = ampsched.run_tasks(small, "1xbig,1xlittle", info.name, ratio=2.0)
        assert 3.0 <= schedule.makespan_s <= 8.0, info.name


def test_pictures_and_traces(tmp_path: Path) -> None:
    schedule = ampsched.run_tasks(TOPCUOGLU, "1x1,1x1,1x1", "heft")
    schedule.write_gantt(tmp_path / "heft.svg")
    svg = ET.fromstring((tmp_path / "heft.svg").read_text())
    space = "{http://www.w3.org/2000/svg}"
    titles = sorted(title.text or "" for title in svg.iter(f"{space}title"))
    assert titles[0] == "10: 73 to 80 s"
    assert len(titles) == 10
    widths = [float(rect.get("width", "0")) for rect in svg.iter(f"{space}rect") if list(rect)]
    # The axis is 1000 pixels wide; every bar has the length of its task.
    frame = schedule.to_polars()
    lengths = (1000 / 80 * (frame["end_s"] - frame["start_s"])).to_list()
    assert sorted(widths) == pytest.approx(sorted(lengths), abs=0.01)
    schedule.write_trace(tmp_path / "heft.pftrace")
    assert (tmp_path / "heft.pftrace").stat().st_size > 500


def test_a_picture_of_many_tasks_stays_small(tmp_path: Path) -> None:
    file = tmp_path / "chol38.csv"
    file.write_text(graphs.cholesky(38))
    ampsched.run_tasks(file, EIGHT, "fifo").write_gantt(tmp_path / "g.svg")
    svg = (tmp_path / "g.svg").read_text()
    assert len(svg) < 1_500_000
    assert "tasks: " in svg


@pytest.mark.parametrize("ending", ["csv", "stg", "dot", "gv", "json"])
def test_conversion(small: Path, ampsched_here: Ampsched, ending: str) -> None:
    out = small.with_name(f"out.{ending}")
    ended = ampsched_here("tasks", "convert", str(small), str(out))
    assert (ended.code, ended.err) == (0, "")
    assert "3 tasks written to" in ended.out
    for policy in ("fifo", "heft"):
        first, second = (ampsched.run_tasks(file, "1x2,1x1", policy) for file in (small, out))
        assert first.to_polars().drop("task", "kind").equals(second.to_polars().drop("task", "kind"))


def test_run_compares(small: Path, ampsched_here: Ampsched) -> None:
    ended = ampsched_here("tasks", "run", str(small), "-w", "1x2,1x1", "-p", "fifo,heft,static")
    assert ended.code == 0
    rows = {line.split()[0]: line.split() for line in ended.out.splitlines()[3:-1]}
    assert rows["fifo"][1] == "4.0000"
    assert rows["heft"][1] == "4.0000"
    assert rows["static"][1] == "4.0000"
    assert "lower bound 3.0000 s" in ended.out


def test_run_as_json(small: Path, ampsched_here: Ampsched) -> None:
    ended = ampsched_here("tasks", "run", str(small), "-w", "1x2,1x1", "-p", "cats:steal=1", "--json")
    (row,) = json.loads(ended.out)
    assert row == {
        "policy": "cats:steal=1",
        "makespan_s": 4.0,
        "lower_bound_s": 3.0,
        "utilisation": [0.75, 0.5],
    }


def test_schedule_shows_workers_and_writes_files(
    small: Path, ampsched_here: Ampsched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(small.parent)
    arguments = ("-w", "1x2,1x1", "-p", "fifo", "--gantt", "g.svg", "--trace", "t.pftrace", "--csv", "s.csv")
    ended = ampsched_here("tasks", "schedule", "small.csv", *arguments)
    assert ended.code == 0, ended.err
    assert "small under fifo: 4.0000 s, 33.3 % above the lower bound" in ended.out
    # Worker 0 is busy for three quarters, worker 1 for the second half.
    bars = [line for line in ended.out.splitlines() if "█" in line]
    assert [bar.count("█") for bar in bars] == [42, 28], "56 cells fit into 80 columns"
    assert polars.read_csv("s.csv").height == 3
    assert Path("g.svg").read_text().startswith("<svg")
    assert Path("t.pftrace").stat().st_size > 0


def test_describe(small: Path, ampsched_here: Ampsched) -> None:
    ended = ampsched_here("tasks", "describe", str(small))
    assert "3 tasks, 2 links" in ended.out
    assert "work 8 s at speed 1, critical path 6 s" in ended.out
    assert "parallelism 1.3" in ended.out
    facts = json.loads(ampsched_here("tasks", "describe", str(TOPCUOGLU), "--json").out)
    assert (facts["tasks"], facts["cost_columns"], facts["communication"]) == (10, 3, True)


def test_task_policies_are_listed_and_described(ampsched_here: Ampsched) -> None:
    listed = json.loads(ampsched_here("list", "task-policies", "--json").out)
    assert [row["name"] for row in listed] == [info.name for info in ampsched.task_policies()]
    assert "task policy cats" in ampsched_here("describe", "cats").out
    # A policy and a task policy of one name are both shown.
    both = json.loads(ampsched_here("describe", "static", "--json").out)
    assert [entry["kind"] for entry in both] == ["policy", "task policy"]


def test_programs(ampsched_here: Ampsched) -> None:
    """Published granularities, and that barriers cost most where workers are unequal."""
    infos = {info.name: info for info in ampsched.task_programs()}
    assert len(infos) == 9
    assert ampsched.task_graph("fluidanimate").tasks == 128_500
    assert ampsched.task_graph("swaptions").ratio == infos["swaptions"].ratio == 2.78
    for name in infos:
        free = ampsched.run_tasks(f"{name}", "2xbig,2xlittle", "fifo")
        assert free.lower_bound_s == pytest.approx(100 / (2 * infos[name].ratio + 2), rel=0.5)
    static = ampsched.run_tasks("blackscholes:barriers=1", "4xbig,4xlittle", "static")
    # Barrier codes run at the speed of the slowest worker: 8 times one little core.
    assert 100 / static.makespan_s == pytest.approx(8.0, rel=1e-9)
    ended = ampsched_here("tasks", "run", "ferret:queries=20", "-w", "2xbig,2xlittle", "-p", "fifo")
    assert "ferret: 120 tasks on 2xbig,2xlittle" in ended.out
    described = ampsched_here("tasks", "describe", "ferret:queries=20").out
    assert "a big core is 3.59 times as fast as a little one" in described
    listed = json.loads(ampsched_here("list", "task-programs", "--json").out)
    assert [row["name"] for row in listed] == list(infos)


def test_bandwidth_turns_sizes_into_times(tmp_path: Path) -> None:
    file = tmp_path / "g.dot"
    file.write_text("digraph { node [work=1] a -> b [size=2000000] }")
    for bandwidth, makespan_s in ((None, 2.0), (1.0, 2.0)):
        assert ampsched.run_tasks(file, "1x1", "fifo", bandwidth_mb_s=bandwidth).makespan_s == makespan_s
    graph = ampsched.read_task_graph(file, bandwidth_mb_s=4.0)
    assert graph.has_communication
    ampsched.write_task_graph(graph, tmp_path / "g.json", bandwidth_mb_s=1.0)
    assert '"sizeInBytes": 500000' in (tmp_path / "g.json").read_text()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"policy": "hetf"}, 'unknown task policy "hetf" (did you mean "heft"?)'),
        ({"policy": "cats:steal=2"}, "task policy cats: parameter steal = 2 is not 0 or 1"),
        ({"policy": "loop-dynamic:chunk=0"}, "parameter chunk = 0 is not within 1 to 1000000000"),
        ({"workers": "4"}, '"4" is not of the form COUNTxSPEED'),
        ({"workers": "4xbig"}, '"big" needs the ratio of big to little'),
        ({"ratio": -1.0}, "ratio = -1 is not above 0"),
        ({"ratio": float("nan")}, "ratio = nan is not above 0"),
        ({"grab_us": [1.0]}, "1 times per grab for 2 classes"),
        ({"grab_us": [-1.0, 0.0]}, "s per grab is not within 0 to 1 s"),
    ],
)
def test_wrong_arguments(small: Path, change: dict[str, object], text: str) -> None:
    graph = ampsched.read_task_graph(small)
    arguments = {"workers": "1x2,1x1", "policy": "fifo", **change}
    with pytest.raises(InputError) as raised:
        ampsched.run_tasks(graph, **arguments)  # type: ignore[arg-type]
    assert text in str(raised.value)


def test_wrong_number_of_classes() -> None:
    with pytest.raises(InputError, match="states costs for 3 classes of workers, 2 are given"):
        ampsched.run_tasks(TOPCUOGLU, EIGHT, "heft")


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("f.csv", "a,1,,b\nb,1,,a\n", 'f.csv:1: task "a": is part of a cycle: "a" -> "b" -> "a"'),
        ("f.csv", "a,1,,zz\n", 'f.csv:1: task "a": depends on task "zz", which does not exist'),
        ("f.stg", "1\n0 -4 0\n", 'f.stg:2: task "0": work -4 is out of range, 0 to 1e18 is allowed'),
        ("f.xml", "<dag/>", 'f.xml: unknown format of a task graph: ".xml"'),
        ("f.json", "[]", 'f.json: key "workflow" is missing'),
    ],
)
@pytest.mark.parametrize("command", ["run", "schedule", "describe"])
def test_wrong_files(
    ampsched_here: Ampsched,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    name: str,
    content: str,
    text: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(content)
    ended = ampsched_here("tasks", command, name)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1
    assert text in ended.err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("run", "gone.csv"), "gone.csv: cannot be read: No such file or directory"),
        (("run", "small.csv", "-p", "fifo,fifo"), 'policy "fifo" is given twice'),
        (("run", "small.csv", "-p", "fifo,"), '--policy "fifo," has an empty item'),
        (("run", "small.csv", "--grab-us", "1,x"), '"x" is not a number'),
        (("run", "small.csv", "--bandwidth-mb-s", "0"), "bandwidth_mb_s = 0 is not above 0"),
        (("schedule", "small.csv", "--gantt", "no/g.svg"), "no/g.svg: there is no folder no"),
        (("convert", "small.csv", "out.xml"), 'out.xml: unknown format of a task graph: ".xml"'),
        (("describe",), "GRAPH"),
        (("describe", "feret"), 'unknown task program "feret" (did you mean "ferret"?)'),
        (("describe", "ferret:q=1"), 'ferret has no parameter "q" (known: queries)'),
        (("describe", "ferret:queries=0"), "ferret: parameter queries = 0 is not within 1 to 1000000"),
        (("shedule", "small.csv"), "shedule"),
    ],
)
def test_wrong_commands(
    ampsched_here: Ampsched,
    small: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    text: str,
) -> None:
    monkeypatch.chdir(small.parent)
    ended = ampsched_here("tasks", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1
    assert text in ended.err


RUN = """\
# workers big:2.5x1,little:1x1
task,kind,worker,start_s,end_s,after
a,POTRF,0,0,0.002,
"b, c",TRSM,1,0.0021,0.006,a
"""


def test_a_recording_is_drawn_like_a_schedule(ampsched_here: Ampsched, tmp_path: Path) -> None:
    run, gantt, trace, graph = (tmp_path / name for name in ("run.csv", "r.svg", "r.pftrace", "g.dot"))
    run.write_text(RUN)
    ended = ampsched_here(
        "tasks", "draw", str(run), "--gantt", str(gantt), "--trace", str(trace), "--graph", str(graph)
    )
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("run as recorded: 0.0060 s, ")
    assert "b, c" in gantt.read_text()
    assert b"worker 1 little" in trace.read_bytes()
    measured = ampsched.task_graph(graph)
    assert (measured.tasks, measured.links) == (2, 1)
    assert measured.work == pytest.approx(0.002 * 2.5 + 0.0039)


def test_what_schedule_writes_can_be_read_as_a_recording(small: Path, tmp_path: Path) -> None:
    made = ampsched.run_tasks(small, "1x2,1x1", "fifo")
    table = tmp_path / "fifo.csv"
    made.to_polars().write_csv(table)
    again = ampsched.read_recording(table)
    assert again.to_polars().equals(made.to_polars())
    assert again.policy == "recorded"


def test_wrong_recordings(ampsched_here: Ampsched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.csv").write_text(RUN.replace("0.0021", "0.7"))
    for name, text in (
        ("run.csv", 'run.csv:4: task "b, c": ends at 0.006 s, before its start at 0.7 s'),
        ("gone.csv", "gone.csv: cannot be read: No such file or directory"),
    ):
        ended = ampsched_here("tasks", "draw", name)
        assert (ended.code, ended.out, ended.err) == (2, "", f"error: {text}\n")
