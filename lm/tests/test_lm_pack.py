"""Token files and their windows, against slow and obvious re-implementations; damage, resuming, full disks."""

import itertools
import resource
import signal
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwright.errors import ReadError, UsageError
from trainwright_lm.config import load_recipe
from trainwright_lm.tokens.pack import TokenFile, Windows, open_tokens, order, write_tokens

END = 9
documents_of_ids = st.lists(st.lists(st.integers(0, 8), max_size=12), max_size=12)
contexts = st.integers(1, 7)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("tokens")


def written(file: Path, documents, vocabulary_size: int = 10, end_id: int = END) -> TokenFile:
    write_tokens(file, documents, vocabulary_size, end_id=end_id)
    return open_tokens(file)


def slow_windows(documents: list[list[int]], context: int, packing: str) -> list[list[int]]:
    rows = [[*ids, END] for ids in documents]
    if packing == "join":
        rows = [list(itertools.chain(*rows))]
    windows = []
    for row in rows:
        while len(row) > context:
            windows.append(row[: context + 1])
            row = row[context:]
    return windows


@given(documents=documents_of_ids)
def test_what_was_written_is_read(folder, documents) -> None:
    tokens = written(folder / "read.bin", documents)
    rows = [[*ids, END] for ids in documents]
    assert tokens.tokens.tolist() == list(itertools.chain(*rows))
    assert tokens.starts.tolist() == [0, *itertools.accumulate(map(len, rows))]
    assert (tokens.documents, tokens.vocabulary_size, tokens.end_id) == (len(documents), 10, END)


@pytest.mark.parametrize(("vocabulary_size", "width"), [(1 << 16, 2), ((1 << 16) + 1, 4)])
def test_a_token_takes_two_bytes_where_the_vocabulary_allows(tmp_path, vocabulary_size, width) -> None:
    highest = vocabulary_size - 1
    tokens = written(tmp_path / "a.bin", [[highest, 1]] * 1000, vocabulary_size=vocabulary_size, end_id=highest - 1)
    assert tokens.tokens.dtype.itemsize == width
    assert tokens.tokens[:3].tolist() == [highest, 1, highest - 1]
    assert tokens.path.stat().st_size == 64 + 3000 * width + 1001 * 8


def test_the_tokens_are_mapped_and_not_read(tmp_path) -> None:
    tokens = written(tmp_path / "a.bin", [[1] * 10])
    assert isinstance(tokens.tokens, np.memmap) and isinstance(tokens.starts, np.memmap)
    assert tokens.starts.dtype == np.uint64


@given(documents=documents_of_ids, context=contexts, packing=st.sampled_from(["join", "tail"]))
def test_windows_are_those_of_a_slow_cut(folder, documents, context, packing) -> None:
    windows = Windows(written(folder / "windows.bin", documents), context, packing)
    expected = slow_windows(documents, context, packing)
    batch = windows.batch(np.arange(len(windows)))
    assert batch.dtype == np.int64 and batch.shape == (len(expected), context + 1)
    assert batch.tolist() == expected


@given(documents=documents_of_ids, context=contexts)
def test_joined_windows_predict_each_token_once_except_the_first_and_the_tail(folder, documents, context) -> None:
    tokens = written(folder / "once.bin", documents)
    row = tokens.tokens.tolist()
    targets = Windows(tokens, context).batch(np.arange(len(Windows(tokens, context))))[:, 1:].ravel().tolist()
    left_out = len(row) - 1 - len(targets)
    assert targets == row[1 : 1 + len(targets)]
    assert 0 <= left_out < context or not row
    # So every end is a target, too: where one document stops and the next begins is learned.
    assert targets.count(END) == row[1 : 1 + len(targets)].count(END)


@given(documents=documents_of_ids, context=contexts)
def test_no_window_crosses_documents_where_each_is_cut_by_itself(folder, documents, context) -> None:
    windows = Windows(written(folder / "tail.bin", documents), context, "tail")
    batch = windows.batch(np.arange(len(windows)))
    assert not (batch[:, :-1] == END).any()
    lengths = [len(ids) + 1 for ids in documents]
    assert len(windows) == sum((length - 1) // context for length in lengths)


@given(documents=documents_of_ids, context=contexts, limit=st.integers(0, 9), seed=st.integers(0, 99))
def test_a_limit_leaves_the_first_windows_and_any_order_may_be_asked_for(
    folder, documents, context, limit, seed
) -> None:
    tokens = written(folder / "limit.bin", documents)
    for packing in ("join", "tail"):
        expected = slow_windows(documents, context, packing)[: limit or None]
        windows = Windows(tokens, context, packing, limit)
        assert len(windows) == len(expected)
        mixed = order(len(windows), seed=seed, epoch=0)
        assert windows.batch(mixed).tolist() == [expected[i] for i in mixed]


def test_a_batch_takes_the_memory_of_its_windows_alone(tmp_path) -> None:
    windows = Windows(written(tmp_path / "a.bin", [np.ones(4_000_000, dtype=np.uint16)]), 128)
    tracemalloc.start()
    windows.batch(np.array([0, len(windows) - 1]))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 100_000


def test_writing_takes_the_memory_of_one_document_however_many_come(tmp_path) -> None:
    document = np.ones(1000, dtype=np.uint32)
    tracemalloc.start()
    write_tokens(tmp_path / "a.bin", itertools.repeat(document, 10_000), 10, end_id=END)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (tmp_path / "a.bin").stat().st_size > 20_000_000
    assert peak_bytes < 3_000_000


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("model.context=0", r"model\.context must be above 0"),
        ("data.packing=both", r"data\.packing must be one of join, tail"),
        ("data.limit=-1", r"data\.limit must be a finite number and not negative"),
        ("run.seed=-1", r"run\.seed must be a finite number and not negative"),
    ],
)
def test_windows_and_orders_that_cannot_be_are_refused(setting, said) -> None:
    with pytest.raises(UsageError, match=said):
        load_recipe("tiny", None, [setting])


