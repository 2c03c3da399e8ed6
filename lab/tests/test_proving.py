"""Files of reports as their readers and merges see them, and the page of self-tests; nothing is booted."""

import copy
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ampsched import InputError
from ampsched.proving import programs
from ampsched.proving.measuring import Measured
from ampsched.proving.report import OWN, Proof, report_text
from ampsched.recording import model_error
from ampsched.recording.cores import Cores
from ampsched.recording.setting import Setting
from ampsched.statistics import Estimate
from ampsched_lab.proving import guest, report, reports, run
from ampsched_lab.proving.reports import Report, Table, merge, read_report, read_table

ROOT = Path(__file__).resolve().parents[2]
MEASURED = Measured(Estimate(-0.2, -0.22, -0.18, 8), None, 1.0, 0.8, 8, 20.0, True, 0.02, 1)
ON_TWO = Setting(cores=Cores("the big cores", (0, 1)))
PROOFS = (
    Proof("threads", "queue", ON_TWO, -0.3, (-0.4, 0.1), MEASURED),
    Proof("processes", None, Setting("colab:decay=0.3"), -0.1, (-0.4, 0.1), MEASURED),
    Proof(
        "threads",
        None,
        Setting(threads=4, cores=Cores("the big cores", (0, 1))),
        -0.25,
        (-0.4, 0.1),
        MEASURED,
    ),
)
VALUE: dict[str, Any] = json.loads(report_text(PROOFS))


def written(folder: Path, value: object) -> Path:
    path = folder / "report.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return path


def changed(path: str, to: object) -> dict[str, Any]:
    """The report with another value at a place such as `proofs.0.kind`; `...` takes it away."""
    value: Any = copy.deepcopy(VALUE)
    *way, last = [int(each) if each.isdecimal() else each for each in path.split(".")]
    place = value
    for each in way:
        place = place[each]
    if to is ...:
        del place[last]
    else:
        place[last] = to
    found: dict[str, Any] = value
    return found


def test_what_the_product_writes_is_read(tmp_path: Path) -> None:
    found = read_report(written(tmp_path, report_text(PROOFS)))
    assert len(found.proofs) == len(PROOFS)
    assert found.notes == ()
    assert found.machine == " + ".join(f"{each['cpus']} {each['core_type']}" for each in VALUE["cores"])


@pytest.mark.parametrize(
    ("path", "to", "told"),
    [
        ("format", "else", 'is no report: "format" is not "ampsched-proof"'),
        ("version", 2, "version: is not 1"),
        ("version", True, "version: is not 1"),
        ("host", "mine", "'host': is no key"),
        ("kernel", ..., "kernel: is missing"),
        ("kernel", "6.1-mine", "kernel: is no such text"),
        ("ampsched", 1, "ampsched: is no such text"),
        ("cores", [], "cores: is no list of 1 to 4096"),
        ("cores.0.core_type", 'x"\n[evil]', "cores[0].core_type: is no such text"),
        ("cores.0.cpus", 10**9, "cores[0].cpus: is no whole number from 1 to 4096"),
        ("cores.0.cpus", True, "cores[0].cpus: is no whole number"),
        ("proofs", {}, "proofs: is no list"),
        ("proofs.0", None, "proofs[0]: is no object"),
        ("proofs.0.kind", "other", "proofs[0].kind: is none of waiting, processes, threads"),
        ("proofs.0.kind", [], "proofs[0].kind: is none of"),
        ("proofs.0.program", "rm", "proofs[0].program: is none of shares"),
        ("proofs.0.setting.policy", "no-policy", "proofs[0].setting.policy: is neither"),
        ("proofs.0.setting.threads", 0, "proofs[0].setting.threads: is no whole number from 1 to 4096"),
        ("proofs.0.predicted", -1, "proofs[0].predicted: is no number above -1 to 100"),
        ("proofs.0.predicted", "0", "proofs[0].predicted: is no number"),
        ("proofs.0.band", [0.1, -0.1], "proofs[0].band: begins above its end"),
        ("proofs.0.band", [0.1], "proofs[0].band: is no list of 2 to 2"),
        ("proofs.0.measured.change.mean", 0.5, "proofs[0].measured.change: mean is not within low and high"),
        ("proofs.0.measured.pairs", 1, "proofs[0].measured.pairs: is no whole number from 2"),
        ("proofs.0.measured.is_known", 1, "proofs[0].measured.is_known: is neither true nor false"),
        ("proofs.0.measured.foreign", 2, "proofs[0].measured.foreign: is no number from 0 to 1"),
        ("proofs.0.measured.today_s", 0, "proofs[0].measured.today_s: is no number above 0"),
    ],
)
def test_what_cannot_be_in_a_report_is_named(tmp_path: Path, path: str, to: object, told: str) -> None:
    with pytest.raises(InputError) as error:
        read_report(written(tmp_path, changed(path, to)))
    assert told in str(error.value)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "[" * 100_000, '{"format": NaN}', '{"a": 1, "a": 2}', "1" * 10_000, '"\\ud800"']
)
def test_what_is_no_report_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"report\.json: is no"):
        read_report(written(tmp_path, text))


