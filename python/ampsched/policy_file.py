"""Policies written in Python, named on the command line: ``my_policy.py:FastestFirst:epoch_ms=20``."""

import itertools
import sys
import traceback
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from ampsched._core import InputError
from ampsched.files import read_text
from ampsched.naming import unknown
from ampsched.spec import parse_spec

SUFFIX = ".py"
SIMULATION_ONLY = (
    "a policy in Python runs in simulation only; write it in Rust to run it live (ampsched new policy NAME)"
)

T = TypeVar("T")
_numbers = itertools.count(1)


def is_file(policy: str) -> bool:
    """Whether a policy is named by a Python file, not by its name in the registry."""
    return policy.strip().partition(":")[0].endswith(SUFFIX)


def load(policy: str, base: type[T]) -> tuple[type[T], Path, tuple[tuple[str, float], ...]]:
    """The class that ``FILE.py:CLASS:key=number`` names, its file, and the parameters.

    The file is executed anew each time. Its folder is where it finds modules of its own, as if it were run as a
    script. The class may be left out if the file has only one.

    Args:
        policy: The text.
        base: What the class has to be derived from.

    Raises:
        InputError: If the file cannot be read or fails, has no such class, or the class is not derived from `base`.
    """
    name, _, rest = policy.strip().partition(":")
    path = Path(name)
    wanted, _, params = rest.partition(":")
    if "=" in wanted:
        wanted, params = "", rest
    module = _execute(path)
    found = _choose(path, module, wanted, base)
    text = f"{found.__name__}:{params}" if params else found.__name__
    return found, path, parse_spec(text, "policy")[1]


def mistake(path: Path, error: BaseException) -> InputError:
    """An exception of the code in a policy's file as one line: file, line, what happened."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        file = path if Path(error.filename) == path.resolve() else error.filename
        return InputError(f"policy {file}:{error.lineno}: {error.msg}")
    line = line_of(path, error)
    where = path if line is None else f"{path}:{line}"
    text = " ".join(str(error).split())
    return InputError(f"policy {where}: {type(error).__name__}{f': {text}' if text else ''}")


def line_of(path: Path, error: BaseException) -> int | None:
    """The innermost line of the file at which an exception passed, if it did."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename) == path.resolve()]
    return lines[-1] if lines else None


def _execute(path: Path) -> ModuleType:
    read_text(path)  # says best why it cannot be read
    file = path.resolve()
    name = f"_ampsched_policy_{next(_numbers)}_{file.stem}"
    spec = spec_from_file_location(name, file)
    assert spec is not None, "the suffix is that of Python sources"
    assert spec.loader is not None, "a file has a loader"
    module = module_from_spec(spec)
    sys.modules[name] = module  # data classes look up their module
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise mistake(path, error) from None
    return module


def _choose(path: Path, module: ModuleType, wanted: str, base: type[T]) -> type[T]:
    own = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__
    }
    policies = {name: value for name, value in own.items() if issubclass(value, base)}
    title = f"ampsched.{base.__name__}"
    if not wanted:
        if len(policies) == 1:
            return next(iter(policies.values()))
        which = f"{len(policies)} subclasses of {title}: name one of {', '.join(policies)}"
        raise InputError(f"policy {path}: it has {which if policies else f'no subclass of {title}'}")
    if wanted in policies:
        return policies[wanted]
    if wanted in own:
        raise InputError(f"policy {path}:{wanted}: the class is not a subclass of {title}")
    raise unknown(f"class of {path}", wanted, policies, "" if policies else f"it has no subclass of {title}")
