"""HTML reports as readers see them, in Chromium: numbers, sorting, filters, colours, size."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from browser import needs_chromium, opened
from conftest import ROOT, Ampsched

import ampsched
from ampsched.policy import policy_info
from ampsched.report import Asked, comparing, tasks, write
from ampsched.settings import CompareSettings, complete

POLICIES = ["linux", "wash", "colab"]
BYTES_MAX = 3_000_000
"""So that a page opens at once, and can be sent by mail."""
pytestmark = needs_chromium


@pytest.fixture(scope="module")
def result() -> ampsched.Comparison:
    return ampsched.compare("2B2S", "sync-2", POLICIES, repeat=3)


@pytest.fixture(scope="module")
def page_file(result: ampsched.Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a comparison, with timelines."""
    settings = complete(CompareSettings, {"repeat": 3})
    asked = Asked.of(["2B2S"], ["sync-2"], POLICIES, settings, "ampsched compare -m 2B2S -w sync-2")
    path = tmp_path_factory.mktemp("html") / "report.html"
    write(comparing.page(result.to_dict(), asked), path)
    return path


def answers(page: Any) -> dict[str, list[str]]:
    """The first table's rows that are shown, by policy."""
    rows = page.locator("table").first.locator("tbody tr:visible").all()
    return {
        row.locator("th").evaluate("each => each.firstChild.textContent.trim()"): row.locator(
            "td"
        ).all_inner_texts()
        for row in rows
    }


def test_nothing_fails_and_nothing_is_loaded(page_file: Path) -> None:
    with opened(page_file) as found:
        found.page.wait_for_function("ampsched.charts.every(each => each.made)")
        assert found.problems == []
        assert found.page.locator(".canvas svg").count() == 3, "intervals and two timelines"


def test_numbers_are_those_of_the_json(page_file: Path, result: ampsched.Comparison) -> None:
    values = json.loads(json.dumps(result.to_dict()))
    with opened(page_file) as found:
        shown = answers(found.page)
        for row in values["summary"]:
            mean, half = row["h_antt"]["mean"], (row["h_antt"]["high"] - row["h_antt"]["low"]) / 2
            assert shown[row["policy"]][0] == f"{mean:.3f} ±{half:.3f}"
            assert f"{row['makespan_ms']['mean']:,.1f}" in shown[row["policy"]][-1]
        data = json.loads(found.page.locator("figure[data-form=intervals] script").text_content() or "")
        drawn = {row["policy"]: row for row in data["metrics"][0]["rows"]}
        for row in values["summary"]:
            assert {key: drawn[row["policy"]][key] for key in ("mean", "low", "high")} == {
                key: row["h_antt"][key] for key in ("mean", "low", "high")
            }


def test_policies_say_when_to_use_them(page_file: Path) -> None:
    text = page_file.read_text("utf-8")
    assert "when to use it" in text
    assert policy_info("colab").part("When to use")[:60] in text


def test_tables_are_sorted_by_a_click_and_by_the_keyboard(
    page_file: Path, result: ampsched.Comparison
) -> None:
    by_antt = [row.policy for row in sorted(result.summary(), key=lambda row: row.h_antt.mean)]
    with opened(page_file) as found:
        head = found.page.locator("table").first.get_by_role("button", name="H_ANTT")
        head.click()
        assert list(answers(found.page)) == by_antt
        head.focus()
        found.page.keyboard.press("Enter")
        assert list(answers(found.page)) == by_antt[::-1]
        assert found.page.locator("th[aria-sort=descending]").count() == 1


def test_a_filter_hides_a_policy_in_tables_and_figures(page_file: Path) -> None:
    with opened(page_file) as found:
        labels = found.page.locator("figure[data-form=intervals] svg text")
        assert labels.get_by_text("wash", exact=True).count() == 1
        found.page.locator(".filter input[value=wash]").uncheck()
        assert list(answers(found.page)) == ["linux", "colab"]
        assert labels.get_by_text("wash", exact=True).count() == 0
        assert found.page.locator("tr[data-group=wash]:visible").count() == 0


