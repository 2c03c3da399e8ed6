"""Two processes, or threads, that work by turns and talk to each other: streams.py HOW WORK_S."""

import ctypes
import os
import queue
import select
import signal
import socket
import sys
import threading
import time

TURNS = 12
POLLED_S = 0.04
"""A client's work before it connects, where its server waits for it by a poller."""


def work(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def play(send, receive, is_first: bool, seconds: float) -> None:
    for _ in range(TURNS):
        if not is_first:
            receive()
        work(seconds)
        send()
        if is_first:
            receive()


def through_pipes():
    (read_a, write_a), (read_b, write_b) = os.pipe(), os.pipe()
    one = lambda: os.write(write_a, b"a"), lambda: os.read(read_b, 1)
    return lambda: one, lambda: (lambda: os.write(write_b, b"b"), lambda: os.read(read_a, 1))


def through_pair():
    one, other = socket.socketpair()

    def ends(made):
        return lambda: (lambda: made.send(b"a"), lambda: made.recv(1))

    return ends(one), ends(other)


def through_a_thread_that_hears():
    """A thread hears by epoll that there is something, and another one reads it."""
    (read_a, write_a), (read_b, write_b) = os.pipe(), os.pipe()

    def heard(file):
        poller, heard = select.epoll(), queue.SimpleQueue()
        poller.register(file, select.EPOLLIN | select.EPOLLONESHOT)

        def hear():
            while True:
                poller.poll()
                heard.put(None)

        def receive():
            heard.get()
            os.read(file, 1)
            poller.modify(file, select.EPOLLIN | select.EPOLLONESHOT)

        threading.Thread(target=hear, daemon=True).start()
        return receive

    return lambda: (lambda: os.write(write_a, b"a"), heard(read_b)), lambda: (
        lambda: os.write(write_b, b"b"),
        heard(read_a),
    )


def through_server(family, address, poller=None):
    """The server waits for its client by a poller, if there is one."""
    server = socket.socket(family)
    server.bind(address)
    server.listen(1)

    def ends(made):
        return lambda: made.sendall(b"x" * 3000), lambda: made.recv(3000, socket.MSG_WAITALL)

    def client():
        made = socket.socket(family)
        if poller:
            work(POLLED_S)
        made.connect(server.getsockname())
        return ends(made)

    def served():
        if poller:
            poller.register(server, select.POLLIN)
            poller.poll()
        return ends(server.accept()[0])

    return served, client


def through_counters():
    here, there = os.eventfd(0, os.EFD_NONBLOCK), os.eventfd(0)
    poller = select.epoll()
    poller.register(here, select.EPOLLIN)

    def wait():
        poller.poll()
        os.eventfd_read(here)

    one = lambda: os.eventfd_write(there, 1), wait
    return lambda: one, lambda: (lambda: os.eventfd_write(here, 1), lambda: os.eventfd_read(there))


def through_futexes():
    """As Rust's and Erlang's libraries wait: system calls of their own."""
    libc, words = ctypes.CDLL(None), (ctypes.c_int * 2)()
    futex, wait, wake = 202 if os.uname().machine == "x86_64" else 98, 0, 1

    def word(place):
        return ctypes.byref(words, place * ctypes.sizeof(ctypes.c_int))

    def ends(own, other):
        turn = 0

        def send():
            words[other] += 1
            libc.syscall(futex, word(other), wake, 1, None, None, 0)

        def receive():
            nonlocal turn
            while words[own] == turn:
                libc.syscall(futex, word(own), wait, turn, None, None, 0)
            turn += 1

        return send, receive

    return lambda: ends(0, 1), lambda: ends(1, 0)


def through_signals():
    number = signal.SIGUSR1
    signal.pthread_sigmask(signal.SIG_BLOCK, {number})

    def ends(other):
        return lambda: os.kill(other, number), lambda: signal.sigwait({number})

    def parent():
        with open(f"/proc/self/task/{os.getpid()}/children") as children:
            return ends(int(children.read()))

    return parent, lambda: ends(os.getppid())


def through_signals_of_files():
    """signalfd(2), waited for by epoll."""
    mask = (1 << signal.SIGUSR1 - 1).to_bytes(128, sys.byteorder)

    def ends(made):
        file = ctypes.CDLL(None).signalfd(-1, mask, 0)
        poller = select.epoll()
        poller.register(file, select.EPOLLIN)

        def receive():
            poller.poll()
            os.read(file, 128)

        return made[0], receive

    first, second = through_signals()
    return lambda: ends(first()), lambda: ends(second())


def main() -> None:
    how, seconds = sys.argv[1], float(sys.argv[2])
    ways = {
        "pipes": through_pipes,
        "socketpair": through_pair,
        "tcp": lambda: through_server(socket.AF_INET, ("127.0.0.1", 0)),
        "accepted by poll": lambda: through_server(socket.AF_INET, ("127.0.0.1", 0), select.poll()),
        "accepted by epoll": lambda: through_server(socket.AF_INET, ("127.0.0.1", 0), select.epoll()),
        "a thread that hears": through_a_thread_that_hears,
        "unix": lambda: through_server(socket.AF_UNIX, f"\0ampsched-{os.getpid()}"),
        "eventfd": through_counters,
        "futex": through_futexes,
        "signals": through_signals,
        "signalfd": through_signals_of_files,
    }
    first, second = ways[how]()
    if how in ("eventfd", "futex"):
        thread = threading.Thread(target=lambda: play(*second(), False, seconds))
        thread.start()
        play(*first(), True, seconds)
        thread.join()
    elif child := os.fork():
        play(*first(), True, seconds)
        os.waitpid(child, 0)
    else:
        play(*second(), False, seconds)
        os._exit(0)


main()
