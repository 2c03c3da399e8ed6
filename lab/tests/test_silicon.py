"""Real chips: files are what the data says, the lot was not redrawn, and nothing that judges was fitted on."""

import ast
import json
from pathlib import Path

import pytest
from conftest import ROOT

from ampsched import Catalog, simulate
from ampsched_lab.silicon import data, fit, intel, judge, machines, rail, report, trees
from ampsched_lab.silicon.chip import Kind, changed, everything, some
from ampsched_lab.silicon.lot import drawn, family, halves
from ampsched_lab.silicon.simulated import profile

TREE = """/ {
	cpus {
		cpu@0 {
			compatible = "arm,cortex-a55";
			capacity-dmips-mhz = <0x1e8>;
			operating-points-v2 = <0x02>;
		};
		cpu@1 {
			compatible = "arm,cortex-a55";
			capacity-dmips-mhz = <0x1e8>;
			operating-points-v2 = <0x02>;
		};
		cpu@100 {
			compatible = "arm,cortex-a76";
			dynamic-power-coefficient = <0x1a0>;
		};
	};
	opp-table {
		phandle = <0x02>;
		opp-1200000000 {
			opp-hz = <0x00 0x47868c00>;
			opp-microvolt = <0xa4cb8 0xa4cb8 0xe7ef0>;
		};
	};
};
"""


def test_shipped_files_are_what_the_data_says(tmp_path: Path) -> None:
    for name in ("machines", "core_types"):
        (tmp_path / name).mkdir()
    written = machines.write(tmp_path)
    assert len(written) == len(data.chips()) + len(data.cores()) >= 24
    for path in written:
        shipped = data.SHIPPED / path.relative_to(tmp_path)
        assert path.read_text("utf-8") == shipped.read_text("utf-8"), (
            f"{shipped}: make -C lab silicon-machines"
        )


def test_the_lot_is_the_one_that_the_rule_draws() -> None:
    assert halves() == drawn()
    fitting, judging = (set(half) for half in halves().values())
    assert not {family(name) for name in fitting} & {family(name) for name in judging}
    assert len(judging) >= 8


