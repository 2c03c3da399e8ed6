"""Writes the reference pages from the code: ``python -m ampsched.docs OUTDIR``.

Command line, policies, catalogue and Python interface are described where they are defined; the pages repeat it.
"""

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import get_args

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

import ampsched
from ampsched import analytic
from ampsched.catalog import FOLDERS, Catalog
from ampsched.cli import helping
from ampsched.cli.app import app
from ampsched.files import write_text
from ampsched.governor import governors
from ampsched.kinds import Kind
from ampsched.markdown import WIDTH, page
from ampsched.policy import policies
from ampsched.recording import trace_metrics
from ampsched.registry import Param, Registered
from ampsched.tasks import task_policies, task_programs
from ampsched.words import Group, Word, plain, words

NOTE = "<!-- Written by `python -m ampsched.docs`; change the code instead. -->"
COMMANDS = "commands"
"""Folder of the commands' pages, beside the page of the command line."""
POLICY_PICTURES = "policies"
"""Folder of the policies' pages and pictures, beside the page of policies."""
SECTIONS = ("Args", "Returns", "Raises", "Example")


def cli_page() -> str:
    """All commands, each with a link to its page."""
    return page(
        NOTE,
        "# Command line",
        "Whatever is wrong with the input is reported in one line that begins with `error:`, with exit code 2. "
        "`ampsched --install-completion` makes the shell complete commands, options and names.",
        "Machines and workloads are named as `ampsched list` shows them, or by the path of a file. A byte of a name that "
        "is no UTF-8 is shown as `%ff`. Files take at most 4 GiB, of memory 250 times their length and 256 MiB at least.",
        _entries(
            (f"[`ampsched {name}`]({COMMANDS}/{_file(name)})", _first_line_of(command.help))
            for name, command in commands(_root())
        ),
    )


def command_page(name: str, command: TyperCommand) -> str:
    """A command with its options and examples."""
    context = typer.Context(command, info_name=f"ampsched {name}")
    records = filter(None, (helping.row(param, context) for param in command.params))
    parts = [NOTE, f"# ampsched {name}", inspect.cleandoc(command.help or "")]
    parts.append(_entries((_code(head), text) for head, text in records))
    return page(*filter(None, [*parts, command.epilog or ""]))


def _root() -> TyperGroup:
    root = get_command(app)
    assert isinstance(root, TyperGroup)
    return root


def _file(command: str) -> str:
    return f"{command.replace(' ', '-')}.md"


def _first_line_of(text: str | None) -> str:
    return inspect.cleandoc(text or "").split("\n\n")[0]


def commands(group: TyperGroup, prefix: str = "") -> Iterator[tuple[str, TyperCommand]]:
    """All commands of an application, those of groups with the group's name before theirs."""
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from commands(command, f"{prefix}{name} ")
        elif isinstance(command, TyperCommand):
            yield f"{prefix}{name}", command


def policies_page() -> str:
    """All policies, each with a link to its page."""
    parts = [
        NOTE,
        "# Policies",
        "A policy is named with parameters like this: `colab:literal=1:decay=0.8`. In a list, policies are separated by "
        "commas; the others are measured against the first.",
        "![What each policy changes against linux: mean slowdown and unfairness](policies.svg)",
        "Means over the mixes of the COLAB paper on two big and two little cores with one frequency each, with true "
        "speed-ups; further left is better. Policies that save energy, set clocks or need other machines cannot show "
        "here what they are for. [Reports](../reports/claims.md) compare policies on their own papers' workloads.",
        "Each policy's page has a picture. On the left are six threads on two big and two little cores (Exynos 5422, with power and "
        "clocks), 0.2 s from the middle of a run: three that only compute and gain more or less from a big core, two that "
        "share a lock, and one that sleeps most of the time; a row without bars is a thread that waits all the time, as for the "
        "lock under `hfee`. On the right is the policy's place among all (grey) in the two quantities of the figure above.",
        _entries((f"[`{info.name}`]({POLICY_PICTURES}/{info.name}.md)", info.summary) for info in policies()),
    ]
    return page(*parts)


