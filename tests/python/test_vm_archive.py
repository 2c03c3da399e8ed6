"""What virtual machines take from Debian's archive: table, apt's settings, cache, refusals; nothing is fetched."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from ampsched import vm
from ampsched.vm import archive as module
from ampsched.vm.archive import (
    VERIFIED,
    Archive,
    Selection,
    apt_configuration,
    drop_all_but,
    first_reason,
    mirror_of,
    selections,
)
from ampsched.vm.kernel import ARCHITECTURES, Kernel, fetch_kernel, kernels

URIS = """
'http://packages.example/apt/dists/cloud-sdk/InRelease' packages.example_apt_dists_cloud-sdk_InRelease 0
'http://mirror.example/debian-security/dists/bookworm-security/InRelease' a 0
'http://mirror.example/debian/dists/bookworm/InRelease' b 0
'http://other.example/debian/dists/trixie/InRelease' c 0
"""


def test_every_pin_is_a_whole_version() -> None:
    for selection in selections().values():
        assert selection.packages, selection.name
        for version in {**selection.packages, **selection.fleeting}.values():
            assert re.fullmatch(r"(\d+:)?\d[\w.+~-]+", version), (selection.name, version)
            assert "*" not in version


def test_kernels_are_named_by_their_version() -> None:
    assert list(kernels()) == ["6.16", "6.18", "7.0", "7.3"]
    assert list(kernels("aarch64")) == ["6.18", "7.3"]
    for architecture in ARCHITECTURES:
        for version, release in kernels(architecture).items():
            assert release.startswith(f"{version}."), release


def test_a_kernel_that_nobody_knows_is_refused() -> None:
    with pytest.raises(
        vm.VmError, match=r'unknown kernel for x86_64 "5\.10" \(known: 6\.16, 6\.18, 7\.0, 7\.3\)'
    ):
        fetch_kernel("5.10")


def test_packages_that_nobody_knows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(vm.VmError, match=r"no packages named qemu-mips \(known: qemu-x86_64, "):
        Archive(tmp_path).folder("qemu-mips")


def test_a_kernel_whose_configuration_is_gone_is_there(tmp_path: Path) -> None:
    image = cached(tmp_path, "linux-7.0-x86_64") / "boot/vmlinuz-7.0"
    with pytest.raises(vm.VmError, match=r"has no kernel; remove the folder"):
        fetch_kernel("7.0", archive=Archive(tmp_path))
    image.parent.mkdir()
    image.touch()
    assert fetch_kernel("7.0", archive=Archive(tmp_path)) == Kernel(image, None, kernels()["7.0"])


def test_what_the_archive_may_have_dropped_changes_what_is_fetched() -> None:
    one = Selection("a", ("bookworm",), {"b": "1"})
    other = Selection("a", ("bookworm",), {"b": "1"}, fleeting={"c": "1"})
    assert one.fingerprint() != other.fingerprint()
    assert other.pins() == ["b=1"]


def test_the_mirror_is_the_computer_s_own() -> None:
    assert mirror_of(URIS) == "http://mirror.example/debian"
    assert mirror_of("'http://packages.example/apt/dists/jammy/InRelease' x 0\n") is None


def test_another_mirror_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMPSCHED_VM_MIRROR", "file:/there")
    assert Archive(tmp_path).mirror == "file:/there"
    assert Archive(tmp_path, "file:/here").mirror == "file:/here"


def test_no_address_is_written_down() -> None:
    for path in Path(vm.__file__).parent.rglob("*"):
        if path.suffix in {".py", ".toml"}:
            assert not re.search(r"https?://|debian\.org", path.read_text("utf-8")), path


def test_apt_has_everything_to_itself(tmp_path: Path) -> None:
    apt = tmp_path / "it's apt"
    apt.mkdir()
    (apt / "apt.conf").write_text(apt_configuration(apt, ["amd64", "arm64"]))
    command = ["apt-config", "-c", str(apt / "apt.conf"), "dump"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        pytest.skip("SKIPPED: there is no apt here")
    settings = dict(re.findall(r'^(\S+) "(.*)";$', said, re.MULTILINE))
    for name in ("Dir::State", "Dir::State::status", "Dir::Cache", "Dir::Etc::sourcelist"):
        assert settings[name].startswith(str(apt)), name
    assert not [name for name in settings if "Post-Invoke::" in name]
    assert settings["APT::Get::AllowUnauthenticated"] == "false"
    assert re.findall(r'^APT::Architectures:: "(.*)";$', said, re.MULTILINE) == ["amd64", "arm64"]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("W: first\nE: second\n", "first"),
        ("E: Version '9' for 'qemu' was not found\nE: No packages", "Version '9' for 'qemu' was not found"),
        ("dpkg-deb: error: no space", "dpkg-deb: error: no space"),
        ("", "no reason given"),
    ],
)
def test_failures_end_in_one_line(said: str, reason: str) -> None:
    assert first_reason(said) == reason


def test_what_is_pinned_otherwise_is_fetched_anew() -> None:
    one = Selection("a", ("bookworm",), {"b": "1"})
    assert one.fingerprint() != Selection("a", ("bookworm",), {"b": "2"}).fingerprint()
    assert one.fingerprint() != Selection("a", ("trixie",), {"b": "1"}).fingerprint()


def test_only_what_is_kept_stays(tmp_path: Path) -> None:
    for name in ("boot/vmlinuz-1", "lib/modules/1/a.ko", "share/doc/b", "share/qemu/keymaps/de"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "share" / "link").symlink_to("qemu")
    drop_all_but(["boot/*", "share/qemu/**"], tmp_path)
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if not path.is_dir()}
    assert files == {"boot/vmlinuz-1", "share/qemu/keymaps/de"}
    assert not (tmp_path / "lib").exists()


def cached(cache: Path, name: str) -> Path:
    folder = cache / f"{name}-{selections()[name].fingerprint()}"
    folder.mkdir(parents=True)
    (folder / VERIFIED).write_text(json.dumps({}))
    return folder


def test_what_somebody_else_has_fetched_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[Path] = []

    class Slow:
        """Somebody else has all packages before this one has."""

        def __init__(self, *_: object) -> None: ...

        def configure(self, _mirror: str) -> None: ...

        def download(self) -> list[Path]:
            used.append(cached(tmp_path, "busybox-x86_64") / "in-use")
            used[0].touch()
            return []

    monkeypatch.setattr(module, "_Apt", Slow)
    monkeypatch.setattr(module, "_check_tools", lambda _: None)
    folder = Archive(tmp_path, "http://mirror.example").folder("busybox-x86_64")
    assert used == [folder / "in-use"]
    assert used[0].exists()
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


@pytest.mark.parametrize("version", ["6.18", "7.3"])
def test_a_kernel_that_is_there_is_not_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setenv("PATH", "")
    folder = cached(tmp_path, f"linux-{version}-x86_64")
    release = kernels()[version]
    # Since 7.0 Debian has them beside the modules.
    new = folder / "usr/lib/modules" / release
    files = (new / "vmlinuz", new / "config")
    if version == "6.18":
        files = (folder / "boot" / f"vmlinuz-{release}", folder / "boot" / f"config-{release}")
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    kernel = fetch_kernel(version, archive=Archive(tmp_path))
    assert (kernel.image, kernel.config) == files


def test_without_apt_nothing_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(vm.VmError, match=r"^linux-7\.3-x86_64 cannot be fetched .*: needs Debian's apt$"):
        fetch_kernel("7.3", archive=Archive(tmp_path))


def test_without_keys_nothing_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEYRING", tmp_path / "none.gpg")
    monkeypatch.setattr(module.shutil, "which", lambda name: name)
    with pytest.raises(vm.VmError, match=r"needs Debian's keys .*apt install debian-archive-keyring"):
        Archive(tmp_path).folder("qemu-x86_64")


def test_a_mirror_that_is_not_there_ends_in_one_line(tmp_path: Path) -> None:
    if not module.shutil.which("apt-get") or not module.KEYRING.exists():
        pytest.skip("SKIPPED: there is no apt of Debian here")
    with pytest.raises(vm.VmError, match=r"^busybox-x86_64 cannot be fetched .*busybox-static=.*nowhere"):
        Archive(tmp_path / "cache", f"file:{tmp_path}/nowhere").folder("busybox-x86_64")
    assert list((tmp_path / "cache").iterdir()) == []
