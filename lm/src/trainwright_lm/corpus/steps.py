"""prepare's tasks: one for each shard of the sources, or one for all. In one process there is a single shard.

Every task reads and writes files in OUT/work, which all machines share, and gives the same result when it is run again.
Texts are compared by one task for all shards: it reads signatures, and texts only of documents that share some.
"""

from __future__ import annotations

import math
import pickle
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from trainwright.errors import UsageError
from trainwright_lm.atomic import read_json, replacing, write_json
from trainwright_lm.corpus.dedup import KEPT, exact_verdicts, near_verdicts, shingles
from trainwright_lm.corpus.filters import drop_reason
from trainwright_lm.corpus.funnel import Count, as_json
from trainwright_lm.corpus.options import PrepareOptions
from trainwright_lm.corpus.pieces import GatherState, Pieces, PieceWriter
from trainwright_lm.corpus.sources import Cursor, Item, Source, text_of
from trainwright_lm.corpus.split import Documents, validation_groups
from trainwright_lm.corpus.split import prove as compare
from trainwright_lm.documents import Document
from trainwright_lm.progress import Report, processors, stage
from trainwright_lm.tokens.pack import open_tokens, write_tokens
from trainwright_lm.tokens.prepared import SPLITS, TOKENIZER, documents, texts_file, tokens_file, write_texts
from trainwright_lm.tokens.tokenizer import load_tokenizer, train_tokenizer

# Whole groups are held out if their size is at least half and at most four times the requested fraction. Otherwise
# single files are: a folder's few loose files would measure nothing, and half of two repositories would be too much.
_LEAST, _MOST = 0.5, 4.0
# Tokenizer entries. With little text, most of 8,192 entries are too rare to learn, and the tiny preset for such data is
# designed for few entries.
FEW_ENTRIES, MANY_ENTRIES = 2048, 8192
MUCH_TEXT_BYTES = 30_000_000
# Update progress bars after this many documents.
_EVERY = 32
# Shingle sets that the comparison caches.
_AT_HAND = 64
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


