"""New policies from templates: a Rust file with its row in the registry, or a Python file."""

import keyword
import re
from pathlib import Path

from ampsched._core import InputError
from ampsched.files import read_text, write_text

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
_ROW = re.compile(r"^(?P<indent> +)(?P<module>\w+)(?: \+ \w+)*,$", re.MULTILINE)


def checkout(start: Path) -> Path:
    """The checkout of the project in which a folder is.

    Raises:
        InputError: If it is in none.
    """
    for folder in (start, *start.parents):
        if (folder / REGISTRY).is_file() and (folder / TEMPLATE).is_file():
            return folder
    raise InputError(
        f"{start} is not in a checkout of ampsched, where policies in Rust are written "
        "(clone the project, or write one in Python: ampsched new policy --python NAME)"
    )


def new_rust_policy(root: Path, name: str) -> tuple[Path, Path]:
    """Writes a policy in Rust and its row; returns the new file and the changed one.

    Args:
        root: The checkout.
        name: Name in the registry, such as ``big-first``.

    Raises:
        InputError: If the name cannot be used, or there is such a policy.
    """
    module, title = _names(name)
    if RUST_WORDS.fullmatch(module):
        raise InputError(f'policy name "{name}" is a word of Rust')
    file, registry = root / POLICIES / f"{module}.rs", root / REGISTRY
    text = read_text(registry)
    rows = [(_name_of(root, row["module"]), row) for row in _ROW.finditer(text)]
    if file.exists() or module in re.findall(r"\bmod (\w+)", text) or name in (known for known, _ in rows):
        raise InputError(f'policy "{name}" exists already ({file})')
    if not rows:
        raise InputError(f"{registry}: no rows found; add the policy by hand")
    later = [row for known, row in rows if known > name]
    position = later[0].start() if later else rows[-1][1].end() + 1
    row = f"{rows[0][1]['indent']}{module},\n"
    _write_new(file, _filled(read_text(root / TEMPLATE), name, module, title))
    write_text(registry, text[:position] + row + text[position:])
    return file, registry


def new_python_policy(folder: Path, name: str) -> tuple[Path, str]:
    """Writes a policy in Python; returns the file and the name of its class.

    Raises:
        InputError: If the name cannot be used, or the file exists.
    """
    module, title = _names(name)
    if keyword.iskeyword(module):
        raise InputError(f'policy name "{name}" is a word of Python')
    file = folder / f"{module}.py"
    _write_new(file, _filled(read_text(PYTHON_TEMPLATE), name, module, title))
    return file, title


def _names(name: str) -> tuple[str, str]:
    """The names of module and type: ``big_first`` and ``BigFirst`` for ``big-first``."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or len(name) > NAME_MAX:
        raise InputError(
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
        r': PolicyInfo = PolicyInfo \{\s*name: "([^"]+)"', read_text(root / POLICIES / f"{module}.rs")
    )
    return found[1] if found else module.replace("_", "-")


def _write_new(file: Path, text: str) -> None:
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise InputError(f"{file} exists already") from None
