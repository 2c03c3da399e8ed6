"""Checks of single mechanisms: the arithmetic around them, and that the page is made of what they say."""

import pytest

from ampsched_lab.truth.costs import devices
from ampsched_lab.truth.costs.check import Row, rows_table


def test_a_table_counts_what_is_within_the_aim() -> None:
    text = rows_table("case", [Row("near", 100, 95), Row("far", 100, 111)])
    assert "| near | 100 | 95 | -5.0 % |" in text
    assert text.endswith("1 of 2 are within 10 %.")


def test_a_lone_repairman_serves_a_lone_machine_in_turn() -> None:
    assert devices.repairman_per_s(1, 100, 300, 1) == pytest.approx(2500)
    assert devices.repairman_per_s(2, 100, 300, 2) == pytest.approx(5000)


def test_devices_serve_as_theory_says() -> None:
    assert all(abs(row.error) < 0.03 for row in devices.of_theory())