def test_the_axis_can_begin_at_zero(page_file: Path) -> None:
    with opened(page_file) as found:
        first = found.page.locator("figure[data-form=intervals]")
        assert first.locator("svg text", has_text=re.compile(r"^0$")).count() == 0
        first.get_by_role("button", name="axis from zero").click()
        assert first.locator("svg text", has_text=re.compile(r"^0$")).count() == 1


@pytest.fixture(scope="module")
def along() -> ampsched.Comparison:
    return ampsched.compare("2B2S", "ferret", ["linux", "rr"], over="n=1..4x2", repeat=2)


@pytest.fixture(scope="module")
def along_file(along: ampsched.Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a comparison along a parameter."""
    path = tmp_path_factory.mktemp("html") / "along.html"
    write(comparing.page(json.loads(json.dumps(along.to_dict())), Asked()), path)
    return path


def test_a_curve_has_the_numbers_of_the_json_and_is_drawn(
    along_file: Path, along: ampsched.Comparison
) -> None:
    with opened(along_file) as found:
        found.page.wait_for_function("ampsched.charts.every(each => each.made)")
        assert found.problems == []
        figure = found.page.locator("figure[data-form=curves]")
        data = json.loads(figure.locator("script").text_content() or "")
        drawn = {line["policy"]: line["points"] for line in data["metrics"][0]["lines"]}
        for policy in along.policies:
            rows = [row for row in along.summary() if row.policy == policy]
            ms = [row.makespan_ms for row in rows]
            assert drawn[policy] == [
                [n, each.low, each.mean, each.high] for n, each in zip((1, 2, 4), ms, strict=True)
            ]
        labels = [label.text_content() for label in figure.locator("svg text").all()]
        assert {"1", "2", "4", "n"} <= set(labels)
        before = figure.locator("svg path").count()
        found.page.locator(".filter input[value=rr]").uncheck()
        assert figure.locator("svg path").count() < before
        assert found.page.locator(".answer").inner_text().startswith("Simulated: ")
        assert "at n = " in found.page.locator(".answer").inner_text()


def test_tables_have_columns_of_parameters(along_file: Path) -> None:
    with opened(along_file) as found:
        tables = found.page.locator("table").all()
        with_n = [
            table for table in tables if "ferret:n=" not in (table.locator("tbody").text_content() or "")
        ]
        assert len(with_n) == len(tables)
        captions = ("The answer", "Slowdown (H_NTT)", "Means over all runs", "Each simulation")
        for caption in captions:
            table = found.page.locator("table", has_text=caption)
            heads = [head.text_content() for head in table.locator("thead th").all()]
            column = heads.index("n")
            cells = table.locator(f"tbody tr > :nth-child({column + 1})").all_text_contents()
            assert set(cells) == {"1", "2", "4"}


def test_a_curve_of_a_policys_parameter_has_the_others_across(tmp_path: Path) -> None:
    over = ampsched.compare("2B2S", "sync-1", ["linux", "colab"], over="colab:decay=0.5..1:3", repeat=1)
    write(comparing.page(over.to_dict(), Asked()), tmp_path / "p.html")
    with opened(tmp_path / "p.html") as found:
        figure = found.page.locator("figure[data-form=curves]")
        found.page.wait_for_function("ampsched.charts.every(each => each.made)")
        assert figure.locator("svg path[stroke-dasharray]").count() == 1
        assert found.problems == []


CONTRASTS = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b]
    .map((each) => each / 255).map((each) => (each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4))
    .reduce((sum, each, index) => sum + each * [0.2126, 0.7152, 0.0722][index], 0);
  const behind = (node) => {
    for (let each = node; each; each = each.parentElement) {
      const found = parse(getComputedStyle(each).backgroundColor);
      if (found.length === 3 || found[3] > 0) return found;
    }
  };
  const low = [];
  for (const node of document.querySelectorAll("body *:not(script):not(style):not(option)")) {
    const text = [...node.childNodes].filter((each) => each.nodeType === 3).map((each) => each.textContent.trim()).join("");
    if (!text || !node.checkVisibility() || node.closest("svg")) continue;
    const [a, b] = [light(parse(getComputedStyle(node).color)), light(behind(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.push(`${text.slice(0, 40)}: ${ratio.toFixed(2)}`);
  }
  return low;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_both_schemes(page_file: Path, scheme: str) -> None:
    """WCAG 2.2, 1.4.3: at least 4.5 to 1."""
    with opened(page_file, color_scheme=scheme) as found:
        assert found.page.evaluate("document.documentElement.classList.contains('dark')") == (
            scheme == "dark"
        )
        assert found.page.evaluate(CONTRASTS) == []


def test_the_switch_outdoes_the_system(page_file: Path) -> None:
    with opened(page_file, color_scheme="light") as found:
        before = found.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        found.page.get_by_label("Colours").select_option("dark")
        assert found.page.evaluate("getComputedStyle(document.documentElement).backgroundColor") != before


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_is_cut_and_nothing_is_tiny(page_file: Path, width: int) -> None:
    with opened(page_file, width) as found:
        assert found.page.evaluate("document.documentElement.scrollWidth") <= width
        sizes = found.page.evaluate(
            "[...document.querySelectorAll('body *')].filter(each => each.checkVisibility() && each.textContent.trim() "
            "&& !each.closest('script')).map(each => parseFloat(getComputedStyle(each).fontSize))"
        )
        assert min(sizes) >= 11


def test_readers_who_hear_the_page_get_all_of_it(page_file: Path) -> None:
    with opened(page_file) as found:
        page = found.page
        for landmark in ("main", "banner", "contentinfo", "navigation"):
            assert page.get_by_role(landmark).count() == 1, landmark
        assert page.locator("h1").count() == 1
        assert page.locator("thead th:not([scope=col]), tbody th:not([scope=row])").count() == 0
        for each in page.locator(".canvas").all():
            assert len(each.get_attribute("aria-label") or "") > 40
        unnamed = "[...document.querySelectorAll('button,select,input')].filter(each => !(each.textContent.trim() || each.labels?.length))"
        assert page.evaluate(f"{unnamed}.length") == 0


def test_a_timeline_zooms_and_hides_a_program(page_file: Path) -> None:
    with opened(page_file) as found:
        figure = found.page.locator("figure[data-form=timeline]").first
        shapes = figure.locator("svg path")
        before = shapes.count()
        figure.locator("fieldset input").first.uncheck()
        assert shapes.count() < before
        figure.get_by_role("button", name="Zoom in").click()
        ends = figure.locator("svg text").all_inner_texts()
        figure.get_by_role("button", name="Show all").click()
        assert figure.locator("svg text").all_inner_texts() != ends


def test_a_task_shows_what_it_waits_for(tmp_path: Path) -> None:
    graph = ampsched.TaskGraph.read("diamond.csv", "a,1,x,\nb,2,y,a\nc,2,y,a\nd,1,z,b;c\n")
    made = [ampsched.run_tasks(graph, "1x2,1x1", name) for name in ("fifo", "heft")]
    values = [each.to_dict() for each in made]
    write(tasks.page(values, Asked("ampsched tasks run diamond.csv"), made), tmp_path / "tasks.html")
    with opened(tmp_path / "tasks.html") as found:
        figure = found.page.locator("figure[data-form=timeline]").last
        data = json.loads(figure.locator("script").text_content() or "")
        last = data["labels"].index("d")
        assert {data["labels"][before] for before in data["links"][last]} == {"b", "c"}
        found.page.evaluate(
            "index => ampsched.charts.at(-1).made.dispatchAction({type: 'showTip', seriesIndex: 0, dataIndex: index})",
            last,
        )
        figure.get_by_text(re.compile("waits for [bc], [bc]")).wait_for()
        lines = figure.locator("svg path").count()
        spot = found.page.evaluate(
            "index => { const made = ampsched.charts.at(-1).made, span = made.getOption().series[0].data[index];"
            "return made.convertToPixel({gridIndex: 0}, [(span[1] + span[2]) / 2, span[0]]); }",
            last,
        )
        figure.locator(".canvas").click(position={"x": spot[0], "y": spot[1]})
        assert figure.locator("svg path").count() > lines
        assert found.problems == []


EVIL = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>"


def test_names_of_anybody_stay_text(result: ampsched.Comparison, tmp_path: Path) -> None:
    values = json.loads(json.dumps(result.to_dict()).replace("sync-2", json.dumps(EVIL)[1:-1]))
    values["notes"] = [EVIL]
    write(comparing.page(values, Asked(EVIL)), tmp_path / "evil.html")
    with opened(tmp_path / "evil.html") as found:
        assert found.page.title() != "owned"
        assert found.page.locator("img").count() == 0
        assert EVIL in (found.page.locator("h1").text_content() or "")
        assert found.problems == []


MIX = """
[[programs]]
name = "a"
command = ["sleep", "0.02"]
[[programs]]
name = "b"
command = ["true"]
"""
RECORDING = ROOT / "docs/reports/recordings/exact/barriers-even.ampr"


def commands(folder: Path) -> dict[str, list[str]]:
    """Every command with ``--html``."""
    return {
        "advise": ["advise", str(RECORDING), "-m", "2B2S", "-p", "linux,colab", "-r", "2"],
        "live compare": ["live", "compare", str(folder / "mix.toml"), "-p", "default", "-r", "2"],
        "compare": ["compare", "-m", "2B2S", "-w", "sync-1", "-p", "linux,cfs"],
        "simulate": ["simulate", "-m", "2B2S", "-w", "sync-1"],
        "tasks run": ["tasks", "run", "blackscholes", "-w", "2xbig,2xlittle", "-p", "fifo,heft"],
    }


@pytest.mark.parametrize("name", commands(Path()))
def test_a_saved_result_makes_the_same_answer(ampsched_here: Ampsched, tmp_path: Path, name: str) -> None:
    (tmp_path / "mix.toml").write_text(MIX)
    command, now, later = commands(tmp_path)[name], tmp_path / "now.html", tmp_path / "later.html"
    printed = ampsched_here(*command, "--json", "--html", str(now))
    assert printed.code == 0
    assert str(now) in printed.err
    (tmp_path / "x.json").write_text(printed.out)
    assert ampsched_here("report", str(tmp_path / "x.json"), "--html", str(later)).code == 0
    tables = []
    for path in (now, later):
        with opened(path) as found:
            assert found.problems == []
            tables.append(answers(found.page))
    assert tables[0] == tables[1]


def test_a_histogram_is_drawn(result: ampsched.Comparison, tmp_path: Path) -> None:
    values = json.loads(json.dumps(result.to_dict()))
    for run in values["runs"]:
        run.update(
            dict.fromkeys(("latency_p50_ns", "latency_p95_ns", "latency_p99_ns", "latency_max_ns"), 1000)
        )
    base = {"thread": None, "of": "latency", "count": 1}
    buckets = [
        {**base, "policy": policy, "upper_ns": 10**each} for policy in POLICIES for each in range(3, 8)
    ]
    write(comparing.page(values, Asked(), buckets), tmp_path / "x.html")
    with opened(tmp_path / "x.html") as found:
        assert found.problems == []
        figure = found.page.locator("figure[data-form=histogram]")
        before = figure.locator("svg path").count()
        found.page.locator(".filter input[value=wash]").uncheck()
        assert 0 < figure.locator("svg path").count() < before
