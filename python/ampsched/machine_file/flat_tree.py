"""Compiled device trees: the flat format (Devicetree Specification 0.4, chapter 5)."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from ampsched._core import InputError

MAGIC = 0xD00DFEED
_BEGIN, _END, _PROPERTY, _NOP, _LAST = 1, 2, 3, 4, 9
_PAIR = struct.Struct(">II")
_HEADER = struct.Struct(">10I")
DEPTH_MAX = 64
VERSION_MIN = 16
"""Of the format: what compilers of the last decades write."""


@dataclass
class Node:
    """A node; properties are bytes, integers in them big-endian."""

    name: str
    properties: dict[str, bytes] = field(default_factory=dict)
    children: list["Node"] = field(default_factory=list)

    def child(self, name: str) -> "Node | None":
        """The child of that name."""
        return next((each for each in self.children if each.name == name), None)

    def walk(self) -> Iterator["Node"]:
        """This node and all below it."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.children)

    def cells(self, name: str) -> list[int]:
        """A property as 32-bit numbers; empty if there is none."""
        content = self.properties.get(name, b"")
        return list(struct.unpack(f">{len(content) // 4}I", content[: len(content) // 4 * 4]))

    def text(self, name: str) -> str:
        """The first text of a property in printable ASCII; empty if there is none."""
        first = self.properties.get(name, b"").split(b"\0")[0].decode("ascii", "replace")
        return "".join(letter if letter.isprintable() and letter.isascii() else " " for letter in first)

    @property
    def is_on(self) -> bool:
        """Whether its status does not switch it off."""
        return self.text("status") in ("", "okay", "ok")


def parse(content: bytes, title: str) -> Node:
    """The root node.

    Raises:
        InputError: It is damaged.
    """
    try:
        return _parse(content)
    except (struct.error, ValueError, IndexError, UnicodeDecodeError) as error:
        raise InputError(f"{title}: is no whole device tree ({error})") from None


def _parse(content: bytes) -> Node:
    magic, total, at, strings, _, version, *_ = _HEADER.unpack_from(content)
    if magic != MAGIC or version < VERSION_MIN or total > len(content):
        raise ValueError(f"{len(content)} bytes of {total}, version {version}")
    stack: list[Node] = []
    while True:
        (token,) = struct.unpack_from(">I", content, at)
        at += 4
        if token == _BEGIN:
            at = _begin(content, at, stack)
        elif token == _PROPERTY and stack:
            at = _property(content, at, strings, stack[-1])
        elif token == _END and stack:
            node = stack.pop()
            if not stack:
                return node
        elif token != _NOP:
            raise ValueError(f"token {token} at byte {at - 4}")


def _begin(content: bytes, at: int, stack: list[Node]) -> int:
    """Begins a node within the last one; returns where it goes on."""
    end = content.index(b"\0", at)
    node = Node(content[at:end].decode("ascii"))
    if stack:
        stack[-1].children.append(node)
    stack.append(node)
    if len(stack) > DEPTH_MAX:
        raise ValueError(f"more than {DEPTH_MAX} nodes within each other")
    return end + 4 & ~3


def _property(content: bytes, at: int, strings: int, node: Node) -> int:
    """Adds a property to a node; returns where it goes on."""
    length: int
    place: int
    length, place = _PAIR.unpack_from(content, at)
    start, at = strings + place, at + 8
    name = content[start : content.index(b"\0", start)].decode("ascii")
    if at + length > len(content):
        raise ValueError(f"property {name[:40]!r} ends behind the file")
    node.properties[name] = content[at : at + length]
    return at + length + 3 & ~3
