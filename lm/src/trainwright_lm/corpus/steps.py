"""What prepare's tasks (shards.py) do with documents: gather, divide, compare, count, train the tokenizer."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from trainwright.errors import UsageError
from trainwright_lm.atomic import read_json, replacing
from trainwright_lm.corpus.dedup import KEPT
from trainwright_lm.corpus.filters import drop_reason
from trainwright_lm.corpus.funnel import as_json
from trainwright_lm.corpus.options import PrepareOptions
from trainwright_lm.corpus.pieces import GatherState, Pieces, PieceWriter
from trainwright_lm.corpus.sources import Cursor, Item, Source, text_of
from trainwright_lm.corpus.split import Documents, SplitProof, validation_groups
from trainwright_lm.documents import Document
from trainwright_lm.progress import Report, stage
from trainwright_lm.tokens.prepared import SPLITS, TOKENIZER, documents
from trainwright_lm.tokens.tokenizer import train_tokenizer

# Whole groups are held out if their size is at least half and at most four times the requested fraction. Otherwise
# single files are: a folder's few loose files would measure nothing, and half of two repositories would be too much.
_LEAST, _MOST = 0.5, 4.0
# Tokenizer entries. With little text, most of 8,192 entries are too rare to learn, and the tiny preset for such data is
# designed for few entries.
FEW_ENTRIES, MANY_ENTRIES = 2048, 8192
MUCH_TEXT_BYTES = 30_000_000
# Update progress bars after this many documents.
_EVERY = 32
GONE, LEAKED = -1, -2
"""In place of a split number: a duplicate; a training document that the proof found near a validation document."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One preparation."""

    out: Path
    options: PrepareOptions

    @property
    def work(self) -> Path:
        """The folder for intermediate results."""
        return self.out / "work"

    @property
    def pieces(self) -> Pieces:
        """The documents of all shards gathered so far, as they are on disk."""
        return Pieces(self.work / "pieces")

    @property
    def outcome(self) -> Path:
        """The file with the numbers for data.json, written once the split is proven."""
        return self.work / "outcome.json"


def gather(job: Job, sources: Sequence[Source], folder: Path, limit: float) -> None:
    """Read and filter the sources and write the kept documents in pieces; resumes after the last piece.

    Args:
        folder: Of the pieces.
        limit: Bytes of text to keep.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pieces = Pieces(folder)
    place, group_limit = pieces.place(), job.options.max_group_bytes
    funnel, writer = place.funnel, PieceWriter(folder, pieces.count, place.funnel)
    taken: Counter[str] = Counter()  # bytes per group
    for row in pieces.rows() if group_limit else ():
        taken[row.group] += row.size
    begun, before = time.monotonic(), funnel.seen.bytes
    with stage("gather") as report:
        for index in range(place.source, len(sources)):
            for item in sources[index].items(place.cursor if index == place.source else Cursor()):
                document, reason = _judged(item, job, own=sources[index].own)
                size = item.bytes if reason else document.bytes
                if not reason and 0 < group_limit < taken[document.group] + size:
                    reason = "group-full"
                if not reason and funnel.kept.bytes + size > limit:
                    writer.write(GatherState(source=index, cursor=item.after, finished=True, funnel=funnel))
                    return
                funnel.see(item.bytes, item.content)
                if reason:
                    known = f" ({item.licence or 'unknown'})" if reason == "licence" else ""
                    funnel.drop(reason, item.bytes, item.path + known)
                else:
                    funnel.keep(size)
                    taken[document.group] += size
                    writer.add(document, size)
                if writer.full:
                    writer.write(GatherState(source=index, cursor=item.after, funnel=funnel))
                if funnel.seen.files % _EVERY == 0:
                    rate = (funnel.seen.bytes - before) / max(time.monotonic() - begun, 1e-9) / 1e6
                    share = max(item.share, funnel.kept.bytes / max(limit, 1))
                    report((index + share) / len(sources), f"{rate:.1f} MB/s, {funnel.kept.files:,} kept")
        writer.write(GatherState(source=len(sources), finished=True, funnel=funnel))


def _judged(item: Item, job: Job, *, own: bool) -> tuple[Document, str]:
    """The item as a document, and the reason for dropping it, or ""."""
    text, problem = text_of(item, job.options.largest)
    document = Document(text=text, path=item.path, group=item.group, licence=item.licence)
    filters = job.options.own_filters if own else job.options.filters
    return document, problem or drop_reason(document, filters, own=own) or ""


def sides(job: Job, pieces: Pieces, verdicts: NDArray[np.int64]) -> NDArray[np.int8]:
    """The split number of each document, or GONE."""
    for files in (False, True):
        bytes_of: Counter[str] = Counter()
        for unit, size in _units(pieces, verdicts, files=files):
            if unit is not None:
                bytes_of[unit] += size
        if files:
            need_documents(job, len(bytes_of))
        elif len(bytes_of) < 2:
            continue
        wanted = job.options.validation
        held_out = validation_groups(bytes_of, share=wanted, seed=job.options.seed)
        share = sum(bytes_of[unit] for unit in held_out) / sum(bytes_of.values())
        if _LEAST * wanted <= share <= _MOST * wanted:
            break
    units = _units(pieces, verdicts, files=files)
    return np.fromiter((GONE if unit is None else int(unit in held_out) for unit, _ in units), dtype=np.int8)


def _units(pieces: Pieces, verdicts: NDArray[np.int64], *, files: bool = False) -> Iterator[tuple[str | None, int]]:
    """Each document's indivisible unit and its bytes: its group, or the document itself; None if it was dropped."""
    for position, row in enumerate(pieces.rows()):
        unit = f"{row.path}\0{position}" if files else row.group
        yield unit if verdicts[position] == KEPT else None, row.size