def cut(job: Job, sources: Sequence[Source], tasks: int) -> None:
    """Cut the sources into consecutive shards of about equal size, one per task; a file is never cut."""
    units = [(one, number, size + 1) for one in range(len(sources)) for number, size in enumerate(sources[one].sizes())]
    total, seen = sum(size for *_, size in units), 0
    shards: list[dict[int, list[int]]] = [{} for _ in range(tasks)]
    for one, number, size in units:
        shards[min((seen + size // 2) * tasks // total, tasks - 1)].setdefault(one, []).append(number)
        seen += size
    for name in ("sources", "proofs", "tokens"):
        (job.work / name).mkdir(exist_ok=True)
    for rank, shard in enumerate(shards):
        parts = [sources[one].part(numbers[0], numbers[-1] + 1) for one, numbers in shard.items()]
        with replacing(job.work / "sources" / f"{rank:05d}.pickle") as stream:
            pickle.dump(parts, stream)


def are_gathered(job: Job, tasks: int) -> bool:
    """Whether all shards have been gathered."""
    return all(Pieces(_pieces(job, rank)).place().finished for rank in range(tasks))


def gather(job: Job, rank: int, tasks: int) -> None:
    """Read and filter one shard."""
    if not Pieces(_pieces(job, rank)).place().finished:
        parts = pickle.loads((job.work / "sources" / f"{rank:05d}.pickle").read_bytes())
        _gather_into(job, parts, _pieces(job, rank), job.options.max_bytes or math.inf)


def limit(job: Job, rank: int = 0, tasks: int = 1) -> None:
    """Keep what fits into --max-bytes, as without tasks: the shard that exceeds it is gathered again, later ones emptied."""
    left, full = job.options.max_bytes, False
    for number, file in enumerate(sorted((job.work / "sources").glob("*.pickle"))):
        parts, folder, new = pickle.loads(file.read_bytes()), _pieces(job, number), job.work / "limited"
        place = Pieces(folder).place()
        if full or not place.finished or place.funnel.kept.bytes > left:
            shutil.rmtree(new, ignore_errors=True)
            _gather_into(job, [] if full else parts, new, left)
            shutil.rmtree(folder, ignore_errors=True)
            new.rename(folder)
            place = Pieces(folder).place()
        full = full or place.source < len(parts)
        left -= place.funnel.kept.bytes


def judge(job: Job, rank: int = 0, tasks: int = 1) -> None:
    """Judge all documents, by their signatures: two rows of verdicts, dedup's and those of exact duplicates alone."""
    done, marks = job.work / "verdicts.npy", job.work / "verdicts.signatures"
    if done.exists():
        return
    pieces = job.pieces
    prints = pieces.prints(marks)
    exact = exact_verdicts(prints.hashes)
    verdicts, count = exact.copy(), 0
    shingles_of = lru_cache(maxsize=_AT_HAND)(lambda at: shingles(pieces.text(at)))
    with stage("deduplicate") as report:
        for at, verdict in near_verdicts(prints, exact, shingles_of, threshold=job.options.near):
            verdicts[at] = verdict
            count += verdict != KEPT
            report(at / len(pieces), f"{count:,} near duplicates")
    _save(done, np.stack([verdicts, exact]))
    marks.unlink()


def divide(job: Job, rank: int = 0, tasks: int = 1) -> None:
    """Choose each document's split, and write the texts of validation."""
    if (job.work / "side.npy").exists():
        return
    pieces = job.pieces
    side = sides(job, pieces, np.load(job.work / "verdicts.npy")[0])
    write_texts(texts_file(job.out, "validation"), pieces.documents(side == 1))
    _save(job.work / "side.npy", side)


def prove(job: Job, rank: int, tasks: int) -> None:
    """Compare one shard's training documents with validation; those that are near are dropped."""
    if (done := job.work / "proofs" / f"{rank:05d}.pickle").exists():
        return
    pieces, (side, start) = Pieces(_pieces(job, rank)), _sides(job, rank)
    chosen = np.flatnonzero(side == 0)
    train, validation = partial(pieces.documents, side == 0), partial(documents, job.out, "validation")
    proof = compare(train, validation, threshold=job.options.near, total=len(chosen))
    with replacing(done) as stream:
        pickle.dump((proof, chosen[list(proof.near)] + start), stream)


def settle(job: Job, rank: int = 0, tasks: int = 1) -> None:
    """Put the proofs together, write the texts of training, count, and train the tokenizer."""
    if not job.outcome.exists():
        pieces, side = job.pieces, np.load(job.work / "side.npy")
        found = [pickle.loads(file.read_bytes()) for file in sorted((job.work / "proofs").glob("*.pickle"))]
        for _, leaked in found:
            side[leaked] = LEAKED
        if not (side == 0).any():
            raise UsageError(
                "No training file is left; each one is a near duplicate of a validation file. Name more sources."
            )
        _save(job.work / "side.npy", side)
        write_texts(texts_file(job.out, "train"), pieces.documents(side == 0))
        verdicts, exact = np.load(job.work / "verdicts.npy")
        proofs = [proof for proof, _ in found]
        proof = {
            "method": "every training document was compared with every validation document",
            "train_documents": sum(one.train_documents for one in proofs),
            "validation_documents": proofs[0].validation_documents,
            "shared_groups": len(frozenset().union(*(one.groups for one in proofs))),
            "equal_texts": len(frozenset().union(*(one.equal for one in proofs))),
            "near_texts": 0,  # those that were found are dropped
            "near_threshold": job.options.near,
        }
        write_json(job.outcome, {**_counted(pieces, verdicts, exact, side), "proof": proof})
    _make_tokenizer(job)


def pack(job: Job, rank: int, tasks: int) -> None:
    """Write one shard's documents of both splits as tokens: a file per piece, which an interrupted run keeps."""
    tokenizer, (side, _) = load_tokenizer(job.out / TOKENIZER), _sides(job, rank)
    pieces, threads = Pieces(_pieces(job, rank)), processors() if tasks == 1 else 1
    for number, name in enumerate(SPLITS):
        with stage(f"pack {name}") as report:
            for piece in range(pieces.count):
                file = job.work / "tokens" / f"{name}-{rank:05d}-{piece:06d}.bin"
                if not file.exists():
                    texts = [document.text for document in pieces.piece(piece, side == number)]
                    ids = tokenizer.encode_arrays(texts, threads=threads)
                    write_tokens(file, ids, tokenizer.vocabulary_size, end_id=tokenizer.end_id)
                report((piece + 1) / pieces.count, f"{piece + 1:,} of {pieces.count:,} pieces")


def join_tokens(job: Job) -> None:
    """Put the tokens of all pieces together."""
    for name in SPLITS:
        if not (file := tokens_file(job.out, name)).exists():
            parts = sorted((job.work / "tokens").glob(f"{name}-*.bin"))
            first = open_tokens(parts[0])
            ids = (one.document(i) for one in map(open_tokens, parts) for i in range(one.documents))
            write_tokens(file, ids, first.vocabulary_size, end_id=first.end_id)


def _pieces(job: Job, rank: int) -> Path:
    return job.work / "pieces" / f"{rank:05d}"


def _starts(job: Job) -> NDArray[np.int64]:
    """The position of each shard's first document, and the end of the last."""
    folders = sorted((job.work / "pieces").iterdir())
    return np.cumsum([0, *(len(Pieces(folder)) for folder in folders)])


def _sides(job: Job, rank: int) -> tuple[NDArray[np.int8], int]:
    """The split numbers of one shard's documents, and the position of the first."""
    start, end = _starts(job)[rank : rank + 2].tolist()
    return np.array(np.load(job.work / "side.npy", mmap_mode="r")[start:end]), start


def _gather_into(job: Job, sources: Sequence[Source], folder: Path, limit: float) -> None:
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
            _need_documents(job, len(bytes_of))
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


def _make_tokenizer(job: Job) -> None:
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


def _need_documents(job: Job, count: int) -> None:
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


def _save(file: Path, values: NDArray[Any]) -> None:
    """Write an array, atomically."""
    with replacing(file) as stream:
        np.save(stream, values)


def _counted(
    pieces: Pieces, verdicts: NDArray[np.int64], exact: NDArray[np.int64], side: NDArray[np.int8]
) -> dict[str, Any]:
    """The funnel including deduplication, the counts per split, and the licenses.

    Args:
        verdicts, exact: (documents,), dedup's verdicts with near duplicates and with exact ones only.
        side: (documents,), the split number, GONE or LEAKED.
    """
    funnel = pieces.funnel()
    groups: tuple[set[str], ...] = tuple(set() for _ in SPLITS)
    splits, licences = [Count() for _ in SPLITS], defaultdict[str, Count](Count)
    for position, row in enumerate(pieces.rows()):
        number = int(side[position])
        if number >= 0:
            splits[number].add(row.size)
            groups[number].add(row.group)
            licences[row.licence or "unknown"].add(row.size)
        elif verdicts[position] == KEPT:
            funnel.drop_kept("near-validation", row.size, row.path)
        else:
            equal = exact[position] != KEPT
            funnel.drop_kept("exact-duplicate" if equal else "near-duplicate", row.size, row.path)
    return {
        "funnel": as_json(funnel),
        "splits": {
            name: {"documents": count.files, "bytes": count.bytes, "groups": len(own)}
            for name, count, own in zip(SPLITS, splits, groups)
        },
        "split_by": "file" if groups[0] & groups[1] else "group",
        "licences": {
            name: {"documents": count.files, "bytes": count.bytes}
            for name, count in sorted(licences.items(), key=lambda item: (-item[1].files, item[0]))
        },
    }
