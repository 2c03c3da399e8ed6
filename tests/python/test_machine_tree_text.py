"""`ampsched machine board.dts`: device trees as text, plain and of a tree of sources."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Ampsched
from test_machine_file import damaged, put
from test_machine_file import of as machine_of
from test_machine_file import refusal as maybe_refused

from ampsched import Machine
from ampsched._core import InputError
from ampsched.machine_file import tree_text

pytestmark = pytest.mark.skipif(
    not (shutil.which("dtc") and shutil.which("cpp")), reason="SKIPPED: apt install device-tree-compiler cpp"
)

BOARD = """// SPDX-License-Identifier: MIT
/dts-v1/;
/ {
    model = "A board";
    cpus {
        #address-cells = <1>;
        #size-cells = <0>;
        little: cpu@0 {
            device_type = "cpu"; reg = <0>; compatible = "arm,cortex-a53";
            capacity-dmips-mhz = <500>; clock-frequency = <1200000000>;
        };
        big: cpu@100 {
            device_type = "cpu"; reg = <0x100>; compatible = "arm,cortex-a72";
            capacity-dmips-mhz = <1000>; operating-points-v2 = <&points>;
        };
    };
    points: opp-table {
        compatible = "operating-points-v2";
        opp-1 { opp-hz = /bits/ 64 <1500000000>; opp-microvolt = <900000>; };
        fast: opp-2 { opp-hz = /bits/ 64 <1800000000>; opp-microvolt = <1000000>; };
    };
};
"""
CLUSTERS = [("little", "cortex-a53", 1, 1200, 0), ("big", "cortex-a72", 1, 1800, 1)]


def of(path: Path) -> Machine:
    return machine_of(path, path.parent)


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as raised:
        of(path)
    return str(raised.value)


def test_a_text_is_what_its_compiled_tree_is(tmp_path: Path) -> None:
    text = put(tmp_path / "board.dts", BOARD)
    compiled, printed = tmp_path / "board.dtb", tmp_path / "printed"
    subprocess.run(["dtc", "-q", "-O", "dtb", "-o", compiled, text], check=True)
    subprocess.run(["dtc", "-q", "-O", "dts", "-o", printed, compiled], check=True)
    assert of(text).clusters == of(compiled).clusters == of(printed).clusters == CLUSTERS


def test_labels_override_and_files_are_included_by_dtc(tmp_path: Path) -> None:
    put(tmp_path / "soc.dtsi", BOARD.replace("/dts-v1/;\n", ""))
    changes = "&fast { opp-hz = /bits/ 64 <2000000000>; };\n&little { clock-frequency = <1000000000>; };\n"
    text = put(tmp_path / "board.dts", f'/dts-v1/;\n/include/ "soc.dtsi"\n{changes}')
    assert [cluster[3] for cluster in of(text).clusters] == [1000, 2000]
    # A part does not begin as a tree does; it is known by its name.
    assert of(tmp_path / "soc.dtsi").clusters == CLUSTERS


def sources(top: Path) -> Path:
    """A tree of sources as Linux has it; the board's file."""
    soc = BOARD.replace("/dts-v1/;", "#include <dt-bindings/soc.h>").replace("<500>", "<SHARE(250)>")
    put(
        top / "include/dt-bindings/soc.h",
        "/* shared */\n#define SHARE(part) (2 * part)\n#define KHZ 1600000\n",
    )
    put(top / "arch/arm64/boot/dts/maker/soc.dtsi", soc)
    put(top / "arch/arm/boot/dts/other/more.dtsi", "&fast { opp-hz = /bits/ 64 <(KHZ * 1000)>; };\n")
    prefixes = top / "scripts/dtc/include-prefixes"
    prefixes.mkdir(parents=True)
    (prefixes / "arm").symlink_to("../../../arch/arm/boot/dts")
    board = (
        '/dts-v1/;\n#include "soc.dtsi"\n#include <arm/other/more.dtsi>\n#ifdef linux\n#error host\n#endif\n'
    )
    return put(top / "arch/arm64/boot/dts/maker/board.dts", board)


