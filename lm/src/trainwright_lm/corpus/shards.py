"""prepare's tasks: over shards of the sources, and over bands of signatures. In one process there is a single shard.

Every task reads and writes files in OUT/work, which all machines share, and gives the same result when it is run again.
With several shards, signatures go to disk, sorted, in the format of datatrove's MinHash steps, which find the equal ones
there. Documents that may be near duplicates are linked, and each set of linked documents is judged by one task.
"""

from __future__ import annotations

import math
import pickle
import shutil
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trainwright.errors import UsageError
from trainwright_lm.atomic import replacing, write_json
from trainwright_lm.corpus import steps
from trainwright_lm.corpus.dedup import BANDS, KEPT, NEAR_MARGIN, PERMUTATIONS, exact_verdicts, near_verdicts, shingles
from trainwright_lm.corpus.pieces import Pieces
from trainwright_lm.corpus.sources import Source
from trainwright_lm.corpus.split import prove as compare
from trainwright_lm.corpus.steps import LEAKED, Job, counted
from trainwright_lm.progress import processors, stage
from trainwright_lm.tokens.pack import open_tokens, write_tokens
from trainwright_lm.tokens.prepared import SPLITS, TOKENIZER, documents, texts_file, tokens_file, write_texts
from trainwright_lm.tokens.tokenizer import load_tokenizer

# Seconds between saves of the verdicts so far.
_NOTE_SECONDS = 20.0
# Shingle sets that a task caches.
_AT_HAND = 64
# The buckets of signatures: a document's bands, then the hash of its text.
BUCKETS = BANDS + 1
WIDTH = PERMUTATIONS // BANDS
# datatrove's reader of 32-bit signatures stops at this value.
_LARGEST = 2**32 - 1


