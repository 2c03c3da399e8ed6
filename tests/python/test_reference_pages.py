"""The reference pages say what the code says."""

import re
from collections.abc import Sequence

import pytest
from conftest import ROOT

from ampsched import docs
from ampsched.governor import governors
from ampsched.policy import policies
from ampsched.registry import Registered
from ampsched.tasks import task_policies
from ampsched.words import rules_module, words

REFERENCE = ROOT / "docs/reference"


@pytest.mark.parametrize("name", docs.PAGES)
def test_pages_are_up_to_date(name: str) -> None:
    written = (REFERENCE / name).read_text(encoding="utf-8")
    assert written == docs.PAGES[name](), "run: python -m ampsched.docs docs/reference"


@pytest.mark.parametrize("info", policies(), ids=lambda info: info.name)
def test_a_policy_says_when_to_use_it_and_has_a_picture(info: Registered) -> None:
    chapter = docs.policy_page(info)
    assert f"({docs.POLICY_PICTURES}/{info.name}.md)" in docs.policies_page()
    purpose, use, how = (chapter.find(f"**{part}.**") for part in ("Purpose", "When to use", "Algorithm"))
    assert 0 < purpose < use < how, (
        "crates/policy/src/policies: the part 'When to use' stands behind 'Purpose'"
    )
    assert f"]({info.name}.svg)" in chapter
    assert (REFERENCE / docs.POLICY_PICTURES / f"{info.name}.svg").exists(), (
        "run: make bless ONLY=policies-picture"
    )


def test_a_part_of_a_documentation_is_plain_text() -> None:
    info = next(info for info in policies() if info.name == "colab")
    assert info.part("When to use").startswith("For multi-threaded programs")
    assert "slower than cfs (prediction)." in info.part("When to use")
    assert info.part("Limits").endswith("migrations cost.")
    with pytest.raises(KeyError):
        info.part("Price")


def test_there_is_no_picture_of_what_is_not_a_policy() -> None:
    files = {path.name for path in (REFERENCE / docs.POLICY_PICTURES).iterdir()}
    assert files == {f"{info.name}.{kind}" for info in policies() for kind in ("md", "svg")}


def test_there_is_no_page_of_what_is_not_a_command() -> None:
    pages = {f"{docs.COMMANDS}/{path.name}" for path in (REFERENCE / docs.COMMANDS).iterdir()}
    assert pages == {name for name in docs.PAGES if name.startswith(docs.COMMANDS)}


@pytest.mark.parametrize(
    ("page", "infos"),
    [
        ("".join(map(docs.policy_page, policies())).replace("\n# ", "\n## "), policies()),
        (docs.governors_page(), governors()),
        (docs.task_policies_page(), task_policies()),
    ],
)
def test_every_row_of_a_registry_is_documented(page: str, infos: Sequence[Registered]) -> None:
    for info in infos:
        chapter = page.split(f"\n## {info.name}\n")[1].split("\n## ")[0]
        for part in ("Purpose", "Algorithm", "Constants", "Example", "Limits", "Source"):
            assert f"**{part}" in chapter, f"{info.name}: {part}"
        for param in info.params:
            assert f"`{param.name}`" in chapter
            assert param.min <= param.default <= param.max
            assert param.help


def test_the_rules_of_python_are_those_of_the_table() -> None:
    written = (ROOT / "python/ampsched/rules.py").read_text(encoding="utf-8")
    assert written == rules_module(), "run: make bless ONLY=rules"


def test_every_word_is_documented() -> None:
    page = docs.words_page()
    for group in words():
        assert f"### `{group.name}`" in page
        assert group.doc, group.name
        for word in group.words:
            assert len(word.doc) > 3, f"{group.name}.{word.name}"


def test_every_option_is_documented() -> None:
    page = "\n".join(text() for name, text in docs.PAGES.items() if name.startswith(docs.COMMANDS))
    entries = re.findall(r"^- `(.+?)`: (.*)$", page, re.MULTILINE)
    assert len(entries) >= 30
    assert all(len(text) > 10 for _, text in entries)


def test_public_names_are_documented() -> None:
    page = docs.python_page()
    for chapter in page.split("\n## ")[1:]:
        name, _, text = chapter.partition("\n")
        assert len(text.strip()) > 20, name
        assert not re.search(r"^- `\w+`: *$", text, re.MULTILINE), f"{name}: a member has no docstring"
