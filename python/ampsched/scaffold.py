"""New policies from templates: a Rust file with its row in the registry, or a Python file.

This file also runs alone, on Python's own library: ``python3 -I python/ampsched/scaffold.py NAME`` (``make new``)
begins a policy in Rust where nothing is built yet.
"""

import keyword
import re
import sys
from pathlib import Path

POLICIES = Path("crates/policy/src/policies")
REGISTRY = POLICIES / "mod.rs"
TEMPLATE = Path("crates/policy/templates/policy.rs")
PYTHON_TEMPLATE = Path(__file__).parent / "templates/policy.py"
NAME_MAX = 40
RUST_WORDS = re.compile(
    "abstract|as|async|await|become|box|break|const|continue|crate|do|dyn|else|enum|extern|false|"
    "final|fn|for|gen|if|impl|in|let|loop|macro|match|mod|move|mut|override|priv|pub|ref|return|"
    "self|static|struct|super|trait|true|try|type|typeof|unsafe|unsized|use|virtual|where|while|"
    "yield"
)


class ScaffoldError(ValueError):
    """A policy cannot be begun; the text is one line."""


_ROW = re.compile(r"^(?P<indent> +)(?P<module>\w+)(?: \+ \w+)*,$", re.MULTILINE)


def checkout(start: Path) -> Path:
    """The checkout of the project in which a folder is.

    Raises:
        ScaffoldError: If it is in none.
    """
    for folder in (start, *start.parents):
        if (folder / REGISTRY).is_file() and (folder / TEMPLATE).is_file():
            return folder
    raise ScaffoldError(
        f"{start} is not in a checkout of ampsched, where policies in Rust are written "
        "(clone the project, or write one in Python: ampsched new policy --python NAME)"
    )


def new_rust_policy(root: Path, name: str) -> tuple[Path, Path]:
    """Writes a policy in Rust and its row; returns the new file and the changed one.

    Args:
        root: The checkout.
        name: Name in the registry, such as ``big-first``.

    Raises:
        ScaffoldError: If the name cannot be used, or there is such a policy.
    """
    module, title = _names(name)
    if RUST_WORDS.fullmatch(module):
        raise ScaffoldError(f'policy name "{name}" is a word of Rust')
    file, registry = root / POLICIES / f"{module}.rs", root / REGISTRY
    text = _read(registry)
    rows = [(_name_of(root, row["module"]), row) for row in _ROW.finditer(text)]
    if file.exists() or module in re.findall(r"\bmod (\w+)", text) or name in (known for known, _ in rows):
        raise ScaffoldError(f'policy "{name}" exists already ({file})')
    if not rows:
        raise ScaffoldError(f"{registry}: no rows found; add the policy by hand")
    later = [row for known, row in rows if known > name]
    position = later[0].start() if later else rows[-1][1].end() + 1
    row = f"{rows[0][1]['indent']}{module},\n"
    _write_new(file, _filled(_read(root / TEMPLATE), name, module, title))
    registry.write_text(text[:position] + row + text[position:], encoding="utf-8")
    return file, registry


def new_python_policy(folder: Path, name: str) -> tuple[Path, str]:
    """Writes a policy in Python; returns the file and the name of its class.

    Raises:
        ScaffoldError: If the name cannot be used, or the file exists.
    """
    module, title = _names(name)
    if keyword.iskeyword(module):
        raise ScaffoldError(f'policy name "{name}" is a word of Python')
    file = folder / f"{module}.py"
    _write_new(file, _filled(_read(PYTHON_TEMPLATE), name, module, title))
    return file, title


def begin(here: Path, name: str) -> list[str]:
    """Begins a policy in Rust in the checkout in which a folder is; returns what to tell its author, in lines.

    Raises:
        ScaffoldError: As of `checkout` and `new_rust_policy`.
    """
    root = checkout(here)
    new, changed = (path.relative_to(root) for path in new_rust_policy(root, name))
    return [
        f"written: {new}",
        f"row added: {changed}",
        "then:",
        f"  make try POLICY={name}    after each edit: compares it with cfs",
        f"  cargo test -p ampsched-policy {new.stem}    its unit test",
        "  make bless    writes what is generated anew and shows the differences",
        "  make lint test",
    ]


def main(arguments: list[str]) -> int:
    """Begins the policy in Rust of that name; returns the exit code."""
    try:
        if len(arguments) != 1:
            raise ScaffoldError("name one policy: make new POLICY=big-first")
        print("\n".join(begin(Path.cwd(), arguments[0])))
    except ScaffoldError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _names(name: str) -> tuple[str, str]:
    """The names of module and type: ``big_first`` and ``BigFirst`` for ``big-first``."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or len(name) > NAME_MAX:
        raise ScaffoldError(
            f'policy name "{name}" is not made of lower-case words joined by "-", such as big-first '
            f"(at most {NAME_MAX} characters)"
        )
    return name.replace("-", "_"), "".join(word.capitalize() for word in name.split("-"))


def _filled(template: str, name: str, module: str, title: str) -> str:
    sentence = name.replace("-", " ").capitalize()
    words = {"my-policy": name, "my_policy": module, "MyPolicy": title, "My policy": sentence}
    return re.sub("|".join(words), lambda found: words[found[0]], template)


def _name_of(root: Path, module: str) -> str:
    """The registered name of a module's policy, by which rows are ordered."""
    found = re.search(
        r': PolicyInfo = PolicyInfo \{\s*name: "([^"]+)"', _read(root / POLICIES / f"{module}.rs")
    )
    return found[1] if found else module.replace("_", "-")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScaffoldError(f"{path}: cannot be read: {error}") from None


def _write_new(file: Path, text: str) -> None:
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise ScaffoldError(f"{file} exists already") from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
