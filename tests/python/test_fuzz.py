"""Whatever text is given, the answer is a value or an InputError."""

import contextlib

from hypothesis import given
from hypothesis import strategies as st

import ampsched
from ampsched.catalog import Catalog
from ampsched.policy import PolicySpec

CATALOG = Catalog.shipped()
POLICIES = [info.name for info in ampsched.policies()]
PARAMS = sorted({param.name for info in ampsched.policies() for param in info.params})
NUMBERS = st.one_of(st.floats().map(str), st.integers().map(str), st.text(max_size=5))
PIECES = st.one_of(
    st.tuples(st.sampled_from([*PARAMS, "cv", "stale_ms", "value"]), NUMBERS).map("=".join),
    st.text(max_size=8),
)
SPECS = st.tuples(
    st.one_of(
        st.sampled_from([*POLICIES, "oracle", "noisy", "sampled", "constant", "none"]), st.text(max_size=8)
    ),
    st.lists(PIECES, max_size=3),
).map(lambda parts: ":".join([parts[0], *parts[1]]))


def refusals() -> contextlib.AbstractContextManager[None]:
    """Lets the only exception pass that bad input may cause."""
    return contextlib.suppress(ampsched.InputError)


@given(SPECS)
def test_policies(text: str) -> None:
    with refusals():
        spec = PolicySpec.of(text)
        assert spec.name in POLICIES
        assert all(isinstance(value, float) for _, value in spec.params)


@given(SPECS)
def test_factors(text: str) -> None:
    with refusals():
        factors = ampsched.Factors.parse(text)
        assert ampsched.Factors.parse(str(factors)).kind == factors.kind


@given(st.text(max_size=20))
def test_names(name: str) -> None:
    for find in (CATALOG.machine, CATALOG.workload, CATALOG.describe):
        with refusals():
            assert find(name)


@given(st.text(max_size=60))
def test_programs(text: str) -> None:
    with refusals():
        kind = ampsched._core.Catalog.detect("f.toml", text)
        core = ampsched._core.Catalog()
        core.add(kind, "f", "f.toml", text)