def policy_page(info: Registered) -> str:
    """A policy with its documentation, picture and parameters."""
    head, summary, *rest = _chapter(info)
    picture = f"![{info.name}: which thread has which core, and its place]({info.name}.svg)"
    # Links of documentations are those of the folder above.
    rest = [part.replace("](../", "](../../") for part in rest]
    return page(NOTE, head.removeprefix("#"), summary[:1].upper() + summary[1:], picture, *rest)


def task_policies_page() -> str:
    """All task policies with their documentation and parameters."""
    rows = (
        (f"{_link(info.name)} ({'off-line' if info.off_line else 'on-line'})", info.summary)
        for info in task_policies()
    )
    parts = [
        NOTE,
        "# Task policies",
        "A task policy is named with parameters like this: `cats:steal=1`. On-line policies feed workers while they run; "
        "off-line ones need all costs beforehand, and their schedule is executed.",
        _entries(rows),
    ]
    for info in task_policies():
        parts += _chapter(info)
    return page(*parts)


def task_programs_page() -> str:
    """All programs whose task graphs can be generated."""
    parts = [
        NOTE,
        "# Task programs",
        "The nine PARSEC programs of Chronaki et al. (JPDC 2018), Table 1, as task graphs. A program is named with parameters like "
        "this: `fluidanimate:frames=50:barriers=1`. The work of each is 100 s on one little core: the paper publishes no absolute times.",
        "With `barriers=1` every stage ends with a barrier, as in the pthreads versions: schedule that graph with `static`, "
        "`loop-static` or `loop-dynamic`. Without it tasks wait for the data they read, as in the task-based versions.",
        _entries(
            (f"{_link(info.name)} (big / little {info.ratio:g})", info.summary) for info in task_programs()
        ),
    ]
    for info in task_programs():
        parts += [f"## {info.name}", f"{info.summary}.", info.documentation, *_params(info.params)]
    return page(*parts)


def governors_page() -> str:
    """All governors with their documentation and parameters."""
    parts = [
        NOTE,
        "# Governors",
        "A governor decides at which frequency a cluster of cores runs. It is named with parameters like this: "
        "`ondemand:up_threshold=80`; whole numbers are meant, others are rounded. Each follows the kernel that its "
        "source names, file and functions; parameters are that kernel's tunables, in the same units.",
        _index(governors()),
    ]
    for info in governors():
        parts += _chapter(info)
    return page(*parts)


def _index(rows: Iterable[Registered]) -> str:
    return _entries((_link(info.name), info.summary) for info in rows)


def _link(name: str) -> str:
    """A link to the chapter of something registered."""
    return f"[`{name}`](#{name})"


def _chapter(info: Registered) -> list[str]:
    parts = [f"## {info.name}", f"{info.summary}.", info.documentation, f"**Source.** {info.source}."]
    return parts + _params(info.params)


def _params(params: tuple[Param, ...]) -> list[str]:
    """Parameters with range and default; nothing if there are none."""
    if not params:
        return []
    rows = (
        (f"{_code(param.name)} ({param.values()}; default {param.default:g})", param.help) for param in params
    )
    return ["**Parameters.**", _entries(rows)]


def words_page() -> str:
    """The whole vocabulary of Rules, Plan, Needs and Factors."""
    groups = words()
    parts = [
        NOTE,
        "# The words of a policy",
        "A policy is made of these words, wherever it runs. The simulator executes all of them as written; what "
        "a scheduler in the kernel and the daemon do otherwise stands with each word. A change of a plan that no "
        "rule of the policy reads is refused when it is made, everywhere, and a rule that reads tracked load when "
        "the policy begins, unless `Needs` says how to track it; what `Needs` does not name arrives as missing.",
    ]
    titles = {"rules": "Rules", "plan": "Plan", "needs": "Needs", "factors": "Factors"}
    for group in groups:
        if group.part in titles:
            parts.append(f"## {titles.pop(group.part)}")
        parts += [f"### `{group.name}`", plain(group.doc)]
        parts.append(_entries((_word_head(word), _word_text(group, word)) for word in group.words))
    return page(*parts)


