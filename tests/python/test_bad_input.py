"""Whatever is wrong with the input: exit code 2 and one line that names place, value, limit."""

from pathlib import Path

import pytest
from conftest import ROOT, Ampsched

CASES = ROOT / "crates/model/tests"
MIX = ("-m", "2B2S", "-w", "sync-1", "-p", "cfs")

# Arguments, and what the line says.
ARGUMENTS: dict[str, tuple[tuple[str, ...], str]] = {
    "unknown command": (("compair",), "compair"),
    "unknown option": (("compare", "--machin", "2B2S"), "--machin"),
    "missing option": (("compare", "-m", "2B2S"), "--workload"),
    "missing argument": (("describe",), "name"),
    "unknown machine": (
        ("compare", "-m", "2B3S", "-w", "fft"),
        'unknown machine "2B3S" (did you mean "2B4S"?)',
    ),
    "unknown workload": (
        ("compare", "-m", "2B2S", "-w", "sync_1"),
        'unknown workload "sync_1" (did you mean "sync-1"?)',
    ),
    "name like no other": (
        ("compare", "-m", "2B2S", "-w", "zzz"),
        'unknown workload "zzz" (see: ampsched list workloads)',
    ),
    "page that is none": (
        ("compare", *MIX, "--html", "x.pdf"),
        "--html x.pdf does not end with .html or .htm",
    ),
    "page in no folder": (
        ("simulate", *MIX, "--html", "no/x.html"),
        "--html no/x.html: there is no folder no",
    ),
    "page without a name": (("report", "x.json"), "--html FILE is missing"),
    "result that is missing": (("report", "no.json", "--html", "x.html"), "no.json: cannot be read"),
    "limit that is text": (("simulate", *MIX, "--limit-s", "long"), '"long" is not a number'),
    "unknown policy": (
        ("compare", *MIX[:4], "-p", "clab"),
        'unknown policy "clab" (did you mean "colab"?)',
    ),
    "unknown parameter": (
        ("compare", *MIX[:4], "-p", "colab:litteral=1"),
        'no parameter "litteral" (did you mean "literal"?)',
    ),
    "parameter above its limit": (
        ("compare", *MIX[:4], "-p", "colab:decay=2"),
        "parameter decay = 2 is not within 0 to 1",
    ),
    "flag that is 2": (("compare", *MIX[:4], "-p", "colab:literal=2"), "literal = 2 is not 0 or 1"),
    "choice that does not exist": (
        ("compare", *MIX[:4], "-p", "min-fair:base=3"),
        "parameter base = 3 is not 0 (fair share), 1 (fast core) or 2 (slow core)",
    ),
    "target that nobody can promise": (
        ("compare", *MIX[:4], "-p", "min-fair:target=1.1"),
        "policy min-fair: parameter target = 1.1 is not within 0 to 1",
    ),
    "round without length": (
        ("compare", *MIX[:4], "-p", "uniformity:round_ms=0"),
        "policy uniformity: parameter round_ms = 0 is not within 0.1 to 10000",
    ),
    "parameter without value": (
        ("compare", *MIX[:4], "-p", "colab:literal"),
        '"literal" is not of the form parameter=number',
    ),
    "parameter that is text": (
        ("compare", *MIX[:4], "-p", "colab:decay=much"),
        'parameter decay = "much" is not a number',
    ),
    "parameter that is nan": (
        ("compare", *MIX[:4], "-p", "colab:decay=nan"),
        'decay = "nan" is not a number',
    ),
    "parameter twice": (
        ("compare", *MIX[:4], "-p", "colab:decay=1:decay=0"),
        "parameter decay is given twice",
    ),
    "policy twice": (("compare", *MIX[:4], "-p", "cfs,cfs"), 'policy "cfs" is given twice'),
    "machine twice": (("compare", "-m", "2B2S,2B2S", "-w", "fft"), 'machine "2B2S" is given twice'),
    "empty policy": (("compare", *MIX[:4], "-p", "cfs,"), '--policy "cfs," has an empty item'),
    "no policy": (("compare", *MIX[:4], "-p", ""), "has an empty item"),
    "seed that is text": (
        ("compare", *MIX, "--seed", "one"),
        "Invalid value for '--seed': \"one\" is not a whole number",
    ),
    "negative seed": (("compare", *MIX, "--seed", "-1"), "seed = -1 is not within 0 to 18446744073709551615"),
    "no repeats": (("compare", *MIX, "--repeat", "0"), "repeat = 0 is not within 1 to 10000"),
    "negative jobs": (("compare", *MIX, "--jobs", "-2"), "jobs = -2 is below 0"),
    "unknown order": (
        ("compare", *MIX, "--core-order", "bigfirst"),
        'unknown value of --core-order "bigfirst" (did you mean "big-first"?)',
    ),
    "unknown factors": (
        ("compare", *MIX, "--factors", "orakel"),
        'unknown source of factors "orakel" (did you mean "oracle"?)',
    ),
    "unknown governor": (
        ("compare", *MIX, "--governor", "schedutl"),
        'unknown governor "schedutl" (did you mean "schedutil"?)',
    ),
    "governor's limit": (
        ("simulate", *MIX, "--governor", "big=ondemand:up_threshold=101"),
        "governor ondemand: parameter up_threshold = 101 is not within 1 to 100",
    ),
    "two governors": (
        ("simulate", *MIX, "--governor", "big=powersave,big=schedutil"),
        "gives two governors for cluster big",
    ),
    "governor of one frequency": (
        ("simulate", *MIX, "--governor", "little=ondemand"),
        "governor ondemand: machine 2B2S, cluster little: 1200 MHz is the only frequency, nothing to govern "
        "(give it operating points: opps = [...])",
    ),
    "governors of one frequency each": (
        ("compare", *MIX, "--governor", "schedutil"),
        "governor schedutil: machine 2B2S, cluster big: 2000 MHz is the only frequency, nothing to govern",
    ),
    "governor of nothing": (("simulate", *MIX, "--governor", "=powersave"), 'names no cluster before "="'),
    "governor of an unknown cluster": (
        ("simulate", *MIX, "--governor", "bigg=powersave"),
        'governor powersave: machine 2B2S has no cluster "bigg" (did you mean "big"?)',
    ),
    "unknown cost": (
        ("compare", *MIX, "--overhead", "decison_ns=1"),
        'unknown cost of an overhead "decison_ns" (did you mean "decision_ns"?)',
    ),
    "negative cost": (("compare", *MIX, "--overhead", "epoch_us=-1"), "epoch_us = -1 is not within 0 to"),
    "unknown factor parameter": (("compare", *MIX, "--factors", "noisy:sd=1"), 'noisy has no parameter "sd"'),
    "factor error above its limit": (
        ("compare", *MIX, "--factors", "noisy:cv=11"),
        "cv = 11 is not within 0 to 10",
    ),
    "constant without value": (
        ("compare", *MIX, "--factors", "constant:"),
        'parameter value = "" is not a number',
    ),
    "trace of two workloads": (
        ("compare", "-m", "2B2S", "-w", "fft,radix", "--trace", "t"),
        "--trace needs a single machine",
    ),
    "trace into nowhere": (
        ("simulate", *MIX, "--trace", "no/folder/t.pftrace"),
        "--trace no/folder/t.pftrace: there is no folder no/folder (make it first)",
    ),
    "no time": (("simulate", *MIX, "--until-ms", "0"), "until_ms = 0 is not above 0"),
    "no repetitions": (
        ("simulate", *MIX, "--repetitions", "0"),
        "repetitions = 0 is not within 1 to 10000",
    ),
    "repetitions that are text": (
        ("compare", *MIX, "--repetitions", "thrice"),
        "Invalid value for '--repetitions': \"thrice\" is not a whole number",
    ),
    "limit that is reached": (("simulate", *MIX, "--limit-s", "0.01"), "sync-1: the workload has not ended"),
    "infinite limit": (("simulate", *MIX, "--limit-s", "inf"), "limit_s = inf is not above 0"),
    "unknown thing to describe": (
        ("describe", "sync_1"),
        'unknown name "sync_1" (did you mean "sync-1"?)',
    ),
    "misspelt policy to describe": (("describe", "collab"), 'did you mean "colab"?'),
    "unknown kind of list": (
        ("list", "machine"),
        'unknown value of what "machine" (did you mean "machines"?)',
    ),
    "missing file": (
        ("compare", "-m", "2B2S", "-w", "gone.toml"),
        "gone.toml: cannot be read: No such file or directory",
    ),
    "folder as file": (("describe", "./"), ".: cannot be read: Is a directory"),
    "analytic: unknown workload": (
        ("analytic", "-w", "W1,W10"),
        'unknown workload "W10" (did you mean "W1"?)',
    ),
    "analytic: unknown policy": (
        ("analytic", "-p", "prop_sp"),
        'unknown policy "prop_sp" (did you mean "prop-sp"?)',
    ),
    "analytic: policy like no other": (
        ("analytic", "-p", "cfs"),
        'unknown policy "cfs" (known: hsp, rr, prop-sp',
    ),
    "analytic: workload twice": (("analytic", "-w", "W1,W1"), 'workload "W1" is given twice'),
    "analytic: policy twice": (("analytic", "-p", "rr,hsp,rr"), 'policy "rr" is given twice'),
    "analytic: empty policy": (("analytic", "-p", "rr,"), '--policy "rr," has an empty item'),
    "analytic: speed-up that is text": (
        ("analytic", "--speedups", "2.5,fast"),
        '--speedups "2.5,fast": "fast" is not a number',
    ),
    "analytic: speed-up of 0": (("analytic", "--speedups", "2,0"), "speedups[1] = 0 is not within 1 to 1000"),
    "analytic: negative speed-up": (
        ("analytic", "--speedups", "-2"),
        "speedups[0] = -2 is not within 1 to 1000",
    ),
    "analytic: speed-up that is nan": (("analytic", "--speedups", "nan"), "speedups[0] = nan is not within"),
    "analytic: no speed-up": (("analytic", "--speedups", ""), '--speedups "" has an empty item'),
    "analytic: two kinds of programs": (
        ("analytic", "-w", "W1", "--speedups", "2"),
        "--workload and --speedups exclude each other",
    ),
    "analytic: weight of 0": (
        ("analytic", "-w", "W1", "--weights", "1,0,1,1"),
        "weights[1] = 0 is not within 1e-06 to 1e+06",
    ),
    "analytic: too few weights": (("analytic", "--weights", "1,2"), "weights: 2 values for 4 programs"),
    "analytic: no fast core": (("analytic", "--fast", "0"), "fast = 0 is not within 1 to 1024"),
    "analytic: half a core": (("analytic", "--slow", "1.5"), '"1.5" is not a whole number'),
    "analytic: more programs than cores": (
        ("analytic", "--slow", "1"),
        "speedups: 4 programs for 3 cores (fast + slow), but the model has no waiting",
    ),
    "rt-app that is TOML": (("import-rtapp", "x.toml"), 'x.toml: rt-app workloads end with ".json"'),
    "missing rt-app": (("import-rtapp", "x.json"), "x.json: cannot be read"),
}

