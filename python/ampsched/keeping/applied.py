"""What is applied: written so that it can be taken back, wherever it was interrupted.

A record of what a file holds before and after is on the disk before the file is touched, and goes when the file is as
it was before. So the file holds one of both, unless somebody else has changed it.
"""

from __future__ import annotations

import contextlib
import difflib
import fcntl
import json
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from ampsched._core import DESCRIPTION_BYTES_MAX, InputError
from ampsched.files import read_bytes, shown
from ampsched.keeping.places import CGROUP, Place
from ampsched.keeping.wrappers import home

STATE_OF_ROOT = Path("/var/lib")
"""Not below ``$XDG_STATE_HOME``, which ``sudo`` may pass on or not: what root has applied is found from any session."""
_RECORDS = "ampsched/applied"


@dataclass(frozen=True, slots=True)
class Applied:
    """What was written.

    Attributes:
        number: When: the greatest is the last.
        name: The place, as `Place.name`.
        path: The file.
        then: As `Place.undone`.
        before: What the file held; none if there was none.
        after: What was written.
        folders: Those that were made for it, the outermost first.
    """

    number: int
    name: str
    path: str
    then: str
    before: str | None
    after: str
    folders: list[str]

    @property
    def record(self) -> Path:
        """Where all this stands."""
        return state_folder() / f"{self.number:06}.json"

    @property
    def difference(self) -> str:
        """How the file differs from what was written; empty if it can be taken back."""
        now = content_of(Path(self.path))
        if now in (None, self.before, self.after):
            return ""
        old, new = self.after.splitlines(), (now or "").splitlines()
        return (
            "\n".join(difflib.unified_diff(old, new, "as written", "now", lineterm=""))
            or "only in its line ends"
        )

    def write(self, text: str) -> None:
        """Writes the file: as a whole or not at all."""
        if not self.name.startswith(CGROUP):
            _replace(Path(self.path), text, 0o777 if text.startswith("#!") else 0o666)
            return
        handle = os.open(self.path, os.O_WRONLY)  # the kernel's own, which nothing can replace
        try:
            os.write(handle, text.encode() or b"\n")
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror} ({text.strip()})", self.path) from None
        finally:
            os.close(handle)

    def forget(self) -> None:
        """Removes what else was made, and the record at the end."""
        _draft(Path(self.path)).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # somebody else uses it, too
            for folder in filter(os.path.exists, reversed(self.folders)):
                Path(folder).rmdir()
        self.record.unlink()


