"""From sources to a folder of prepared data: its content, its refusals, and kills at any moment."""

from __future__ import annotations

import itertools
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from corpus import code, corpus, write
from trainwright.errors import ReadError, UsageError
from trainwright_lm.corpus import steps
from trainwright_lm.corpus.filters import FilterOptions
from trainwright_lm.corpus.options import PrepareOptions
from trainwright_lm.corpus.prepare import _plain, prepare
from trainwright_lm.tokens.prepared import SPLITS, documents, open_data

FILES = {"data.json", "tokenizer.json", "train.bin", "train.parquet", "validation.bin", "validation.parquet"}


def options(*sources: Path, **changes: Any) -> PrepareOptions:
    """With all filters, as for packages."""
    few = PrepareOptions(
        sources=tuple(map(str, sources)), vocabulary_size=400, tokenizer_bytes=20_000, validation=0.2,
        own_filters=FilterOptions(),
    )  # fmt: skip
    return replace(few, **changes)


def content(out: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in out.iterdir()}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("prepared")
    prepare(out / "data", options(corpus(out / "code")))
    return out / "data"


# --- what is there


def test_a_folder_of_prepared_data_holds_these_files_and_no_others(prepared: Path) -> None:
    assert {file.name for file in prepared.iterdir()} == FILES


def test_the_funnel_adds_up_and_names_what_was_dropped(prepared: Path) -> None:
    funnel = open_data(prepared).manifest["funnel"]
    dropped = {reason: (drop["files"], drop["samples"]) for reason, drop in funnel["dropped"].items()}
    first, second = sorted(["g0/same.py", "g1/f1.py"]), sorted(["g1/near.py", "g2/f0.py"])
    assert dropped.pop("exact-duplicate")[1][0] in first
    assert dropped.pop("near-duplicate")[1][0] in second
    assert dropped == {
        "empty": (1, ["g2/empty.py"]), "binary": (1, ["g2/binary.py"]), "not-utf-8": (1, ["g2/latin.py"]),
        "no-keyword": (1, ["g3/other.py"]),
    }  # fmt: skip
    assert funnel["seen"]["files"] == 36 == funnel["kept"]["files"] + 6
    assert funnel["seen"]["bytes"] == funnel["kept"]["bytes"] + sum(d["bytes"] for d in funnel["dropped"].values())


def test_the_splits_are_whole_groups_and_what_was_packed_is_what_was_written(prepared: Path) -> None:
    data = open_data(prepared)
    groups = [{document.group for document in documents(prepared, split)} for split in SPLITS]
    assert groups[0] and groups[1] and not groups[0] & groups[1]
    for split, tokens in zip(SPLITS, (data.train, data.validation)):
        texts = [document.text for document in documents(prepared, split)]
        assert [data.tokenizer.decode(tokens.tokens[a : b - 1].tolist()) for a, b in _spans(tokens.starts)] == texts
        counts = data.manifest["splits"][split]
        assert counts["documents"] == len(texts)
        assert counts["bytes"] == sum(len(text.encode()) for text in texts)
        assert counts["tokens"] == len(tokens.tokens)
    assert (
        sum(count["bytes"] for count in data.manifest["licences"].values()) == data.manifest["funnel"]["kept"]["bytes"]
    )


def test_the_proof_is_written_down(prepared: Path) -> None:
    proof = open_data(prepared).manifest["proof"]
    assert (proof["shared_groups"], proof["equal_texts"], proof["near_texts"], proof["near_threshold"]) == (
        0,
        0,
        0,
        0.7,
    )
    assert proof["train_documents"] + proof["validation_documents"] == 30


def test_what_deduplication_misses_across_the_split_the_proof_drops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write(
        tmp_path / "code", {f"g{i}/f{j}.py": code(j * (i + 1)) + f"x{i} = {i}\n" for i in range(5) for j in range(4)}
    )
    monkeypatch.setattr(steps, "near_verdicts", lambda *_, **__: iter(()))
    manifest = prepare(tmp_path / "data", options(source)).manifest
    assert manifest["proof"]["near_texts"] == 0
    assert manifest["funnel"]["dropped"]["near-validation"]["files"] > 0
    assert manifest["splits"]["train"]["documents"] == manifest["proof"]["train_documents"]


def test_a_literal_control_token_in_a_text_stays_text(tmp_path: Path) -> None:
    texts = {f"g{i}/f.py": code(i) + "END = '<|endoftext|>'\n" for i in range(4)}
    prepare(tmp_path / "data", options(write(tmp_path / "code", texts)))
    data = open_data(tmp_path / "data")
    for tokens in (data.train, data.validation):
        assert (tokens.tokens == data.tokenizer.end_id).sum() == tokens.documents
        first = tokens.tokens[: int(tokens.starts[1]) - 1]
        assert "<|endoftext|>" in data.tokenizer.decode(first.tolist())