def _word_head(word: Word) -> str:
    carries = ", ".join(name for name, _ in word.payload)
    return f"`{word.name}`" + (f" ({carries})" if carries else "")


def _word_text(group: Group, word: Word) -> str:
    if group.part == "factors":
        return plain(word.doc)
    parts = [plain(word.doc)]
    parts += [f"`{name}`: {plain(doc)}" for name, doc in word.payload if doc]
    if word.reads:
        parts.append(f"Reads {', '.join(f'`{change}`' for change in word.reads)}.")
    if word.hides:
        parts.append(f"Takes away the meaning of {', '.join(f'`{change}`' for change in word.hides)}.")
    if word.reads_load:
        parts.append("Needs `load_tracking`.")
    if word.readers:
        parts.append(f"Read by {', '.join(f'`{rule}`' for rule in word.readers)}.")
    places = (("Kernel", word.kernel), ("Daemon", word.daemon))
    parts += [f"{place}: {does}." for place, does in places if does != "exact"]
    return " ".join(parts)


def catalog_page() -> str:
    """Everything that is shipped, by kind."""
    catalog = Catalog.shipped()
    parts = [
        NOTE,
        "# What is shipped",
        "`ampsched describe NAME` tells more about each. The files are in `python/ampsched/data`.",
    ]
    for kind in get_args(Kind):
        rows = ((_code(entry.name), entry.description) for entry in catalog.entries(kind))
        title = FOLDERS[kind].replace("_", " ").capitalize()
        parts += [f"## {title}", _entries(rows)]
    return page(*parts)


def python_page() -> str:
    """The public names of the package, and those of its module `analytic`, with their documentation."""
    parts = [NOTE, "# Python interface", "Everything here is imported from `ampsched`."]
    parts += _documented_names({name: getattr(ampsched, name) for name in ampsched.__all__})
    parts += ["## analytic", "`from ampsched import analytic`. " + _docstring(analytic)]
    own = {name: value for name, value in vars(analytic).items() if _is_own(analytic, name, value)}
    parts += _documented_names({f"analytic.{name}": value for name, value in own.items()})
    return page(*parts)


def _is_own(module: ModuleType, name: str, value: object) -> bool:
    """Whether a module defines a public function or class."""
    return not name.startswith("_") and getattr(value, "__module__", None) == module.__name__


def _documented_names(values: dict[str, object]) -> list[str]:
    names = sorted(values, key=lambda name: (inspect.isclass(values[name]), name.lower()))
    return [part for name in names for part in _documented(name, values[name])]


def _documented(name: str, value: object) -> list[str]:
    parts = [f"## {name}"]
    if inspect.isfunction(value):
        parts.append(_signature(name, value))
    parts.append(_docstring(value))
    if inspect.isclass(value):
        rows = [
            (_code(member), _first_line(attribute))
            for member, attribute in vars(value).items()
            if not member.startswith("_")
            and (callable(attribute) or isinstance(attribute, property | staticmethod))
        ]
        fields = getattr(value, "__dataclass_fields__", {})
        if fields:
            parts.append("Fields: " + ", ".join(_code(field) for field in fields) + ".")
        if rows:
            parts += ["Members:", _entries(rows)]
    return parts


