"""Four threads that pack blocks; between the blocks they need the interpreter's lock."""

import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def packed(block: bytes) -> int:
    data = zlib.compress(block, 6)
    return sum(data[at] for at in range(0, len(data), 16))


text = Path("text").read_bytes()[: 6 << 20]
blocks = [text[at : at + (128 << 10)] for at in range(0, len(text), 128 << 10)]
with ThreadPoolExecutor(4) as pool:
    print(sum(pool.map(packed, blocks)))