def test_a_single_group_is_split_by_file_and_said_so(tmp_path: Path) -> None:
    source = write(tmp_path / "code", {f"only/f{i}.py": code(i) for i in range(10)})
    manifest = prepare(tmp_path / "data", options(source)).manifest
    assert manifest["split_by"] == "file"
    assert manifest["splits"]["validation"]["documents"] == 2
    assert manifest["proof"]["equal_texts"] == manifest["proof"]["near_texts"] == 0


def test_gathering_ends_where_the_wanted_bytes_are_there(tmp_path: Path) -> None:
    source = corpus(tmp_path / "code")
    kept = prepare(tmp_path / "data", options(source, max_bytes=10_000)).manifest["funnel"]["kept"]["bytes"]
    assert 10_000 - 2 * len(code(0)) < kept <= 10_000


def test_one_group_gives_no_more_than_its_share(tmp_path: Path) -> None:
    source = corpus(tmp_path / "code")
    manifest = prepare(tmp_path / "data", options(source, max_group_bytes=2 * len(code(0)) + 100)).manifest
    rows = [row for name in SPLITS for row in parquet.read_table(tmp_path / "data" / f"{name}.parquet").to_pylist()]
    sizes: Counter[str] = Counter()
    for row in rows:
        sizes[row["group"]] += len(row["text"].encode())
    assert len(sizes) > 2 and max(sizes.values()) <= 2 * len(code(0)) + 100
    assert manifest["funnel"]["dropped"]["group-full"]["files"] > 0


def test_a_folder_of_ones_own_keeps_all_of_its_code_and_names_what_it_leaves_out(tmp_path: Path) -> None:
    source = write(
        tmp_path / "mine",
        {
            **{f"{'abc'[i % 3]}/f{i}.py": code(i).replace("pandas", "os") for i in range(12)},
            "LICENSE": "GNU GENERAL PUBLIC LICENSE version 3", "a/__init__.py": "", "a/tiny.py": "import os\n",
            "b/made.py": "# Generated by a tool. DO NOT EDIT!\n" + code(90), "c/data.py": f"x = '{'a' * 9000}'\n",
            "c/twin.py": code(0).replace("pandas", "os"), "c/latin.py": "# caf\u00e9\n".encode("latin-1"),
        },
    )  # fmt: skip
    funnel = prepare(tmp_path / "data", PrepareOptions(sources=(str(source),))).manifest["funnel"]
    assert funnel["kept"]["files"] == 13
    left_out = {reason: drop["samples"] for reason, drop in funnel["dropped"].items()}
    assert left_out.pop("exact-duplicate")[0] in ("a/f0.py", "c/twin.py")
    assert left_out == {
        "empty": ["a/__init__.py"], "generated": ["b/made.py"], "long-lines": ["c/data.py"], "not-utf-8": ["c/latin.py"],
    }  # fmt: skip
    assert funnel["seen"]["files"] == 13 + 5


def test_files_are_held_out_where_no_whole_group_comes_near_to_the_share(tmp_path: Path) -> None:
    loose = {f"t{i}.py": f"x{i} = {i}\n" for i in range(6)}
    packages = {f"{'ab'[i % 2]}/f{i}.py": code(i) for i in range(60)}
    source = write(tmp_path / "mine", {**loose, **packages})
    manifest = prepare(tmp_path / "data", PrepareOptions(sources=(str(source),))).manifest
    held_out, rest = (manifest["splits"][name]["bytes"] for name in ("validation", "train"))
    assert manifest["split_by"] == "file"
    assert 0.025 < held_out / (held_out + rest) <= 0.05


def test_a_little_text_gets_a_small_vocabulary_unless_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write(tmp_path / "mine", {f"g{i}/f.py": code(i, 400) for i in range(6)})
    monkeypatch.setattr(steps, "FEW_ENTRIES", 300)
    for name, named, entries in (("few", 0, 300), ("named", 500, 500)):
        chosen = PrepareOptions(sources=(str(source),), vocabulary_size=named, validation=0.2)
        assert prepare(tmp_path / name, chosen).manifest["tokenizer"]["vocabulary_size"] == entries
    monkeypatch.setattr(steps, "MUCH_TEXT_BYTES", 1000)
    monkeypatch.setattr(steps, "MANY_ENTRIES", 400)
    chosen = PrepareOptions(sources=(str(source),), validation=0.2)
    assert prepare(tmp_path / "many", chosen).manifest["tokenizer"]["vocabulary_size"] == 400


