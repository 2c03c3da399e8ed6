"""The invariants of docs/explanation/architecture.md: what may depend on what, and one file per thing."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CRATES = ROOT / "crates"
DATA = ROOT / "python/ampsched/data"

# A crate that is not listed here must be added, with what it may depend on, before it can exist.
MAY_DEPEND_ON = {
    "model": set(),
    "policy": {"model"},
    "predict": {"model"},
    "recording": {"model"},
    "preload": set(),
    "version": set(),
    "kernels": set(),
    "task": {"model", "policy"},
    "sim": {"model", "policy", "predict", "task", "trace"},
    "taskrt": {"model", "policy", "computer", "kernels", "task"},
    "trace": {"model", "policy"},
    "computer": {"model", "policy"},
    "live/driver": {"model", "policy", "computer"},
    "live/factors": {"model", "policy", "predict", "computer"},
    "live/session": {"model", "policy", "predict", "trace", "computer", "live/driver", "live/factors"},
    "live/daemon": {"model", "policy", "computer", "live/driver", "live/factors", "live/session"},
    "live/scx": {"model", "policy", "computer", "live/driver", "live/factors", "live/session", "version"},
    "live/cli": {
        "model",
        "policy",
        "computer",
        "live/driver",
        "live/factors",
        "live/session",
        "live/daemon",
        "version",
    },
    "py": {
        "model",
        "policy",
        "computer",
        "predict",
        "kernels",
        "task",
        "sim",
        "taskrt",
        "trace",
        "recording",
        "preload",
        "version",
    },
}
# Crates that may use the operating system; the binding writes trace files and lets Ctrl-C through.
OS_CRATES = {
    "computer",
    "live/factors",
    "live/session",
    "live/daemon",
    "live/cli",
    "live/scx",
    "taskrt",
    "py",
}
# External crates of whose presence the whole design depends, and who may have them.
ONLY_FOR = {
    "pyo3": {"py"},
    "rayon": {"sim"},
    "libc": {"taskrt", "live/scx"},
    "nix": {"taskrt", "live/session"},
    "perf-event2": {"live/factors"},
    "rustix": {"computer", "live/factors", "live/session", "live/daemon", "live/cli", "taskrt"},
    "signal-hook": {"live/session"},
    "clap": {"live/session", "live/cli", "live/scx"},
    "rand": set(),
    "getrandom": set(),
    "chrono": set(),
    "tokio": set(),
}


def dependencies(crate: str) -> set[str]:
    """Names of all crates that a crate depends on outside of its tests."""
    manifest = tomllib.loads((CRATES / crate / "Cargo.toml").read_text())
    return set(manifest.get("dependencies", {})) | set(manifest.get("build-dependencies", {}))


def crates() -> list[str]:
    """All crates by their folder, such as ``model`` or ``live/driver``."""
    return sorted(str(path.parent.relative_to(CRATES)) for path in CRATES.rglob("Cargo.toml"))


def strip_comments_and_tests(text: str) -> str:
    """Rust source without comments, string literals and its own test module at the end."""
    text = text.split("#[cfg(test)]\nmod tests {")[0]
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r'"(?:[^"\\]|\\.)*"', '""', text, flags=re.DOTALL)


def sources(crate: str) -> Iterator[tuple[Path, str]]:
    """The crate's source files without their tests."""
    for path in sorted((CRATES / crate / "src").rglob("*.rs")):
        if path.stem != "tests" and "tests" not in path.parent.parts[-1:]:
            yield path.relative_to(ROOT), strip_comments_and_tests(path.read_text())


def test_the_source_filter_removes_what_it_should_and_no_more() -> None:
    text = 'use a; // std::time\nlet x = "std::fs \\" more"; let y = z;\n#[cfg(test)]\nmod tests { use std::env; }'
    assert strip_comments_and_tests(text) == 'use a; \nlet x = ""; let y = z;\n'
    assert sum(1 for _ in sources("policy")) > 5


@pytest.mark.parametrize("crate", crates())
def test_dependencies_point_one_way(crate: str) -> None:
    assert crate in MAY_DEPEND_ON, f"state in this file what crates/{crate} may depend on"
    own = {name.removeprefix("ampsched-") for name in dependencies(crate) if name.startswith("ampsched-")}
    allowed = {name.replace("/", "-") for name in MAY_DEPEND_ON[crate]}
    assert own <= allowed, f"crates/{crate} must not depend on {sorted(own - allowed)}"


@pytest.mark.parametrize("crate", crates())
def test_special_libraries_stay_where_they_belong(crate: str) -> None:
    for name in dependencies(crate) & ONLY_FOR.keys():
        assert crate in ONLY_FOR[name], f"crates/{crate} must not depend on {name}"


def found(crate: str, pattern: str) -> list[str]:
    return [f"{path}: {match}" for path, text in sources(crate) for match in re.findall(pattern, text)]


def test_back_ends_know_no_command_line() -> None:
    """Settings become arguments in the programs only: what runs policies works without any."""
    for crate in crates():
        manifest = tomllib.loads((CRATES / crate / "Cargo.toml").read_text())
        session = manifest.get("dependencies", {}).get("ampsched-live-session", {})
        if "clap" in session.get("features", []):
            mentions = found(crate, r"\bclap\b|session::arguments")
            inside = [text for text in mentions if not text.startswith(f"crates/{crate}/src/main.rs")]
            assert crate == "live/cli" or inside == [], f"{crate} is more than a program"