def make_tokenizer(job: Job) -> None:
    """Train the tokenizer on an even sample of the training texts."""
    file = job.out / TOKENIZER
    if file.exists():
        return
    budget, total = job.options.tokenizer_bytes, read_json(job.outcome)["splits"]["train"]["bytes"]
    size = job.options.vocabulary_size or (FEW_ENTRIES if total < MUCH_TEXT_BYTES else MANY_ENTRIES)
    with stage("tokenizer") as report:
        report(0.0, f"{min(budget, total) / 1e6:.1f} MB, {size:,} entries")
        texts = _sample(partial(documents, job.out, "train"), budget / total, min(budget, total), report)
        tokenizer = train_tokenizer(texts, vocabulary_size=size, byte_budget=budget)
    tokenizer.save(file)


def _sample(train: Documents, share: float, budget: int, report: Report) -> Iterator[str]:
    """The texts whose names hash below the fraction, then the others, as long as the caller reads on."""
    taken = 0
    for chosen in (True, False):
        for document in train():
            name = f"{document.group}/{document.path}".encode()
            if (xxhash.xxh3_64_intdigest(name, 1) < share * 2**64) is chosen:
                taken += len(document.text)
                # Reading takes half of the time and merging the other half, which reports no progress.
                report(min(taken / budget, 1.0) / 2, f"{taken / 1e6:.1f} MB read")
                yield document.text


def need_documents(job: Job, count: int) -> None:
    """Raises UsageError for fewer than two documents."""
    if count >= 2:
        return
    funnel = job.pieces.funnel()
    reasons = ", ".join(f"{drop.files:,} {reason}" for reason, drop in funnel.dropped.items())
    raise UsageError(
        f"At least two different files are needed, one of them for validation; of {funnel.seen.files:,} there "
        f"{'is' if count == 1 else 'are'} {count}{f' ({reasons})' if reasons else ''}. Other sources, keywords or "
        "licenses may keep more; add --restart."
    )


def save(file: Path, values: NDArray[Any]) -> None:
    """Write an array, atomically."""
    with replacing(file) as stream:
        np.save(stream, values)


def counted(
    pieces: Pieces, verdicts: NDArray[np.int64], exact: NDArray[np.int64], side: NDArray[np.int8]
) -> dict[str, Any]:
    """The funnel including deduplication, the counts per split, and the licenses.

    Args:
        verdicts, exact: (documents,), dedup's verdicts with near duplicates and with exact ones only.
        side: (documents,), the split number, GONE or LEAKED.
    """
    funnel = pieces.funnel()
    groups: tuple[set[str], ...] = tuple(set() for _ in SPLITS)
    counts, sizes = [0] * len(SPLITS), [0] * len(SPLITS)
    licences: Counter[str] = Counter()
    licence_bytes: Counter[str] = Counter()
    for position, row in enumerate(pieces.rows()):
        number = int(side[position])
        if number >= 0:
            counts[number] += 1
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
            name: {"documents": counts[number], "bytes": sizes[number], "groups": len(groups[number])}
            for number, name in enumerate(SPLITS)
        },
        "split_by": "file" if groups[0] & groups[1] else "group",
        "licences": {
            name: {"documents": count, "bytes": licence_bytes[name]}
            for name, count in sorted(licences.items(), key=lambda item: (-item[1], item[0]))
        },
    }


def proven(proofs: Sequence[SplitProof], threshold: float) -> dict[str, Any]:
    """What the proofs of all shards say together, once the near documents that they found are dropped."""
    return {
        "method": "every training document was compared with every validation document",
        "train_documents": sum(proof.train_documents for proof in proofs),
        "validation_documents": proofs[0].validation_documents,
        "shared_groups": len(frozenset().union(*(proof.groups for proof in proofs))),
        "equal_texts": len(frozenset().union(*(proof.equal for proof in proofs))),
        "near_texts": 0,
        "near_threshold": threshold,
    }