def test_options_name_the_filters_that_meet_a_source_and_no_others(tmp_path: Path) -> None:
    """So that data of packages, which earlier versions prepared with the same filters, are still prepared."""
    assert set(_plain(PrepareOptions())) & {"filters", "own_filters"} == {"filters"}
    assert set(_plain(PrepareOptions(sources=("code",)))) & {"filters", "own_filters"} == {"own_filters"}
    assert set(_plain(PrepareOptions(sources=("code", "installed")))) >= {"filters", "own_filters"}


def test_several_sources_follow_each_other(tmp_path: Path) -> None:
    rows = [{"content": code(900 + i), "repo_name": f"r{i}", "path": "a.py"} for i in range(4)]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    chosen = options(corpus(tmp_path / "code"), tmp_path / "rows.parquet")
    manifest = prepare(tmp_path / "data", chosen).manifest
    assert manifest["funnel"]["kept"]["files"] == 34
    assert list(manifest["sources"]) == list(chosen.sources)


def _spans(starts: np.ndarray) -> list[tuple[int, int]]:
    ends = starts.tolist()
    return list(itertools.pairwise(ends))


def test_a_tokenizer_of_few_bytes_is_trained_on_some(tmp_path: Path) -> None:
    """Not one of few files may lie within a small sample."""
    source = write(tmp_path / "code", {f"g{i}/f.py": code(i, 200) for i in range(3)})
    assert not prepare(tmp_path / "data", options(source, tokenizer_bytes=100)).already


_PEAK = """
import pathlib, sys
from test_lm_prepare import options
from trainwright_lm.corpus import pieces, steps
from trainwright_lm.corpus.prepare import prepare

def peak(*_):
    print([int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")][0])
    sys.exit()

pieces.PIECE_BYTES, steps.judge = 1 << 20, peak
prepare(pathlib.Path(sys.argv[2]), options(pathlib.Path(sys.argv[1]), max_group_bytes=5000))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_gathering_takes_the_same_memory_for_three_times_the_corpus(tmp_path: Path) -> None:
    peaks, sizes = [], []
    for count in (120, 360):
        texts: dict[str, str | bytes] = {f"g{i % 9}/f{i}.py": code(i, 2000) for i in range(count)}
        source = write(tmp_path / str(count), texts)
        out = subprocess.run(
            [sys.executable, "-c", _PEAK, str(source), str(tmp_path / f"data{count}")], env=_environment(),
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        peaks.append(int(out.stdout))
        sizes.append(sum(map(len, texts.values())))
    assert peaks[1] - peaks[0] < 0.4 * (sizes[1] - sizes[0])


def _environment() -> dict[str, str]:
    """In which a process of its own finds this file."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent / "helpers"), *sys.path])}


# --- what is refused


def test_done_work_is_not_done_again_and_other_options_are_refused(tmp_path: Path) -> None:
    chosen = options(corpus(tmp_path / "code"))
    assert not prepare(tmp_path / "data", chosen).already
    before = content(tmp_path / "data")
    assert prepare(tmp_path / "data", chosen).already
    other = replace(chosen, seed=1, own_filters=FilterOptions(keywords=("pandas",)))
    with pytest.raises(UsageError, match=r"seed was 0, is 1.*--restart") as caught:
        prepare(tmp_path / "data", other)
    assert "own_filters.keywords was" in str(caught.value)
    assert content(tmp_path / "data") == before
    assert not prepare(tmp_path / "data", other, restart=True).already
    assert open_data(tmp_path / "data").manifest["options"]["seed"] == 1


def test_a_wrong_source_does_not_cost_what_is_there(tmp_path: Path) -> None:
    prepare(tmp_path / "data", options(corpus(tmp_path / "code")))
    before = content(tmp_path / "data")
    with pytest.raises(UsageError, match="does not exist"):
        prepare(tmp_path / "data", options(tmp_path / "cod"), restart=True)
    assert content(tmp_path / "data") == before


def test_files_of_others_are_not_written_over(tmp_path: Path) -> None:
    out = write(tmp_path / "data", {"train.parquet": "mine", "notes.txt": "mine"})
    chosen = options(corpus(tmp_path / "code"))
    with pytest.raises(UsageError, match=r"it has train\.parquet"):
        prepare(out, chosen)
    assert (out / "train.parquet").read_text() == "mine"
    (out / "train.parquet").unlink()
    prepare(out, chosen)
    prepare(out, chosen, restart=True)
    assert (out / "notes.txt").read_text() == "mine"


