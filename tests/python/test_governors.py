"""Governors by name with parameters."""

import re

import pytest
from conftest import Ampsched

import ampsched
from ampsched.governor import GovernorSpec, governors


def test_the_governors_are_linux_s_and_android_s() -> None:
    names = [info.name for info in governors()]
    linux = ["conservative", "ondemand", "performance", "powersave", "schedutil", "userspace"]
    assert names == sorted([*linux, "interactive"])


def test_a_governor_is_read_with_its_parameters() -> None:
    text = " ondemand:up_threshold=80:sampling_rate_us=1e4 "
    spec = GovernorSpec.of(text)
    assert spec == GovernorSpec(text.strip(), "ondemand", (("up_threshold", 80.0), ("sampling_rate_us", 1e4)))
    stepped = GovernorSpec.of("interactive:target_load=70:target_load@1000=85")
    assert stepped.params == (("target_load", 70.0), ("target_load@1000", 85.0))


BAD = {
    "ondeman": 'unknown governor "ondeman" (did you mean "ondemand"?)',
    "": 'governor: "" has no name',
    "ondemand:up_threshold": 'governor ondemand: "up_threshold" is not of the form parameter=number',
    "ondemand:up_treshold=80": 'governor ondemand has no parameter "up_treshold" (did you mean "up_threshold"?)',
    "ondemand:up_threshold=0": "governor ondemand: parameter up_threshold = 0 is not within 1 to 100",
    "ondemand:up_threshold@1000=80": 'governor ondemand has no parameter "up_threshold@1000"',
    "performance:mhz=1000": 'governor performance has no parameter "mhz"',
    "conservative:up_threshold=15": "parameter down_threshold = 20 is not below up_threshold = 15",
    "schedutil:invariant=2": "governor schedutil: parameter invariant = 2 is not 0 or 1",
}


@pytest.mark.parametrize("text", BAD)
def test_what_cannot_be_is_refused_by_name(text: str) -> None:
    with pytest.raises(ampsched.InputError, match=re.escape(BAD[text])):
        GovernorSpec.of(text)


def test_a_misspelt_governor_is_suggested(ampsched_here: Ampsched) -> None:
    ended = ampsched_here("describe", "schedutl")
    assert ended.code == 2
    assert ended.err == 'error: unknown name "schedutl" (did you mean "schedutil"?)\n'
