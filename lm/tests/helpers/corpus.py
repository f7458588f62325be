"""Small corpora of made-up Python files, the same each time."""

from __future__ import annotations

import random
from pathlib import Path

_NAMES = [
    f"{a}_{b}"
    for a in ("load", "fit", "plot", "mean", "row", "key", "axis")
    for b in ("data", "frame", "line", "all", "x")
]

# What a license file of it begins with.
MIT = "Permission is hereby granted, free of charge, to any person obtaining a copy of this software"


def code(seed: int, lines: int = 30) -> str:
    """A file that mentions pandas; two seeds share next to no shingles."""
    rng = random.Random(seed)
    body = [
        f"{rng.choice(_NAMES)}_{rng.randrange(10**6)} = df.{rng.choice(_NAMES)}({rng.randrange(10**6)})"
        for _ in range(lines)
    ]
    return "\n".join(["import pandas as pd", *body]) + "\n"


def write(root: Path, files: dict[str, str | bytes]) -> Path:
    """Files by their paths below a folder."""
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def corpus(root: Path, groups: int = 6, files: int = 5) -> Path:
    """A folder of groups with an exact duplicate, a near one, and a file of each kind that is skipped."""
    made: dict[str, str | bytes] = {
        f"g{group}/f{number}.py": code(group * 100 + number) for group in range(groups) for number in range(files)
    }
    made["g0/same.py"] = "\n\n" + code(101) + "   \n"
    made["g1/near.py"] = code(200) + "extra = 1\n"
    made["g2/empty.py"] = ""
    made["g2/binary.py"] = b"import pandas\0\1\2"
    made["g2/latin.py"] = "# pandas, café\n".encode("latin-1")
    made["g3/other.py"] = "import os\n" * 20
    return write(root, made)