def test_nothing_kept_is_said_with_the_reasons(tmp_path: Path) -> None:
    source = write(tmp_path / "code", {f"g{i}/a.py": "import os\n" * 20 for i in range(3)})
    with pytest.raises(UsageError, match=r"of 3 there are 0 \(3 no-keyword\)"):
        prepare(tmp_path / "data", options(source))
    write(source, {"g0/b.py": code(1)})
    with pytest.raises(UsageError, match=r"there is 1"):
        prepare(tmp_path / "data2", options(source))


@pytest.mark.parametrize(
    "change",
    [{"near": 0.0}, {"near": 1.1}, {"validation": 0.0}, {"validation": 1.0}, {"vocabulary_size": 256}, {"suffixes": ()},
     {"largest": 0}, {"tokenizer_bytes": 0}, {"max_bytes": -1}, {"max_group_bytes": -1}],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(change: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--"):
        prepare(tmp_path / "data", options(tmp_path, **change))
    assert not (tmp_path / "data").exists()


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"file": "", "g/a.py": code(1)})
    with pytest.raises(UsageError, match="must be a folder with room to write"):
        prepare(tmp_path / "file" / "data", options(tmp_path))


def test_two_at_once_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = options(corpus(tmp_path / "code"))
    caught: list[UsageError] = []

    def again(job: steps.Job, rank: int, tasks: int) -> None:
        with pytest.raises(UsageError, match="by another process") as info:
            prepare(tmp_path / "data", chosen)
        caught.append(info.value)

    monkeypatch.setattr(steps, "gather", again)
    with pytest.raises(UsageError):  # the task that stands in for gathering leaves nothing behind
        prepare(tmp_path / "data", chosen)
    assert caught


def test_data_that_is_unfinished_damaged_or_mixed_is_refused(prepared: Path, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"has no data\.json\."):
        open_data(tmp_path)
    for name in FILES:
        (tmp_path / name).write_bytes((prepared / name).read_bytes())
    open_data(tmp_path)
    (tmp_path / "validation.bin").write_bytes((prepared / "train.bin").read_bytes())
    with pytest.raises(ReadError, match=r"validation\.bin must have the"):
        open_data(tmp_path)
    (tmp_path / "data.json").write_text('{"format": 99}')
    with pytest.raises(ReadError, match="must have format 1; it has 99"):
        open_data(tmp_path)
    (tmp_path / "data.json").write_text("{")
    with pytest.raises(ReadError, match="must be readable JSON"):
        open_data(tmp_path)
    (tmp_path / "train.parquet").write_bytes(b"PAR1")
    with pytest.raises(ReadError, match="must be the texts"):
        list(documents(tmp_path, "train"))
    (tmp_path / "data.json").unlink()
    (tmp_path / "work").mkdir()
    with pytest.raises(ReadError, match="was not finished"):
        open_data(tmp_path)


def test_an_address_as_out_and_a_nameless_source_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(write(tmp_path, {"a/a.py": code(1), "b/b.py": code(2)}))
    with pytest.raises(UsageError, match="got an address, s3://bucket/x"):
        prepare(Path("s3://bucket/x"), options(tmp_path))
    with pytest.raises(UsageError, match="an empty name"):
        prepare(tmp_path / "data", options(Path(), sources=("",)))
    assert {file.name for file in tmp_path.iterdir()} == {"a", "b"}


# --- kills


_CHILD = """
import os, pathlib, signal, sys
from test_lm_prepare import options
from trainwright.errors import UsageError
from trainwright_lm.corpus import pieces
from trainwright_lm.tokens import pack
from trainwright_lm.corpus.prepare import prepare

pieces.PIECE_BYTES = 6000
left = int(sys.argv[3])

def die_when_due():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

def around(function):
    def wrapped(*arguments, **options):
        die_when_due()
        result = function(*arguments, **options)
        die_when_due()
        return result
    return wrapped

pathlib.Path.replace = around(pathlib.Path.replace)
pathlib.Path.unlink = around(pathlib.Path.unlink)
pack._packed = around(pack._packed)
try:
    prepare(pathlib.Path(sys.argv[2]), options(pathlib.Path(sys.argv[1]), max_group_bytes=5000))
except UsageError as error:
    sys.exit(str(error))
print(-left)
"""


def child(source: Path, out: Path, kill_at: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
    """prepare in a process of its own, killed at a step if one is given; prints how many steps there are."""
    command = [sys.executable, "-c", _CHILD, str(source), str(out), str(kill_at)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, env=_environment(), **options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes], int]:
    """A corpus, the bytes that preparing it in one go makes, and in how many steps."""
    folder = tmp_path_factory.mktemp("whole")
    source = corpus(folder / "code")
    done = child(source, folder / "data")
    assert done.returncode == 0, done.stderr
    return source, content(folder / "data"), int(done.stdout)