@given(count=st.integers(0, 200), seed=st.integers(0, 1 << 40), epoch=st.integers(0, 1000))
def test_an_order_holds_each_window_once_and_is_the_same_every_time(count, seed, epoch) -> None:
    first = order(count, seed=seed, epoch=epoch)
    assert sorted(first) == list(range(count))
    assert np.array_equal(first, order(count, seed=seed, epoch=epoch))


def test_an_order_is_the_same_in_every_release() -> None:
    """Runs that were stopped go on after an update; these numbers never change."""
    assert order(10, seed=0, epoch=0).tolist() == [6, 1, 0, 5, 3, 8, 7, 9, 2, 4]
    assert order(10, seed=0, epoch=1).tolist() == [7, 3, 5, 0, 1, 4, 6, 8, 9, 2]
    assert order(10, seed=1, epoch=0).tolist() == [1, 0, 9, 8, 6, 3, 7, 4, 2, 5]


@settings(max_examples=50)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_truncated_file_is_refused(folder, share) -> None:
    file = written(folder / "truncated.bin", [[1, 2], [3]] * 9).path
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(ReadError, match="Prepare the data again"):
        open_tokens(file)


def overwritten(position: int, content: bytes):
    return lambda whole: whole[:position] + content + whole[position + len(content) :]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda whole: b"", "another kind"),
        (lambda whole: b"PK\x03\x04" + whole[4:], "another kind"),
        (lambda whole: whole[:40], "within its header, after 40 bytes"),
        (lambda whole: whole + b"\0" * 8, "but its header says"),
        (lambda whole: whole[:-8], "but its header says"),
        (overwritten(8, struct.pack("<I", 2)), "format version 2, but this version reads 1"),
        (overwritten(12, struct.pack("<I", 3)), "but its header says"),
        (overwritten(16, struct.pack("<Q", 11)), "checksum"),
        (overwritten(32, struct.pack("<Q", 1 << 60)), "but its header says"),
        (overwritten(-16, struct.pack("<Q", 1)), "checksum"),
    ],
)
def test_a_damaged_file_is_refused_with_the_reason(tmp_path, damage, said) -> None:
    file = written(tmp_path / "a.bin", [[1, 2], [3]]).path
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(ReadError, match=said):
        open_tokens(file)


def test_a_missing_file_and_a_folder_are_refused(tmp_path) -> None:
    for file in (tmp_path / "missing.bin", tmp_path):
        with pytest.raises(ReadError, match="cannot be opened"):
            open_tokens(file)


def test_an_exception_leaves_the_file_of_before(tmp_path) -> None:
    before = written(tmp_path / "a.bin", [[1, 2, 3]]).path.read_bytes()

    def interrupted():
        yield [4]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_tokens(tmp_path / "a.bin", interrupted(), 10, end_id=END)
    assert (tmp_path / "a.bin").read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["a.bin"]


@pytest.fixture
def full_disk():
    """No file may grow past 300,000 bytes, as on a disk that fills up."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, before[1]))

    yield fill
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_loses_nothing_already_written(tmp_path, full_disk) -> None:
    file = tmp_path / "a.bin"
    before = written(file, [[1, 2, 3]]).path.read_bytes()
    full_disk()
    with pytest.raises(OSError, match="File too large"):
        write_tokens(file, [[i % 9] * 1000 for i in range(400)], 10, end_id=END)
    assert file.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["a.bin"]


def test_packing_by_documents_says_what_it_drops(folder) -> None:
    tokens = written(folder / "dropped.bin", [[1] * 9, [2] * 3, [3] * 5])  # with their end tokens 10, 4 and 6
    windows = Windows(tokens, 4, "tail")
    assert windows.whole == 3 and windows.dropped_share == pytest.approx(1 - 12 / 17)
    assert Windows(tokens, 4, "tail", limit=1).dropped_share == windows.dropped_share
    assert Windows(tokens, 19).dropped_share == 0.0