def cut(job: Job, sources: Sequence[Source], tasks: int) -> None:
    """Cut the sources into consecutive shards of about equal size, one per task; a file is never cut."""
    units = [(one, number, size + 1) for one in range(len(sources)) for number, size in enumerate(sources[one].sizes())]
    total, seen = sum(size for *_, size in units), 0
    shards: list[dict[int, list[int]]] = [{} for _ in range(tasks)]
    for one, number, size in units:
        shards[min((seen + size // 2) * tasks // total, tasks - 1)].setdefault(one, []).append(number)
        seen += size
    (job.work / "sources").mkdir(exist_ok=True)
    for rank, shard in enumerate(shards):
        parts = [sources[one].part(numbers[0], numbers[-1] + 1) for one, numbers in shard.items()]
        with replacing(job.work / "sources" / f"{rank:05d}.pickle") as stream:
            pickle.dump(parts, stream)


def gathered(job: Job, tasks: int) -> bool:
    """Whether all shards have been gathered."""
    return all(Pieces(_pieces(job, rank)).place().finished for rank in range(tasks))


def gather(job: Job, rank: int, tasks: int) -> None:
    """Read and filter one shard."""
    if not Pieces(_pieces(job, rank)).place().finished:
        parts = pickle.loads((job.work / "sources" / f"{rank:05d}.pickle").read_bytes())
        steps.gather(job, parts, _pieces(job, rank), job.options.max_bytes or math.inf)


def limit(job: Job, rank: int = 0, tasks: int = 1) -> None:
    """Keep what fits into --max-bytes, as without tasks: the shard that exceeds it is gathered again, later ones emptied."""
    left, full = job.options.max_bytes, False
    for number, file in enumerate(sorted((job.work / "sources").glob("*.pickle"))):
        parts, folder, new = pickle.loads(file.read_bytes()), _pieces(job, number), job.work / "limited"
        place = Pieces(folder).place()
        if full or not place.finished or place.funnel.kept.bytes > left:
            shutil.rmtree(new, ignore_errors=True)
            steps.gather(job, [] if full else parts, new, left)
            shutil.rmtree(folder, ignore_errors=True)
            new.rename(folder)
            place = Pieces(folder).place()
        full = full or place.source < len(parts)
        left -= place.funnel.kept.bytes


def sign(job: Job, rank: int, tasks: int) -> None:
    """Write one shard's signatures, sorted, by bucket. Only the first of equal texts has bands."""
    prints = Pieces(_pieces(job, rank)).prints(_folder(job, "signatures") / f"{rank:05d}.npy")
    first = np.flatnonzero(exact_verdicts(prints.hashes) == KEPT)
    # A text without words has no shingles, and so no near duplicates.
    banded = first[(prints.signatures[first] != _LARGEST).any(axis=1)]
    for bucket in range(BUCKETS):
        if bucket < BANDS:
            members, values = banded, prints.signatures[banded, bucket * WIDTH : (bucket + 1) * WIDTH]
        else:
            members, values = np.arange(len(prints)), prints.hashes.view("<u4").reshape(-1, WIDTH)
        rows = np.column_stack([np.minimum(values, _LARGEST - 1), members]).astype("<u4")
        rows = rows[np.lexsort(rows.T[::-1])]
        with replacing(_folder(job, f"signatures/bucket_{bucket:03d}") / f"{rank:05d}.minhash.sig") as stream:
            stream.write(rows.tobytes())


def link(job: Job, rank: int, tasks: int) -> None:
    """Turn one bucket's duplicates, which datatrove found, into pairs of documents that may be duplicates.

    Texts that share a band without being alike are left out, or chance would link all of a large corpus.
    """
    rows = np.fromfile(_duplicates(job, rank), "<u4").reshape(-1, 4)
    starts = _starts(job)
    pairs = np.stack([starts[rows[:, 0]] + rows[:, 1], starts[rows[:, 2]] + rows[:, 3]], axis=1)
    if rank < BANDS and len(pairs):
        positions, file = np.unique(pairs), _folder(job, "links") / f"{rank:03d}.signatures"
        signatures = job.pieces.prints(file, positions).signatures
        found: list[NDArray[np.int64]] = []
        # datatrove links each document of a band with the one before.
        for chain in np.split(pairs, np.flatnonzero(pairs[1:, 0] != pairs[:-1, 1]) + 1):
            members = np.append(chain[:1, 0], chain[:, 1])
            values = signatures[np.searchsorted(positions, members)]
            found += [members[pair] for pair in _alike(values, job.options.near - NEAR_MARGIN)]
        pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
        file.unlink()
    steps.save(_folder(job, "links") / f"{rank:03d}.npy", pairs)


def _alike(signatures: NDArray[np.uint32], least: float) -> Iterator[list[int]]:
    """Pairs that connect all signatures whose estimated Jaccard index is at least this, directly or over others."""
    left, waiting = np.arange(len(signatures)), list[int]()
    while len(left):
        at = waiting.pop() if waiting else int(left[0])
        near = (signatures[left] == signatures[at]).mean(axis=1) >= least
        others = left[near & (left != at)].tolist()
        yield from ([at, other] for other in others)
        waiting += others
        left = left[~near & (left != at)]


def join_links(job: Job, rank: int = 0, tasks: int = 1) -> None:
    """Number the sets of linked documents: an array of set numbers and positions."""
    if (job.work / "linked.npy").exists():
        return
    pairs = np.concatenate([np.load(_folder(job, "links") / f"{bucket:03d}.npy") for bucket in range(BUCKETS)])
    positions, places = np.unique(pairs, return_inverse=True)
    one, other = places.reshape(-1, 2).T
    sets = np.arange(len(positions))
    while not (same := sets[one] == sets[other]).all():
        one, other = one[~same], other[~same]
        low, high = np.minimum(sets[one], sets[other]), np.maximum(sets[one], sets[other])
        np.minimum.at(sets, high, low)
        while not (sets[sets] == sets).all():
            sets = sets[sets]
    steps.save(job.work / "linked.npy", np.stack([sets, positions]))


def judge(job: Job, rank: int, tasks: int) -> None:
    """Judge the sets of linked documents of one task, or all documents: positions, verdicts, exact verdicts."""
    folder, linked = _folder(job, "verdicts"), job.work / "linked.npy"
    done, partial, marks = (folder / f"{rank:05d}.{end}" for end in ("npy", "so-far", "signatures"))
    if done.exists():
        return
    pieces, mine = job.pieces, np.arange(len(job.pieces))
    if linked.exists():
        sets, positions = np.load(linked, mmap_mode="r")
        mine = np.array(positions[sets % tasks == rank])
    prints = pieces.prints(marks, mine)
    exact = exact_verdicts(prints.hashes)
    verdicts = exact.copy()
    known = np.load(partial) if partial.exists() else None
    if known is not None:
        verdicts[: len(known)] = known
    shingles_of = lru_cache(maxsize=_AT_HAND)(lambda at: shingles(pieces.text(int(mine[at]))))
    noted, count = time.monotonic(), 0
    with stage("deduplicate") as report:
        for at, verdict in near_verdicts(prints, exact, shingles_of, threshold=job.options.near, known=known):
            verdicts[at] = verdict
            count += verdict != KEPT
            report(at / len(mine), f"{count:,} near duplicates")
            if time.monotonic() - noted > _NOTE_SECONDS:
                steps.save(partial, verdicts[: at + 1])
                noted = time.monotonic()
    named = [np.where(found == KEPT, KEPT, mine[found]) for found in (verdicts, exact)] if len(mine) else [mine, mine]
    steps.save(done, np.stack([mine, *named]))
    marks.unlink()
    partial.unlink(missing_ok=True)


def divide(job: Job, rank: int = 0, tasks: int = 1) -> None:
    """Choose each document's split, and write the texts of validation."""
    if (job.work / "side.npy").exists():
        return
    pieces = job.pieces
    steps.need_documents(job, len(pieces))
    verdicts = np.full((2, len(pieces)), KEPT, dtype=np.int64)
    for file in sorted((job.work / "verdicts").glob("*.npy")):
        positions, *found = np.load(file)
        verdicts[:, positions] = found
    steps.save(job.work / "verdicts.npy", verdicts)
    side = steps.sides(job, pieces, verdicts[0])
    write_texts(texts_file(job.out, "validation"), pieces.documents(side == 1))
    steps.save(job.work / "side.npy", side)


def prove(job: Job, rank: int, tasks: int) -> None:
    """Compare one shard's training documents with validation; those that are near are dropped."""
    if (done := _folder(job, "proofs") / f"{rank:05d}.pickle").exists():
        return
    pieces, (side, start) = Pieces(_pieces(job, rank)), _sides(job, rank)
    train, validation = partial(pieces.documents, side == 0), partial(documents, job.out, "validation")
    chosen = np.flatnonzero(side == 0)
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
        steps.save(job.work / "side.npy", side)
        write_texts(texts_file(job.out, "train"), pieces.documents(side == 0))
        verdicts, exact = np.load(job.work / "verdicts.npy")
        proven = steps.proven([proof for proof, _ in found], job.options.near)
        write_json(job.outcome, {**counted(pieces, verdicts, exact, side), "proof": proven})
    steps.make_tokenizer(job)


def pack(job: Job, rank: int, tasks: int) -> None:
    """Write one shard's documents of both splits as tokens: a file per piece, which an interrupted run keeps."""
    tokenizer, (side, _) = load_tokenizer(job.out / TOKENIZER), _sides(job, rank)
    pieces, threads = Pieces(_pieces(job, rank)), processors() if tasks == 1 else 1
    for number, name in enumerate(SPLITS):
        with stage(f"pack {name}") as report:
            for piece in range(pieces.count):
                file = _folder(job, "tokens") / f"{name}-{rank:05d}-{piece:06d}.bin"
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


def _duplicates(job: Job, bucket: int) -> Path:
    """What datatrove's MinhashDedupBuckets writes with one task per bucket."""
    return job.work / "duplicates" / f"{bucket:05d}_00.dups"


def _folder(job: Job, name: str) -> Path:
    folder = job.work / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _starts(job: Job) -> NDArray[np.int64]:
    """The position of each shard's first document, and the end of the last."""
    folders = sorted((job.work / "pieces").iterdir())
    return np.cumsum([0, *(len(Pieces(folder)) for folder in folders)])


def _sides(job: Job, rank: int) -> tuple[NDArray[np.int8], int]:
    """The split numbers of one shard's documents, and the position of the first."""
    start, end = _starts(job)[rank : rank + 2].tolist()
    return np.array(np.load(job.work / "side.npy", mmap_mode="r")[start:end]), start


ALONE = (gather, judge, divide, prove, settle, pack)
"""The tasks in order where there is a single shard, whose documents need no links."""
