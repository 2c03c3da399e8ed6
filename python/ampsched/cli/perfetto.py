"""``--open``: a trace shown by Perfetto's page, which fetches it from this computer.

The page may fetch from `http://127.0.0.1:9001` alone (its content security policy), so the port is fixed. The file goes
from here to the browser and nowhere else.
"""

import webbrowser
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from ampsched._core import InputError
from ampsched.cli import render
from ampsched.files import check_target

PAGE = "https://ui.perfetto.dev"
HOST, PORT = "127.0.0.1", 9001

Open = Annotated[
    bool,
    typer.Option(
        "--open",
        help="Serve the trace of --trace once to https://ui.perfetto.dev and open that page.",
        rich_help_panel="Output",
    ),
]


class _Server(ThreadingHTTPServer):
    """Threads, because browsers open connections in advance on which they say nothing."""

    timeout = 0.2

    def __init__(self, path: Path, port: int) -> None:
        super().__init__((HOST, port), _Handler)
        self.path = path
        self.address = f"/{quote(path.name)}"
        self.is_fetched = False


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        """Sends the one file that there is."""
        # A page of another host whose name has come to mean this computer has that name here.
        is_here = self.headers.get("Host") == f"{HOST}:{self.server.server_port}"
        if not is_here or self.path != self.server.address:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        size = self.server.path.stat().st_size
        with self.server.path.open("rb") as file:
            self._begin(HTTPStatus.OK)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(size))
            self.end_headers()
            while chunk := file.read(1 << 20):
                self.wfile.write(chunk)
        self.server.is_fetched = True

    def do_OPTIONS(self) -> None:
        """Lets the page ask whether it may fetch from this computer."""
        self._begin(HTTPStatus.NO_CONTENT)
        self.send_header("Access-Control-Allow-Methods", "GET")
        self.send_header("Access-Control-Allow-Private-Network", "true")
        self.end_headers()

    def _begin(self, status: HTTPStatus) -> None:
        self.send_response(status)
        self.send_header("Access-Control-Allow-Origin", PAGE)
        self.send_header("Cache-Control", "no-store")

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def check(open_: bool, trace: Path | None) -> None:
    """Refuses `--open` without a trace, and a trace that is a folder, before anything long has begun.

    Raises:
        InputError: If there is nothing to open, or a folder is named.
    """
    check_target("--trace", trace)
    if open_ and trace is None:
        raise InputError("--open shows the trace that --trace FILE writes (give --trace, too)")


def show(path: Path, port: int = PORT) -> None:
    """Serves a trace to Perfetto's page until that has fetched it, or until Ctrl-C; says where on standard error.

    Args:
        path: The trace.
        port: Where it is served; the page fetches from 9001 only.

    Raises:
        InputError: If somebody else uses the port.
    """
    try:
        server = _Server(path, port)
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(
            f"--open: cannot serve {path} on {HOST}:{port}: {why} "
            f"(end what uses the port, such as another --open or a trace_processor, or drop the file on {PAGE})"
        ) from None
    with server:
        link = f"{PAGE}/#!/?url=http://{HOST}:{server.server_port}{server.address}"
        errors = render.errors()
        errors.print(f"open {link}", soft_wrap=True)
        errors.print(
            "the trace is served from here until that page has fetched it (Ctrl-C ends)", soft_wrap=True
        )
        _browse(link)
        try:
            while not server.is_fetched:
                server.handle_request()
        except KeyboardInterrupt:
            errors.print("ended before it was fetched")


def _browse(link: str) -> None:
    """Opens a browser, if there is one with a window; one in the terminal would hide the link."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return
    if not isinstance(browser, webbrowser.GenericBrowser) or isinstance(
        browser, webbrowser.BackgroundBrowser
    ):
        browser.open(link)