def test_a_tree_of_sources(tmp_path: Path, ampsched_here: Ampsched) -> None:
    board = sources(tmp_path)
    machine = of(board)
    assert [cluster[3] for cluster in machine.clusters] == [1200, 1600]
    finished = ampsched_here("machine", str(board), "-o", str(tmp_path / "board.toml"))
    assert finished.code == 0, finished.err
    assert (
        "little: CPUs 0, cortex-a53, up to 1200 MHz, capacity 384 (simulated: 386)\n" in finished.out
    )  # 500 x 1200 / 1600000
    put(tmp_path / "include/dt-bindings/soc.h", "#define SHARE(part) (part\n#define KHZ 1\n")
    assert refusal(board) == "soc.dtsi:10.40-41 syntax error (dtc)"


BOMB = f'#define A0 "{"a" * 4096}"\n' + "".join(f"#define A{n} A{n - 1} A{n - 1}\n" for n in range(1, 14))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/dts-v1/;\n/ {\n  cpus {;\n};\n", "board.dts:3.9-10 syntax error (dtc)"),
        ("/dts-v1/;\n#define A 1\n/ {\n  cpus {;\n};\n", "board.dts:4.9-10 syntax error (dtc)"),
        ("#include <no.h>\n/ { };\n", "board.dts:1:10: no.h: No such file or directory (cpp)"),
        ('/dts-v1/;\n/include/ "no.dtsi"\n/ { };\n', 'board.dts: Couldn\'t open "no.dtsi": No such file or directory (dtc)'),
        ('/dts-v1/;\n#include "board.dts"\n', "board.dts:2:21: #include nested depth 200 exceeds maximum of 200"),
        ('/dts-v1/;\n/include/ "board.dts"\n', "board.dts:"),
        ("/dts-v1/;\n/ { };\n&none { };\n", "board.dts:3.1-6 Label or path none not found (dtc)"),
        ("/dts-v1/;\n/ { a = <&none>; };\n", "board.dts:2.3-20: (phandle_references): /: Reference to non-existent"),
        ("/dts-v1/;\n/ { };\n", "board.dts: has no CPUs (/cpus/cpu@...)"),
        ("", "board.dts:0.20-1.1 syntax error (dtc)"),
        (f"{BOMB}/dts-v1/;\n/ {{ a = A13; }};\n", "board.dts: cpp makes more than 16 MiB of it"),
        ('/dts-v1/;\n/ { a = /incbin/("large"); };\n', "board.dts: dtc makes more than 16 MiB of it"),
        ('/dts-v1/;\n/ { a = /incbin/("/dev/zero"); };\n', "board.dts: "),
    ],
)  # fmt: skip
def test_bad_texts_are_refused_in_a_line(text: str, expected: str, tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as large:
        large.truncate(17 << 20)
    why = refusal(put(tmp_path / "board.dts", text))
    assert why.startswith(expected)
    assert "\n" not in why
    assert "/tmp/" not in why
    assert len(why) < 400


def test_damaged_texts_are_read_or_refused_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "board.dts"
    for seed in range(20):
        path.write_bytes(damaged(BOARD.encode(), seed))
        why = maybe_refused(path, tmp_path)
        assert not why or re.match(r"board\.dts:.{1,300}$", why), seed


def test_an_endless_file_takes_no_longer_than_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_text, "TOOL_S", 1)
    os.mkfifo(tmp_path / "pipe")
    assert refusal(put(tmp_path / "board.dts", '#include "pipe"\n')) == "board.dts: cpp takes longer than 1 s"


@pytest.mark.parametrize(
    ("first", "tool", "package"), [("", "dtc", "device-tree-compiler"), ("#define A 1\n", "cpp", "cpp")]
)
def test_a_missing_program_is_named_with_its_package(
    first: str, tool: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    why = refusal(put(tmp_path / "board.dts", first + BOARD))
    assert why == (
        f"board.dts: is a device tree's source, which needs {tool}: apt install {package} "
        "(or take its compiled tree, .dtb)"
    )