def _signature(name: str, function: Callable[..., object]) -> str:
    params: list[str] = []
    for param in inspect.signature(function).parameters.values():
        default = "" if param.default is inspect.Parameter.empty else f"={param.default!r}"
        star = "*, " if param.kind is param.KEYWORD_ONLY and "*, " not in "".join(params) else ""
        stars = "**" if param.kind is param.VAR_KEYWORD else star
        params.append(f"{stars}{param.name}{default}")
    head = f"{name}("
    lines = textwrap.wrap(
        f"{head}{', '.join(params)})",
        WIDTH,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(["```python", *lines, "```"])


def _docstring(value: object) -> str:
    """The docstring with its sections as Markdown."""
    lines: list[str] = []
    section = ""
    for line in (inspect.getdoc(value) or "").splitlines():
        head = line.rstrip(":")
        if line.endswith(":") and head in SECTIONS:
            section = head
            lines += [f"**{head}**", ""]
        elif section in ("Args", "Raises") and (item := re.match(r"    ((?:\*\*)?\w+): (.*)", line)):
            lines.append(f"- `{item[1]}`: {item[2]}")
        elif section == "Example" and line.startswith("    "):
            lines.append(line)
        else:
            lines.append(line.strip())
    return "\n".join(lines).replace("``", "`")


def _first_line(value: object) -> str:
    documented = value
    if isinstance(value, property):
        documented = value.fget
    elif isinstance(value, staticmethod):  # it documents itself, differently in each version of Python
        documented = value.__func__
    return (inspect.getdoc(documented) or "").split("\n\n")[0].replace("\n", " ").replace("``", "`")


def _code(text: str) -> str:
    return f"`{' '.join(text.split())}`"


def _entries(rows: Iterable[tuple[str, str]]) -> str:
    """A list of things, each with what there is to say of it."""
    return "\n".join(f"- {head}: {' '.join(text.split())}" for head, text in rows)


def trace_metrics_page() -> str:
    """What `ampsched check` measures in traces."""
    rows = [
        (f"`{each.name}`" + (f" ({each.unit})" if each.unit else ""), f"{each.meaning}.")
        for each in trace_metrics.METRICS
    ]
    of_cluster = [
        (f"`{name}.CLUSTER` ({unit})", f"{meaning}.")
        for name, unit, meaning, *_ in trace_metrics.CLUSTER_METRICS
    ]
    return page(
        NOTE,
        "# Metrics of traces",
        "`ampsched check TRACE` measures these; `--limit 'NAME<=VALUE'` makes it end with exit code 1 where one is exceeded. "
        "Wake-up latency is [defined here](latency.md). Numbers of threads are those of the threads that count "
        "(`--command`, `--pid`), numbers of CPUs of the whole system.",
        _entries(rows),
        "With a machine, for each of its clusters:",
        _entries(of_cluster),
        "The load of a thread in a window of 100 ms is its CPU time there, weighted by the capacity of its core at the clock "
        "of the moment (at the highest if the trace has no clocks), over the window.",
        "Frames are those of `ampsched advise` and `recording show`: by marks (`Choreographer#doFrame`, `DrawFrame`, "
        "SurfaceFlinger's), else from a wake-up at its thread's period to its next wait for the clock. A frame's length is "
        "a [response time](latency.md); one longer than the period is late, and counts for the thread that ends it.",
        "A limit may state the unit instead of the name: `late_frames<=1%`. One that is exceeded names the three threads "
        "with most part in it, and when to look at the first.",
    )


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli_page,
    "policies.md": policies_page,
    "governors.md": governors_page,
    "task-policies.md": task_policies_page,
    "task-programs.md": task_programs_page,
    "policy-words.md": words_page,
    "catalog.md": catalog_page,
    "trace-metrics.md": trace_metrics_page,
    "python.md": python_page,
    **{f"{POLICY_PICTURES}/{info.name}.md": partial(policy_page, info) for info in policies()},
    **{
        f"{COMMANDS}/{_file(name)}": partial(command_page, name, command)
        for name, command in commands(_root())
    },
}


def main(folder: Path) -> None:
    """Writes all pages into a folder."""
    for kind in (COMMANDS, POLICY_PICTURES):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    for name, text in PAGES.items():
        write_text(folder / name, text())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m ampsched.docs OUTDIR")
    main(Path(sys.argv[1]))