# Files that are right by themselves and wrong where they are used: content, arguments, what the line says.
FILES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "workload as machine": (
        '[workloads.w]\napps = [{ program = "fft" }]\n',
        ("compare", "-m", "f.toml", "-w", "fft"),
        "f.toml: describes a workload, a machine is needed",
    ),
    "core type as workload": (
        'pipeline = "in-order"\n',
        ("compare", "-m", "2B2S", "-w", "f.toml"),
        "f.toml: describes a core type, a workload or program is needed",
    ),
    "nothing that is known": ('colour = "red"\n', ("describe", "f.toml"), "f.toml"),
    "unknown workload of a file": (
        '[workloads.night]\napps = [{ program = "fft" }]\n',
        ("compare", "-m", "2B2S", "-w", "f.toml:nigth"),
        'unknown workload of f.toml "nigth" (did you mean "night"?)',
    ),
    "several workloads in a file": (
        '[workloads.a]\napps = [{ program = "fft" }]\n[workloads.b]\napps = [{ program = "fft" }]\n',
        ("compare", "-m", "2B2S", "-w", "f.toml"),
        "defines 2 workloads (name one: a, b)",
    ),
    "program that is not there": (
        '[workloads.a]\napps = [{ program = "gone.toml" }]\n',
        ("compare", "-m", "2B2S", "-w", "f.toml"),
        'f.toml:2: workloads.a.apps[0].program: file "gone.toml" was not found',
    ),
    "unknown parameter of a program": (
        '[workloads.a]\napps = [{ program = "fft", params = { m = 4 } }]\n',
        ("compare", "-m", "2B2S", "-w", "f.toml"),
        'parameter of program "fft"',
    ),
    "deadlock": (
        "[mutexes.a]\n[mutexes.b]\n"
        '[[threads]]\nname = "x"\nbody = [ { lock = "a" }, { sleep_us = 5 }, { lock = "b" }, { unlock = "b" }, { unlock = "a" } ]\n'
        '[[threads]]\nname = "y"\nbody = [ { lock = "b" }, { sleep_us = 5 }, { lock = "a" }, { unlock = "a" }, { unlock = "b" } ]\n',
        ("simulate", "-m", "2B2S", "-w", "f.toml"),
        'waits for mutex "f/b" held by',
    ),
    "deadlock beside a program that is repeated": (
        "[mutexes.m]\n[conditions.c]\n"
        '[[threads]]\nname = "x"\nbody = [ { sleep_us = 9 }, { lock = "m" }, { wait = "c", mutex = "m" }, { unlock = "m" } ]\n'
        '[[threads]]\nname = "y"\nbody = [ { signal = "c" } ]\n',
        ("simulate", "-m", "2B2S", "-w", "f.toml", "--repetitions", "2"),
        'no thread can run: f/x waits for condition "f/c"',
    ),
    "low: repetitions of very many threads": (
        '[[threads]]\nname = "x"\ncount = 1000000\nbody = [ { sleep_us = 1 } ]\n',
        ("simulate", "-m", "2B2S", "-w", "f.toml", "--repetitions", "2"),
        "f: application f has started more than 1000000 threads",
    ),
    "not TOML": ("a = [1,\n", ("describe", "f.toml"), "f.toml:"),
    "rt-app with an unknown key": (
        '{"tasks": {"t": {"runn": 1000}}}',
        ("import-rtapp", "f.json"),
        'f.json:1: tasks.t: unknown key "runn"',
    ),
    "rt-app that is no JSON": ('{"tasks": ', ("import-rtapp", "f.json"), "f.json:1"),
    "rt-app without end": (
        '{"tasks": {"t": {"run": 1000, "sleep": 1000}}}',
        ("simulate", "-m", "2B2S", "-w", "f.json", "--limit-s", "1"),
        "f: thread f/t repeats for ever, and nothing ends it (give its program a duration",
    ),
}