def state_folder() -> Path:
    """Where the records are: of root below /var/lib, of others below ``$XDG_STATE_HOME`` or ``~/.local/state``."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if os.geteuid() == 0:
        return STATE_OF_ROOT / _RECORDS
    return (Path(base) if base.startswith("/") else home() / ".local/state") / _RECORDS


def all_applied() -> list[Applied]:
    """Everything that is applied, the last first.

    Raises:
        InputError: A record cannot be read.
    """
    return [_read(path) for path in sorted(state_folder().glob("*.json"), reverse=True)]


def _read(path: Path) -> Applied:
    digest, _, body = read_bytes(path, 4 * DESCRIPTION_BYTES_MAX).partition(b"\n")
    try:
        made = Applied(**json.loads(body)) if digest == sha256(body).hexdigest().encode() else None
    except TypeError:  # of another version
        made = None
    if made is None:
        raise InputError(f"{shown(path)}: is no record of what was applied (move it away)")
    return made


def check_free(place: Place) -> str | None:
    """What a file holds that may be written.

    Raises:
        InputError: Something is there that is not as `apply` has left it.
    """
    now = content_of(place.path)
    known = [each for each in all_applied() if each.path == str(place.path)]
    if now is None or place.name.startswith(CGROUP) or (known and now in (known[0].before, known[0].after)):
        return now
    why = "was changed since --apply wrote it" if known else "is there already, and not from --apply"
    raise InputError(f"{shown(place.path)}: {why} (move it away, or name another file: --to FILE)")


def check_writable(place: Place) -> None:
    """Refuses a place that this user cannot write, before anything long begins.

    Raises:
        InputError: It cannot be written, or the record of it.
    """
    for path in (place.path, state_folder() / "record"):
        is_file = path == place.path and place.name.startswith(CGROUP)
        found = path if is_file else next(each for each in path.parents if each.exists())
        if not os.access(found, os.W_OK if is_file else os.W_OK | os.X_OK):
            how = (
                "as root, or elsewhere: --to" if path == place.path else "records stand there: XDG_STATE_HOME"
            )
            raise InputError(f"{shown(path)}: this user cannot write {shown(found)} ({how})")


def in_force(path: Path) -> Applied | None:
    """What was written last to a file that still holds it.

    Raises:
        InputError: A record, or the file, cannot be read.
    """
    found = (each for each in all_applied() if each.path == str(path))
    return next((each for each in found if content_of(path) == each.after), None)


def wrapper_of(program: str) -> Applied | None:
    """The wrapper that a program's name stands for.

    Raises:
        InputError: As `in_force` does.
    """
    found = shutil.which(program)
    return in_force(Path(os.path.abspath(found))) if found else None  # noqa: PTH100 (a link stays one)


def apply(place: Place, text: str) -> None:
    """Writes a text to a place, and before it a record.

    Raises:
        InputError: Something else is there.
        OSError: Something cannot be written; then nothing is changed.
    """
    with _locked() as folder:
        before = check_free(place)
        number = max((each.number for each in all_applied()), default=0) + 1
        missing = [str(each) for each in reversed(place.path.parents) if not each.exists()]
        made = Applied(number, place.name, str(place.path), place.undone, before, text, missing)
        body = json.dumps(asdict(made), indent=1)
        _replace(made.record, f"{sha256(body.encode()).hexdigest()}\n{body}", 0o600)
        _sync(folder)
        try:
            place.path.parent.mkdir(parents=True, exist_ok=True)
            made.write(text)
        except BaseException:
            if content_of(place.path) == before:
                made.forget()
            raise


def take_back(made: Applied) -> None:
    """Puts back what was there before; a file that is gone stays so.

    Raises:
        InputError: The file was changed since.
        OSError: It cannot be put back.
    """
    with _locked():
        if not made.record.exists():
            return  # another process has done it
        if made.difference:
            todo = f"take that back by hand and remove {shown(made.record)}"
            raise InputError(f"{shown(made.path)}: was changed since --apply wrote it ({todo})")
        if content_of(Path(made.path)) == made.after:
            if made.before is None:
                Path(made.path).unlink()
            else:
                made.write(made.before)
        made.forget()


def content_of(path: Path) -> str | None:
    """What a file holds; none if there is none.

    Raises:
        InputError: It cannot be read, or is no ordinary file.
    """
    try:
        is_file = stat.S_ISREG(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not is_file:
        raise InputError(f"{shown(path)}: is there already, and is no ordinary file")
    return read_bytes(path, DESCRIPTION_BYTES_MAX).decode(errors="surrogateescape")


def _replace(path: Path, text: str, mode: int) -> None:
    """Writes a file as a whole, which is on the disk then.

    Not `ampsched.files.writing`: of that a process that is killed would leave a draft that `Applied.forget` cannot
    find, as its name is drawn, and a computer that loses power would leave an empty file.
    """
    draft = _draft(path)
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with open(handle, "wb") as file:  # noqa: PTH123 (a descriptor)
        file.write(text.encode(errors="surrogateescape"))
        file.flush()
        os.fsync(handle)
    draft.replace(path)


def _draft(path: Path) -> Path:
    """Always the same, so that one that is left is found."""
    return path.with_name(f".{path.name}.ampsched-draft")


def _sync(folder: Path) -> None:
    """Has names in a folder on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(handle)
    os.close(handle)


@contextlib.contextmanager
def _locked() -> Iterator[Path]:
    """The folder of records, for one process at a time."""
    folder = state_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(handle)
