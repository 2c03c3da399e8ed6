"""Digests of texts and of what simulations read of machines and workloads."""

import hashlib

from ampsched._core import Machine, Workload


def sha(*texts: str) -> str:
    """SHA-256 of texts, none of which can be taken for part of another."""
    digest = hashlib.sha256()
    for text in texts:
        data = text.encode(errors="surrogateescape")
        digest.update(b"%d\n" % len(data))
        digest.update(data)
    return digest.hexdigest()


def content_of(value: Machine | Workload) -> str:
    """Digest of what a simulation reads of a machine or a workload."""
    return sha(value.content())