def assert_refused(ended: object, text: str) -> None:
    code, out, err = ended.code, ended.out, ended.err  # type: ignore[attr-defined]
    assert code == 2, err
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert text in err


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments(
    ampsched_here: Ampsched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments, text = ARGUMENTS[case]
    assert_refused(ampsched_here(*arguments), text)


@pytest.mark.parametrize("case", FILES)
def test_files(ampsched_here: Ampsched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    monkeypatch.chdir(tmp_path)
    content, arguments, text = FILES[case]
    name = next(argument.partition(":")[0] for argument in arguments if argument.startswith("f."))
    Path(name).write_text(content)
    assert_refused(ampsched_here(*arguments), text)


def test_file_that_is_no_text(ampsched_here: Ampsched, tmp_path: Path) -> None:
    file = tmp_path / "binary.toml"
    file.write_bytes(b"name = \xff")
    assert_refused(ampsched_here("describe", str(file)), f"{file}: is not UTF-8 text (byte 7)")


# Refused with another text: `describe` tells the kind of a file from its content, and the shipped catalogue has
# other programs than the corpus.
OTHERWISE = {
    "clusters-missing.toml",
    "empty-file.toml",
    "profiles-missing.toml",
    "own-profile-like-itself.toml",
    "own-profile-misses-too-many.toml",
    "threads-missing.toml",
    "parameter-leaves-no-thread.toml",
    "parameter-out-of-range.toml",
    "unknown-parameter.toml",
    "unknown-program.toml",
    "workloads-missing.toml",
    "json-blank.json",
    "json-empty.json",
    "json-garbage.json",
    "json-list.json",
}


def malformed() -> dict[str, tuple[str, str]]:
    """Inputs whose messages are held word for word, and these messages, by kind and name."""
    found = {}
    for path in [*CASES.glob("corpus/*.cases"), CASES / "rtapp/bad.cases"]:
        for case in path.read_text().split("=== ")[1:]:
            name, _, rest = case.partition("\n")
            text, _, expected = rest.rpartition("--- expected\n")
            found[f"{path.stem}/{name}"] = text, expected
    return dict(sorted(found.items()))


MALFORMED = malformed()


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_files(
    ampsched_here: Ampsched, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, case: str
) -> None:
    text, expected = MALFORMED[case]
    name = case.partition("/")[2]
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    ended = ampsched_here("import-rtapp" if name.endswith(".json") else "describe", name)
    assert_refused(ended, name if name in OTHERWISE else " ".join(expected.split()))


UNKNOWN = {
    "simulat": 'command "simulat" (did you mean "simulate"?)',
    "tasks shedule": 'command "shedule" (did you mean "schedule"?)',
    "zzz": 'command "zzz" (see: ampsched --help)',
    "simulate -m 2B2S -w sync-2 --plicy cfs": 'option "--plicy" (did you mean "--policy"?)',
    "simulate -m 2B2S -w sync-2 -p colb": 'policy "colb" (did you mean "colab"?)',
    "simulate -m 2B2S -w sync-2 -p zzz": 'policy "zzz" (see: ampsched list policies)',
    "simulate -m 2B2S -w sync-2 --governor zzz": 'governor "zzz" (see: ampsched list governors)',
    "compare -m 2B2S -w sync-2 --core-order bigfirst": 'value of --core-order "bigfirst" (did you mean "big-first"?)',
    "simulate -m 2B2 -w sync-2": 'machine "2B2" (did you mean "2B2S"?)',
    "tasks run zzz": 'task program "zzz" (see: ampsched list task-programs)',
    "tasks run ferret -p zzz": 'task policy "zzz" (see: ampsched list task-policies)',
    "list polices": 'value of what "polices" (did you mean "policies"?)',
}


@pytest.mark.parametrize("line", UNKNOWN)
def test_unknown_names_are_told_in_one_way(line: str, ampsched_here: Ampsched) -> None:
    ended = ampsched_here(*line.split())
    assert (ended.code, ended.err) == (2, f"error: unknown {UNKNOWN[line]}\n")


@pytest.mark.parametrize(
    ("line", "said"),
    {
        "compare -m 2B2S -w sync-2 -p cfs -p colab": "--policy is given twice (give one list: --policy a,b)",
        "compare -m 2B2S -m 4B -w sync-2": "--machine is given twice (give one list: --machine a,b)",
        "compare -m 2B2S -w sync-2 -w sync-1 -w ferret": "--workload is given 3 times (give one list: --workload a,b)",
        "tasks run ferret -p cats --policy heft": "--policy is given twice (give one list: --policy a,b)",
        "simulate -m 2B2S -w sync-2 -p cfs -p colab": "--policy is given twice",
        "simulate -m 2B2S -w sync-2 --seed 1 --seed=2": "--seed is given twice",
    }.items(),
)
def test_an_option_that_is_given_twice_is_not_dropped(line: str, said: str, ampsched_here: Ampsched) -> None:
    ended = ampsched_here(*line.split())
    assert (ended.code, ended.err) == (2, f"error: {said}\n")
