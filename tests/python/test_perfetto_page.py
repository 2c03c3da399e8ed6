"""``--open``: what Perfetto's page gets from this computer, and who gets nothing; over the loopback only."""

import http.client
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Ampsched

from ampsched import InputError
from ampsched.cli import perfetto

CONTENT = bytes(range(256)) * 5000


@pytest.fixture
def browsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """No browser, but what it would be told."""
    links: list[str] = []
    monkeypatch.setattr(perfetto, "_browse", links.append)
    return links


@pytest.fixture
def served(tmp_path: Path, browsed: list[str]) -> Iterator[tuple[int, threading.Thread]]:
    """A trace that is being served: the port, and the thread that serves it until it has been fetched."""
    trace = tmp_path / "my trace.pftrace"
    trace.write_bytes(CONTENT)
    thread = threading.Thread(target=perfetto.show, args=(trace, 0), daemon=True)
    thread.start()
    while not browsed:
        time.sleep(0.01)
    port = int(browsed[0].split(":")[3].split("/")[0])
    yield port, thread
    ask(port, "GET", "/my%20trace.pftrace")
    thread.join(5)


def ask(port: int, method: str, path: str, host: str | None = None) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(perfetto.HOST, port, timeout=5)
    try:
        connection.request(method, path, headers={"Host": host} if host else {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    except ConnectionRefusedError:
        return 0, {}, b""
    finally:
        connection.close()


def test_the_page_gets_the_file_and_then_the_server_ends(
    served: tuple[int, threading.Thread], browsed: list[str]
) -> None:
    port, thread = served
    assert browsed == [f"https://ui.perfetto.dev/#!/?url=http://127.0.0.1:{port}/my%20trace.pftrace"]
    status, headers, content = ask(port, "GET", "/my%20trace.pftrace")
    assert (status, content) == (200, CONTENT)
    assert headers["Access-Control-Allow-Origin"] == "https://ui.perfetto.dev"
    thread.join(5)
    assert not thread.is_alive()
    assert ask(port, "GET", "/my%20trace.pftrace")[0] == 0


@pytest.mark.parametrize(
    "path", ["/", "/other", "/../my%20trace.pftrace", "//etc/passwd", "/my%20trace.pftrace?x"]
)
def test_nobody_gets_another_file(served: tuple[int, threading.Thread], path: str) -> None:
    port, thread = served
    assert ask(port, "GET", path)[0] == 404
    assert thread.is_alive()


def test_a_page_that_calls_this_computer_by_another_name_gets_nothing(
    served: tuple[int, threading.Thread],
) -> None:
    port, thread = served
    assert ask(port, "GET", "/my%20trace.pftrace", host=f"evil.example:{port}")[0] == 404
    assert thread.is_alive()


def test_the_page_may_ask_before(served: tuple[int, threading.Thread]) -> None:
    port, thread = served
    status, headers, _ = ask(port, "OPTIONS", "/my%20trace.pftrace")
    assert status == 204
    assert headers["Access-Control-Allow-Origin"] == "https://ui.perfetto.dev"
    assert headers["Access-Control-Allow-Private-Network"] == "true"
    assert thread.is_alive()


def test_a_connection_that_says_nothing_keeps_nobody_waiting(served: tuple[int, threading.Thread]) -> None:
    port, thread = served
    with socket.create_connection((perfetto.HOST, port)):
        assert ask(port, "GET", "/my%20trace.pftrace")[0] == 200
        thread.join(5)
        assert not thread.is_alive()


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server((perfetto.HOST, 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(
            InputError, match=rf"--open: cannot serve .*x on 127.0.0.1:{port}: Address already in use"
        ):
            perfetto.show(tmp_path / "x", port)


def test_open_needs_one_trace(ampsched_here: Ampsched) -> None:
    mix = ("-m", "2B2S", "-w", "sync-1")
    ended = ampsched_here("simulate", *mix, "--open")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "--open shows the trace that --trace FILE writes" in ended.err
    ended = ampsched_here("compare", *mix, "-p", "cfs,colab", "--trace", "x.pftrace", "--open")
    assert ended.code == 2
    assert "--open shows one trace" in ended.err


def test_a_command_serves_what_it_has_written(tmp_path: Path) -> None:
    """The whole way, on a free port instead of the page's one."""
    with socket.create_server((perfetto.HOST, 0)) as free:
        port = free.getsockname()[1]
    script = (
        "import sys; from ampsched.cli import main, perfetto; perfetto._browse = lambda link: None;"
        f" perfetto.show.__defaults__ = ({port},);"
        " sys.argv = ['ampsched', 'simulate', '-m', '2B2S', '-w', 'sync-1', '--trace', 'x.pftrace', '--open', '--json'];"
        " main()"
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        link = process.stderr.readline().strip()
        assert link == f"open https://ui.perfetto.dev/#!/?url=http://127.0.0.1:{port}/x.pftrace"
        content = ask(port, "GET", "/x.pftrace")[2]
        assert process.wait(10) == 0
    assert content == (tmp_path / "x.pftrace").read_bytes()
