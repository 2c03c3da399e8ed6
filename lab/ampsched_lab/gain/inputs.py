"""What the real programs of mixes work on: made by rule, the same everywhere."""

import math
import random
import struct
from pathlib import Path

TEXT_BYTES = 600_000
SOUND_S, SOUND_HZ = 4, 44_100
ROWS = 4_000
SOURCES, FUNCTIONS = 4, 3


def write_inputs(folder: Path) -> dict[str, Path]:
    """Writes all inputs into a folder; by name."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = {f"part{number}.c": _source(number) for number in range(SOURCES)}
    contents = {
        "text": _text(),
        "sound.wav": _sound(),
        "rows.sql": _sql(),
        "Makefile": _makefile(list(sources)),
    }
    contents |= sources
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return {name: folder / name for name in contents}


def _text() -> bytes:
    """Words of a small vocabulary, the rarer the later."""
    draw = random.Random("text")
    letters = "etaoinshrdlu"
    words = ["".join(draw.choices(letters, k=draw.randrange(2, 9))) for _ in range(3000)]
    text = ""
    while len(text) < TEXT_BYTES:
        text += " ".join(words[int(draw.paretovariate(0.6)) % len(words)] for _ in range(1000)) + "\n"
    return text[:TEXT_BYTES].encode()


def _sound() -> bytes:
    """A WAV file: two tones that drift, and noise, in stereo of 16 bits."""
    draw = random.Random("sound")
    samples = []
    for number in range(SOUND_S * SOUND_HZ):
        time_s = number / SOUND_HZ
        tone = math.sin(2700 * time_s + 40 * math.sin(3 * time_s)) + 0.5 * math.sin(9000 * time_s)
        samples += [
            int(9000 * tone + draw.randrange(-400, 400)),
            int(7000 * tone + draw.randrange(-900, 900)),
        ]
    data = struct.pack(f"<{len(samples)}h", *samples)
    form = struct.pack("<HHIIHH", 1, 2, SOUND_HZ, SOUND_HZ * 4, 4, 16)
    return (
        b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<I", len(form)) + form
        + b"data" + struct.pack("<I", len(data)) + data
    )  # fmt: skip


def _sql() -> bytes:
    """A table with an index, filled in one transaction, and questions about it."""
    draw = random.Random("sql")
    lines = [
        "CREATE TABLE t (id INTEGER PRIMARY KEY, k INTEGER, v TEXT);",
        "CREATE INDEX i ON t (k);",
        "BEGIN;",
    ]
    lines += [f"INSERT INTO t (k, v) VALUES ({draw.randrange(1000)}, 'value {n}');" for n in range(ROWS)]
    lines += ["COMMIT;"]
    lines += [f"SELECT count(*), max(v) FROM t WHERE k BETWEEN {n} AND {n + 60};" for n in range(0, 1000, 20)]
    lines += ["SELECT a.k, count(*) FROM t a JOIN t b ON a.k = b.k GROUP BY a.k ORDER BY 2 DESC LIMIT 5;"]
    return "\n".join(lines).encode() + b"\n"


def _source(number: int) -> bytes:
    """C without headers: functions with loops and branches, which call each other."""
    draw = random.Random(f"source {number}")
    lines = []
    for index in range(FUNCTIONS):
        a, b, c = (draw.randrange(3, 90) for _ in range(3))
        call = f"f{index - 1}(x + i, n - 1)" if index else "n"
        lines += [
            f"int f{index}(int x, int n) {{",
            f"    int s = {a}, t[{b}];",
            f"    for (int i = 0; i < {b}; i++) {{ t[i] = x * i + {c}; if (t[i] % {a} == 0) s += {call}; }}",
            f"    for (int i = 1; i < {b}; i++) s ^= t[i] - t[i - 1] * s;",
            f"    switch (s & 7) {{ case 0: return s + {a}; case 3: return s * x; case 5: return s / (n | 1); }}",
            "    return s;",
            "}",
        ]
    return ("\n".join(lines) + "\n").encode()


def _makefile(sources: list[str]) -> bytes:
    """Compiles each source into the folder where make runs."""
    objects = " ".join(name.replace(".c", ".o") for name in sources)
    return f"all: {objects}\n%.o: /data/%.c\n\tgcc-12 -ffreestanding -O1 -c -o $@ $<\n".encode()
