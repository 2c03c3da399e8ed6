"""The Exynos 5422's machine files are what the fit makes of the measurements, and its errors those on the page."""

import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "lab" / "calibration" / "power"))

import fit_power  # noqa: E402
import law  # noqa: E402
import measured  # noqa: E402
import report_power  # noqa: E402
import thermal  # noqa: E402


def numbers(value: Any, path: str = "") -> dict[str, Any]:
    """All values of a TOML document by their path."""
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list):
        members = enumerate(value)
    else:
        return {path: value}
    return {key: leaf for name, inner in members for key, leaf in numbers(inner, f"{path}/{name}").items()}


def test_the_committed_machines_are_what_the_fit_writes() -> None:
    for path, text in fit_power.outputs().items():
        committed, fitted = numbers(tomllib.loads(path.read_text())), numbers(tomllib.loads(text))
        assert committed.keys() == fitted.keys(), path.name
        for key, value in fitted.items():
            # Linear algebra libraries differ in the last bits; what is stated has three digits.
            expected = pytest.approx(value, rel=0.02) if isinstance(value, float) else value
            assert committed[key] == expected, f"{path.name}: {key}"


def test_the_tables_of_the_page_are_those_of_the_predictions() -> None:
    page, rows = report_power.PAGE.read_text(), report_power.predictions()
    for section in (report_power.summary, report_power.operating_points, report_power.four_cores):
        assert section(rows) in page, section.__name__


@pytest.mark.parametrize("cluster", measured.CLUSTERS)
def test_columns_that_were_not_fitted_are_predicted(cluster: str) -> None:
    rows = report_power.of(report_power.predictions(), cluster=cluster, measurement="busy")
    errors = [abs(report_power.error(row)) for row in rows if row["workload"] not in measured.FITTED]
    assert len(errors) == 4 * len(measured.columns(cluster)["idle"].mhz)
    assert np.mean(errors) < 0.1


def test_the_fit_finds_the_law_that_made_the_power() -> None:
    """Columns made by a known law give back its coefficients."""
    network = thermal.fit()
    idle = law.fit_idle("big", network, 2660.0)
    known = np.array([50.0, 600.0, 400.0])
    sides = [law._equations("big", network, idle, workload)[0] for workload in measured.FITTED]
    left = np.concatenate(sides)
    assert law.nnls(left, left @ known)[0] == pytest.approx(known)


def test_the_network_warms_up_towards_its_steady_state() -> None:
    network = thermal.fit()
    seconds = np.arange(400) * 0.263
    big_w = np.full_like(seconds, 5.0)
    warming = network.warming_c(seconds, big_w, 0.4, np.full(3, network.ambient_c))
    core_w = np.full(4, (5.0 - 0.4) / 4)
    steady = network.steady_c(core_w, 5.0, 0.0, thermal.IDLE_OTHER_W)
    assert warming[-1, 0] == pytest.approx(steady[0], abs=0.01)
    assert warming[-1, 2] == pytest.approx(steady[-1], abs=0.01)
    assert (np.diff(warming[:, 0]) > -1e-9).all()
