"""The results of the stages, as the numbers in data.json."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright_lm.corpus.dedup import KEPT
from trainwright_lm.corpus.funnel import as_json
from trainwright_lm.corpus.pieces import Pieces
from trainwright_lm.corpus.split import Proof
from trainwright_lm.tokens.prepared import SPLITS

GONE, LEAKED = -1, -2
"""In place of a split number: a duplicate; a training document that the proof found near a validation document."""


def counted(
    pieces: Pieces, verdicts: NDArray[np.int64], exact: NDArray[np.int64], side: NDArray[np.int8], proof: Proof
) -> dict[str, Any]:
    """The funnel including deduplication, the counts per split, the licenses, and the proof.

    Args:
        verdicts, exact: (documents,), dedup's verdicts with near duplicates and with exact ones only.
        side: (documents,), the split number, GONE or LEAKED.
    """
    funnel = pieces.funnel()
    groups: tuple[set[str], ...] = tuple(set() for _ in SPLITS)
    documents, sizes = [0] * len(SPLITS), [0] * len(SPLITS)
    licences: Counter[str] = Counter()
    licence_bytes: Counter[str] = Counter()
    for position, row in enumerate(pieces.rows()):
        number = int(side[position])
        if number >= 0:
            documents[number] += 1
            sizes[number] += row.size
            groups[number].add(row.group)
            licences[row.licence or "unknown"] += 1
            licence_bytes[row.licence or "unknown"] += row.size
        elif verdicts[position] == KEPT:
            funnel.drop_kept("near-validation", row.size, row.path)
        else:
            equal = exact[position] != KEPT
            funnel.drop_kept("exact-duplicate" if equal else "near-duplicate", row.size, row.path)
    return {
        "funnel": as_json(funnel),
        "splits": {
            name: {"documents": documents[number], "bytes": sizes[number], "groups": len(groups[number])}
            for number, name in enumerate(SPLITS)
        },
        "split_by": "file" if groups[0] & groups[1] else "group",
        "licences": {
            name: {"documents": count, "bytes": licence_bytes[name]}
            for name, count in sorted(licences.items(), key=lambda item: (-item[1], item[0]))
        },
        "proof": _as_json(proof),
    }


def read_outcome(file: Path) -> dict[str, Any]:
    """Read the result of `counted` from its file."""
    values: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return values


def _as_json(proof: Proof) -> dict[str, Any]:
    return {
        "method": "every training document was compared with every validation document",
        "train_documents": proof.train_documents,
        "validation_documents": proof.validation_documents,
        "shared_groups": len(proof.groups),
        "equal_texts": len(proof.equal),
        "near_texts": len(proof.near),
        "near_threshold": proof.threshold,
    }