@pytest.mark.slow
def test_killed_at_any_step_and_started_again_it_ends_with_the_same_bytes(
    whole: tuple[Path, dict[str, bytes], int], tmp_path: Path
) -> None:
    """One preparation is killed many times: each time at a random step, later and later ones."""
    source, expected, steps = whole
    rng = random.Random(0)
    for out in (tmp_path / "a", tmp_path / "b"):
        furthest = 5
        while (done := child(source, out, rng.randint(furthest // 2, furthest))).returncode:
            assert done.returncode == -signal.SIGKILL, done.stderr
            furthest += steps // 8
        assert furthest > 5 + steps // 8  # killed twice at least
        assert content(out) == expected


def test_killed_from_outside_it_ends_with_the_same_bytes(
    whole: tuple[Path, dict[str, bytes], int], tmp_path: Path
) -> None:
    source, expected, _ = whole
    for wait_seconds in (0.3, 0.6, 0.9):
        out = tmp_path / str(wait_seconds)
        with subprocess.Popen(
            [sys.executable, "-c", _CHILD, str(source), str(out), "0"],
            env=_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            time.sleep(wait_seconds)
            process.kill()
        assert child(source, out).returncode == 0
        assert content(out) == expected


def test_sources_that_changed_while_work_was_stopped_are_refused(
    whole: tuple[Path, dict[str, bytes], int], tmp_path: Path
) -> None:
    source = corpus(tmp_path / "code")
    assert child(source, tmp_path / "data", 6).returncode == -signal.SIGKILL
    write(source, {"g0/f0.py": code(7777)})
    assert "must not change while" in child(source, tmp_path / "data").stderr


@pytest.mark.slow
def test_a_full_disk_is_said_and_nothing_is_lost(whole: tuple[Path, dict[str, bytes], int], tmp_path: Path) -> None:
    """A limit on the size of files stands in for it: writing fails in the same way, halfway through a file."""
    source, expected, _ = whole
    for limit in (2_000, 20_000, len(expected["train.bin"]) - 100):

        def limited(size: int = limit) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        full = child(source, tmp_path / str(limit), preexec_fn=limited)
        assert full.returncode == 1
        assert "must be a folder with room to write" in full.stderr
        assert child(source, tmp_path / str(limit)).returncode == 0
        assert content(tmp_path / str(limit)) == expected


# --- the command


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trainwright", "lm", "prepare", *words], capture_output=True, text=True
    )


def test_the_command_prepares_shows_its_funnel_and_does_not_need_torch(tmp_path: Path) -> None:
    script = (
        "import sys; from trainwright.cli import main\ntry:\n    main()\nfinally:\n"
        "    assert not {'torch', 'transformers', 'datasets'} & set(sys.modules)"
    )
    words = ["lm", "prepare", str(corpus(tmp_path / "code")), "--out", str(tmp_path / "data"), "--vocabulary", "400"]
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "near duplicate" in done.stdout and "Every training file was compared" in done.stdout
    assert "kept, file 1: " in done.stdout and "kept, file 2: " in done.stdout
    assert json.loads((tmp_path / "data" / "data.json").read_text())["tokenizer"]["vocabulary_size"] == 400
    again = command(*words[2:])
    assert again.returncode == 0
    assert "is already prepared" in again.stdout


def test_keywords_that_are_given_count_for_a_folder_too(tmp_path: Path) -> None:
    source = write(tmp_path / "mine", {f"g{i}/f.py": code(i).replace("pandas", "os") for i in range(4)})
    done = command(str(source), "--out", str(tmp_path / "data"))
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "data" / "data.json").read_text())["funnel"]["kept"]["files"] == 4
    refused = command(str(source), "--out", str(tmp_path / "other"), "--keywords", "pandas,torch")
    assert refused.returncode == 2 and "4 no-keyword" in " ".join(refused.stderr.split())
    assert "kB" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--largest", "1 fortnight"], "--largest must be a number of bytes"),
        (["--licences", "nonsense"], "--licenses must be permissive, any"),
        (["nowhere"], "does not exist"),
    ],
)
def test_wrong_arguments_are_one_line_and_status_two(words: list[str], message: str, tmp_path: Path) -> None:
    done = command(*words, "--out", str(tmp_path / "data"))
    assert done.returncode == 2
    assert message in done.stderr and "Traceback" not in done.stderr