def test_a_long_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(b" " * (reports.MOST_BYTES + 1))
    with pytest.raises(InputError, match="is longer than 1 MiB"):
        read_report(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_report(tmp_path / "none.json")


def places(value: object, way: str = "") -> list[str]:
    """Where there is a value in a report."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    own = [(f"{way}.{key}".lstrip("."), each) for key, each in items]
    return [place for name, each in own for place in (name, *places(each, name))]


HOSTILE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=300, deadline=None)
@given(place=st.sampled_from(places(VALUE)), to=HOSTILE)
def test_any_change_is_refused_in_a_line_or_leaves_a_table_that_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, place: str, to: object
) -> None:
    folder = tmp_path_factory.getbasetemp()
    try:
        found = read_report(written(folder, changed(place, to)))
    except InputError as error:
        assert len(str(error).splitlines()) == 1
        return
    path = folder / "table.toml"
    path.write_text(merge(Table(), [found], "2026-12-01").text(), "utf-8")
    assert all(math.isfinite(error) for row in read_table(path).rows for error in row.change)


def test_errors_are_merged_by_question_kind_and_machine_once() -> None:
    report = Report("d1", "4 big", tuple(VALUE["proofs"]))
    table = merge(Table(), [report, report], "2026-12-01")
    assert merge(table, [report], "2027-01-01") == table
    error = pytest.approx(math.log(0.8 / 0.7), abs=1e-3)
    assert [(row.question, row.kind, row.number, row.change) for row in table.rows] == [
        ("cores", "threads", 1, (error,)),
        ("policy", "processes", 1, (pytest.approx(math.log(0.8 / 0.9), abs=1e-3),)),
        ("threads", "threads", 1, (pytest.approx(math.log(0.8 / 0.75), abs=1e-3),)),
    ]
    assert {(row.machine, row.date) for row in table.rows} == {("4 big", "2026-12-01")}


@pytest.mark.parametrize(
    ("place", "to", "told"),
    [
        ("proofs.0.setting.policy", OWN, "its policy is the user's own"),
        ("proofs.0.measured.is_known", False, "the change is not known to 2 %"),
        ("proofs.0.measured.foreign", 0.5, "other programs took 50%"),
    ],
)
def test_what_cannot_be_judged_is_left_out_and_told(
    tmp_path: Path, place: str, to: object, told: str
) -> None:
    found = read_report(written(tmp_path, changed(place, to)))
    assert len(found.proofs) == len(PROOFS) - 1
    [note] = found.notes
    assert f"proofs[0] is left out: {told}" in note


def merged_by_command(folder: Path, *files: Path) -> "subprocess.CompletedProcess[str]":
    words = [sys.executable, "-m", "ampsched_lab.proving.reports", "--date", "2026-12-01"]
    table = ["--table", str(folder / "table.toml")]
    return subprocess.run([*words, *table, *map(str, files)], capture_output=True, text=True, check=False)


def test_the_command_merges_all_files_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, bad, table = written(tmp_path, VALUE), tmp_path / "bad.json", tmp_path / "table.toml"
    bad.write_text("{}")
    table.write_text(Table().text(), "utf-8")
    refused = merged_by_command(tmp_path, path, bad)
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"error: {bad}: is no report")
    assert read_table(table) == Table()
    assert "report.json: 3 errors" in merged_by_command(tmp_path, path).stdout
    assert "is in the table already" in merged_by_command(tmp_path, path).stdout
    assert sum(row.number for row in read_table(table).rows) == 3
    # The product's errors are those of its own tables, and what was reported.
    rows = reports.tomllib.loads(table.read_text("utf-8"))
    before = {kind: model_error.model_error_of(kind).change for kind in model_error.KINDS}
    own, read = model_error.setting_errors().values, model_error._read
    monkeypatch.setattr(
        model_error, "_read", lambda name: rows if name == model_error.REPORTED_TABLE else read(name)
    )
    assert model_error.setting_errors().values[len(own) :] == (0.134, 0.065)
    assert model_error.model_error_of("processes").change == (*before["processes"], -0.118)
    assert model_error.model_error_of("threads").change == before["threads"]


def test_the_shipped_table_is_what_the_command_writes() -> None:
    path = ROOT / "python/ampsched/data" / model_error.REPORTED_TABLE
    assert read_table(path).text() == path.read_text("utf-8")


def test_a_guest_gets_python_and_what_the_package_imports_and_no_more() -> None:
    names = guest.requirements()
    assert {"polars", "polars-runtime-32", "typer", "rich", "mdurl"} <= set(names)
    assert not {"pytest", "matplotlib", "numpy"} & set(names)
    library, modules = guest.standard_library()
    assert all(each.exists() for each in [*library, *modules, *guest.libraries(), guest.interpreter()])
    assert not any(each.name == "site-packages" for each in library)


def test_programs_of_a_self_test_run_with_little_work(tmp_path: Path) -> None:
    path = tmp_path / "programs.py"
    path.write_text(run.with_little_work(Path(programs.__file__).read_text("utf-8")), "utf-8")
    subprocess.run([sys.executable, "-I", "-S", path, "queue", "2"], check=True, timeout=10)


def test_what_was_measured_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "new/measured.json.zst"
    assert run.read(path) == {"selftest": {}, "checks": {}}
    run.keep({"selftest": {"4B4S": VALUE}, "checks": {}}, path)
    [proofs] = report.selftests(run.read(path)["selftest"]).values()
    assert [each.error for each in proofs] == [each.error for each in PROOFS]
    # Bands are those of today's tables, whatever the file says.
    assert proofs[0].band == model_error.setting_errors().band(-0.3)
    assert "| queue | 2 cores | -30.0% | -20.0% ±2.0% | 8 | -12.5% |" in report.tables_of_tests(
        {"4B4S": proofs}
    )


def test_every_check_was_advised_on_cores_that_the_campaign_ran_on() -> None:
    for name, rows in report.checks(run.read()["checks"]).items():
        assert [each.program for each in rows] == [
            kind.name for kind in run.plan.KINDS if kind.name in run.CHECKED
        ]
        for each in rows:
            assert each.measured.change.high < 0
            assert report._campaign_of(name, each) < 0


def test_programs_that_no_self_test_had_time_for_are_named() -> None:
    told = report.missing({"4B4S": PROOFS[:1], "2P4E": PROOFS[:1] * 2})
    assert told.startswith("*shares*, *processes*, *barriers*, *pipeline*, *sleeper* on 4B4S; *shares*")
    every = [Proof("threads", name, ON_TWO, 0.0, (0.0, 0.0), MEASURED) for name in programs.PROGRAMS]
    assert report.missing({"4B4S": every}) == "no program"


def test_directions_that_people_measured_stand_beside_ours() -> None:
    assert "| layers, 4B4S | fast cores only | 4 on 4 big | -53.6% | ✓ |" in report.table_of_people()


def test_the_page_is_that_of_what_was_measured(tmp_path: Path) -> None:
    report.write(tmp_path / "selftest.md")
    page = (tmp_path / "selftest.md").read_text("utf-8")
    assert page == (ROOT / "docs/reports/models/selftest.md").read_text("utf-8"), "make bless ONLY=selftest"