@pytest.mark.parametrize("crate", ["policy", "task"])
def test_policies_see_nothing_but_the_view(crate: str) -> None:
    outside = r"std::(?:time|fs|env|io|net|thread|process|os|path)\b|SystemTime|Instant::now|std::sync::\w+|static mut|thread_local"
    # The order of hash maps is random: a hidden random source. The readers of task graphs only look into theirs.
    hashed = r"RandomState" if crate == "task" else r"HashMap|HashSet|RandomState"
    assert found(crate, f"{outside}|{hashed}|unsafe") == []


@pytest.mark.parametrize("crate", [crate for crate in crates() if crate not in OS_CRATES])
def test_only_live_crates_touch_the_system(crate: str) -> None:
    pattern = r"std::(?:time|fs|env|net|thread|process|os)\b|SystemTime|Instant::now|extern \"\" *\{"
    assert found(crate, pattern) == []


def walks_through_hashes(text: str) -> list[str]:
    """Names of hash maps and sets in the source that are not only looked into but walked through."""
    hashes = r"(?:std::collections::)?Hash(?:Map|Set)\b"
    names = set(re.findall(rf"(\w+): *{hashes}", text)) | set(
        re.findall(rf"let (?:mut )?(\w+)[^;]*= *{hashes}", text)
    )
    walk = r"(?:iter|iter_mut|keys|values|values_mut|into_iter|into_keys|into_values|drain|retain)\b"
    return sorted(
        name
        for name in names
        if re.search(rf"\b{name}\s*\.\s*{walk}|\bin &?(?:mut )?(?:self\.)?{name}\b\s*\{{", text)
    )


@pytest.mark.parametrize("crate", ["model", "policy", "task", "sim"])
def test_results_do_not_depend_on_hash_order(crate: str) -> None:
    """std's hash maps are ordered by a random key; walking through one would make runs differ."""
    assert [(path, names) for path, text in sources(crate) if (names := walks_through_hashes(text))] == []


def test_walking_through_a_hash_map_is_noticed() -> None:
    assert walks_through_hashes("ids: HashMap<A, B>, fn f() { self.ids.get(x); }") == []
    assert walks_through_hashes("ids: HashMap<A, B>, fn f() { self.ids\n.values().sum() }") == ["ids"]
    assert walks_through_hashes("let mut seen = HashSet::new(); for x in &seen { }") == ["seen"]


@pytest.mark.parametrize(
    ("module", "info"),
    [
        ("policy/src/policies", "PolicyInfo"),
        ("policy/src/governors", "GovernorInfo"),
        ("task/src/policies", "TaskPolicyInfo"),
        ("task/src/programs", "TaskProgramInfo"),
    ],
)
def test_everything_registered_is_one_file_and_one_row(module: str, info: str) -> None:
    folder = CRATES / module
    text = (folder / "mod.rs").read_text().split(f": {info} = [")[1].split("]")[0]
    names = [row.split(" + ") for row in re.findall(r"[^\s,][^,]*", text)]
    rows = [(name, constant) for name, *others in names for constant in ("INFO", *others)]
    assert rows, "the registry could not be read"
    declared: dict[tuple[str, str], str] = {}
    for path in sorted(folder.glob("*.rs")):
        text = path.read_text()
        for constant, name in re.findall(rf'pub static (\w+): {info} = {info} \{{\s*name: "([^"]+)"', text):
            declared[path.stem, constant] = name
    assert sorted(rows) == sorted(declared), "a file without a row, or the reverse"
    assert len(set(declared.values())) == len(declared), "two of one name"


def test_data_files_are_named_after_what_they_describe() -> None:
    for kind in ("machines", "programs"):
        for path in sorted((DATA / kind).glob("*.toml")):
            name = tomllib.loads(path.read_text()).get("name", path.stem)
            assert name == path.stem, f"{path.relative_to(ROOT)} calls itself {name}"


def test_nothing_is_stated_twice_in_python() -> None:
    """Machines, policies and programs are never listed by hand: Python asks the registry and the data folder."""
    names = {path.stem for kind in ("machines", "programs") for path in (DATA / kind).glob("*.toml")}
    for path in sorted((ROOT / "python/ampsched").glob("*.py")):
        listed = [name for name in names if re.search(rf'"{re.escape(name)}", ?"', path.read_text())]
        assert len(listed) < 4, f"{path.relative_to(ROOT)} lists {sorted(listed)}"


SOURCE_LINES_MAX = 500


def test_source_files_are_short_enough_to_read_in_one_go() -> None:
    folders = ("crates", "python", "tests", "lab", "tools")
    endings = {".rs", ".c", ".h", ".py", ".pyi", ".sh"}
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in endings]
    assert len(files) > 500, "the sources were not found"
    too_long = {
        path.relative_to(ROOT).as_posix()
        for path in files
        if len(path.read_text(encoding="utf-8").splitlines()) > SOURCE_LINES_MAX
    }
    assert not too_long, f"files of more than {SOURCE_LINES_MAX} lines: divide them by what they are for"


def test_the_product_knows_no_laboratory() -> None:
    """The laboratory uses the product, never the reverse: the one door is by name and for a command."""
    words = re.compile(
        r"ampsched_lab|ampsched\.experiments|docs/reports|claims\.toml|\b[Ff]ig(?:ure|\.)? ?_?\d+\b"
    )
    door = "python/ampsched/laboratory.py"
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sorted((ROOT / "python/ampsched").rglob("*.py"))
        if path.relative_to(ROOT).as_posix() != door
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if words.search(line)
    ]
    assert found == [], "the product imports the laboratory, or speaks of a paper's figures"