def test_nothing_is_fitted_on_a_chip_that_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every number of a chip that judges is withheld, and the fit does not miss it."""
    read: set[str] = set()

    def noted(name: str) -> dict[str, object]:
        read.add(name)
        return {}

    monkeypatch.setattr(fit, "coremark", noted)
    monkeypatch.setattr(fit, "seven_zip", noted)
    names = halves()["fit"]
    for program in fit.FREE:
        fit.measured(program, names)
    assert read == set(names)
    source = ast.parse(Path(fit.__file__).read_text("utf-8"))
    asked = [
        node
        for node in ast.walk(source)
        if isinstance(node, ast.Subscript) and ast.unparse(node).startswith("halves()")
    ]
    assert [ast.unparse(node) for node in asked] == ["halves()['fit']"]


def test_the_law_of_energy_is_what_the_fit_gives() -> None:
    kept = data.kept("fitted")["energy"]
    assert fit.fitted_law(halves()["fit"]) == pytest.approx(kept, rel=1e-2)
    assert fit.law({"log_a": 0, "b": 1, "s": 0.5, "g": 2, "p0": 10}, 4, 0.5, 100) == pytest.approx(
        4 * 0.625 + 0.1
    )


@pytest.mark.parametrize("name", ["snapdragon-865", "tensor-g1"])
def test_capacities_and_powers_are_measured(name: str) -> None:
    text = (data.SHIPPED / "machines" / f"{name}.toml").read_text("utf-8")
    *_, (mhz, rate, power) = data.coremark(name)["silver" if "865" in name else "little"]
    fastest = max(points[-1][1] for points in data.coremark(name).values())
    assert f"mhz = {mhz}, capacity = {round(1024 * rate / fastest)}, power_mw = {power:.1f}" in text


def test_a_pair_of_threads_counts_once() -> None:
    p = Kind.of("i7-1360p")[0]
    assert (p.cores, p.threads) == (4, 2)
    measured, simulated = judge.all_cores("i7-1360p")
    rates = data.seven_zip("i7-1360p")
    alone = 4 * sum(rates["p"].values()) + 8 * sum(rates["e0"].values())
    assert measured == pytest.approx(sum(rates["all"].values()) / alone)
    assert 0.5 < simulated < 1.1


def test_what_is_kept_is_what_is_judged_now() -> None:
    """A few chips anew: the whole takes `make -C lab silicon`."""
    kept = {
        (row["question"], row["chip"], row["what"]): row["simulated"] for row in data.kept("judged")["rows"]
    }
    for chip in ("a733", "s922x"):
        (row,) = judge.ratios("seven-zip", chip, judge.of_seven_zip(chip))
        assert row.simulated == pytest.approx(kept["seven-zip", chip, row.what], rel=1e-4)
        assert judge.all_cores(chip)[1] == pytest.approx(
            kept["all-cores", chip, "7-zip, all / sum"], rel=1e-4
        )


def test_a_miss_is_called_one() -> None:
    row = judge.Row("all-cores", judge.JUDGE, "chip", "what", 1.0, 1.09)
    assert (row.error, row.is_hit) == (pytest.approx(0.09), False)
    assert judge.Row("coremark", judge.JUDGE, "chip", "what", 1.0, 1.09).is_hit


def test_the_page_is_what_the_kept_data_gives(tmp_path: Path) -> None:
    report.write(tmp_path / "silicon.md")
    page = (tmp_path / "silicon.md").read_text("utf-8")
    assert page == (ROOT / "docs/reports/models/silicon.md").read_text("utf-8")
    misses = [
        row for row in report.Results(data.kept("judged")).of("seven-zip", judge.JUDGE) if not row.is_hit
    ]
    assert misses
    assert all(f"{row.chip} {row.what} (" in " ".join(page.split()) for row in misses)


def test_every_chip_has_run_and_says_what_came_out() -> None:
    checked = {row["chip"] for row in data.kept("judged")["rows"]}
    assert {*halves()["fit"], *halves()["judge"]} < checked
    for name in data.chips():
        text = (data.SHIPPED / "machines" / f"{name}.toml").read_text("utf-8")
        assert ("*unchecked*" in text) != (name in checked)
        assert " simulated" in text


def test_threads_share_memory_and_slow_each_other_down() -> None:
    little, big = Kind.of("s922x")
    apart = sum(kind.cores * kind.speed("compress") for kind in (little, big))
    assert everything("s922x", "compress") < 0.95 * apart
    assert sum(some("s922x", "coremark", {"big"})) == pytest.approx(
        big.cores * big.speed("coremark"), rel=0.01
    )


def test_device_trees_are_read() -> None:
    little, big = trees.rows("x", trees.parsed(TREE))
    assert (little["cpus"], little["core"], little["capacity_dmips_mhz"]) == (2, "cortex-a55", 488)
    assert (little["mhz"], little["uv"]) == (1200, 675000)
    assert (big["dynamic_power_coefficient"], big["mhz"]) == (416, "")


def test_a_chip_without_data_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {"x": {"seven_zip": ["nobody"], "clusters": [{"name": "a", "opps": "freqbench:nobody:0"}]}}
    monkeypatch.setattr(data, "chips", lambda: wrong)
    with pytest.raises(ValueError, match="not in sbc-bench"):
        data.seven_zip("x")
    with pytest.raises(ValueError, match="no operating points of freqbench:nobody:0"):
        machines.Cluster("x", wrong["x"]["clusters"][0])


def test_the_catalogue_reads_them() -> None:
    shipped = {entry.name for entry in Catalog.shipped().entries("machine")}
    assert set(data.chips()) <= shipped
    assert json.loads((data.FOLDER / "lot.json").read_text("utf-8")) == halves()


def test_the_law_of_power_gives_back_what_it_was_made_of() -> None:
    chip, kept = intel.facts()["i9-12900k"], data.kept("fitted")["intel"]
    law = intel.Law(kept["power"])
    assert {name: round(value) for name, value in law.coefficients.items()} == kept["uw_per_mhz_v2"]
    assert law.all_w(0) == pytest.approx(chip["all_w"])
    e = chip["e"]
    e_w = e["cores"] * intel.watts(law.coefficients[e["core_type"]], e["all"], e["highest"], law.power)
    assert e_w + chip["idle_w"] == pytest.approx(chip["e_w"])
    assert intel.fitted() == kept, "fitted anew it is another: make -C lab silicon MORE=--fit"
    # More power is never less work, and a core at its highest clock has the highest voltage.
    assert law.work(chip["base_w"], {"golden-cove": 1.2, "gracemont": 0.9}) < law.work(
        chip["turbo_w"], {"golden-cove": 1.2, "gracemont": 0.9}
    )
    assert intel.voltage(1) == intel.facts()["volts"]["high"]


def test_a_limit_takes_clocks_away_and_a_ladder_those_of_many_cores() -> None:
    chip = "i9-13900k"
    one, two, all_ = (
        some(chip, "coremark", {"p"}, every=each)[0] for each in (16, 8, 2)
    )  # one, two and all eight P-cores
    assert one == pytest.approx(two)
    assert all_ == pytest.approx(one * 5500 / 5800, rel=0.01)
    limited, unlimited = (
        sum(changed(chip, "coremark", (r"(pl[12]_mw) = \d+", rf"\1 = {mw}"))[0]) for mw in (65_000, 10**6)
    )
    assert 0.4 < limited / unlimited < 0.6


def test_a_rail_and_its_clock_explain_power_at_pairs_of_clocks() -> None:
    # 2 mW / MHz / V^2 at the core's voltage or the other's, and half of it again at the higher clock.
    volts = {100.0: 1.0, 200.0: 1.2, 300.0: 1.4}, {100.0: 0.9, 200.0: 1.0, 300.0: 1.5, 400.0: 1.6}
    table = {
        (mhz, other): 2 * max(volts[0][mhz], volts[1][other]) ** 2 * (mhz + 0.5 * max(mhz, other))
        for mhz in volts[0]
        for other in volts[1]
    }
    law = rail.law(table, 0.5)
    assert rail.errors(table, list(table), law.power_mw) == pytest.approx([0.0] * len(table))
    assert rail.fitted(table).share == 0.5
    for _, points, _, nothing, _, both in rail.judged():
        assert points > 50
        assert both < nothing


@pytest.mark.parametrize("point", [(1401, 266), (1401, 3782), (3052, 3782), (177, 2937)])
def test_a_machine_on_a_rail_draws_what_the_law_says(point: tuple[int, int], tmp_path: Path) -> None:
    own = "\n".join(f"{key} = {value}" for key, value in profile("coremark").items())
    (tmp_path / "one.toml").write_text(
        'name = "one"\ndescription = "a hog"\nsource = "test"\n'
        '[[threads]]\nname = "t"\ncores = [0]\nbody = [{ occupy_us = 10000, profile = "own" }]\n'
        f"[profiles.own]\n{own}\n"
    )
    machine = f"tensor-g5:little=0:middle0=0:middle1=1@{point[0]}:big=1@{point[1]}"
    outcome = simulate(machine, tmp_path / "one.toml", "cfs", energy=True)
    (cluster,) = (each for each in outcome.clusters if each.name == "middle1")
    assert cluster.energy
    power_mw = (cluster.energy.running_uj + cluster.energy.uncore_uj) / outcome.makespan_ns * 1e6
    law = rail.fitted(rail.measured("Tensor G5", "5", "7"))
    # Voltages in the file have three digits.
    assert power_mw == pytest.approx(law.power_mw(point), rel=0.02)
