"""Documents from packages, folders, git checkouts, tables and the Hub, whatever state they are in."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from corpus import MIT, code, write
from hub_server import REVISION, hub
from trainwright.errors import ReadError, UsageError
from trainwright_lm.corpus import files
from trainwright_lm.corpus.options import PrepareOptions
from trainwright_lm.corpus.prepare import open_sources
from trainwright_lm.corpus.sources import Cursor, Fields, Item, Source, text_of

ROWS = [
    {"content": code(i), "path": f"a/f{i}.py", "repo_name": f"me/r{i % 3}", "license": "apache-2.0", "size": i}
    for i in range(50)
]


def opened(name: str | Path, **options: object) -> Source:
    [source] = open_sources(PrepareOptions(sources=(str(name),), **options))  # type: ignore[arg-type]
    return source


def items(source: Source) -> list[Item]:
    return list(source.items(Cursor()))


def goes_on_from_everywhere(source: Source) -> None:
    found = items(source)
    for at, item in enumerate(found):
        assert list(source.items(item.after)) == found[at + 1 :]


def json_lines(rows: list[dict[str, object]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


# --- folders


def test_each_first_level_folder_is_a_group_and_the_rest_bears_the_folders_name(tmp_path: Path) -> None:
    root = write(tmp_path / "mine", {"one/a.py": "1", "one/deep/b.py": "2", "two/c.py": "3", "d.py": "4", "e.txt": "5"})
    found = {item.path: item.group for item in items(opened(root))}
    assert found == {"one/a.py": "one", "one/deep/b.py": "one", "two/c.py": "two", "d.py": "mine"}


def test_a_folder_is_gone_on_with_from_everywhere(tmp_path: Path) -> None:
    goes_on_from_everywhere(opened(write(tmp_path, {f"g{i % 3}/f{i}.py": code(i) for i in range(12)})))


def test_hidden_folders_caches_and_virtual_environments_are_left_out(tmp_path: Path) -> None:
    left_out = (".git2/a.py", "g/.tox/a.py", "g/__pycache__/a.py", "venv/lib/a.py", "g/env/a.py")
    root = write(
        tmp_path, {"g/kept.py": "1", "venv/pyvenv.cfg": "", "g/env/pyvenv.cfg": "", **dict.fromkeys(left_out, "1")}
    )
    assert [item.path for item in items(opened(root))] == ["g/kept.py"]


def test_loops_of_links_end_and_broken_links_and_pipes_are_named(tmp_path: Path) -> None:
    root = write(tmp_path, {"g/a.py": "x = 1"})
    (root / "g" / "loop").symlink_to(root)
    (root / "g" / "itself.py").symlink_to(root / "g" / "itself.py")
    (root / "g" / "broken.py").symlink_to(root / "nowhere.py")
    os.mkfifo(root / "g" / "pipe.py")
    found = {item.path: text_of(item)[1] for item in items(opened(root))}
    assert found == {"g/a.py": "", "g/itself.py": "unreadable", "g/broken.py": "unreadable", "g/pipe.py": "unreadable"}


def test_a_name_that_is_no_utf8_can_be_shown(tmp_path: Path) -> None:
    write(tmp_path, {"g/a.py": "1"})
    with open(os.fsencode(tmp_path / "g") + b"/\xff.py", "wb") as stream:  # noqa: PTH123
        stream.write(b"x = 1")
    paths = [item.path for item in items(opened(tmp_path))]
    assert sorted(paths) == ["g/a.py", "g/�.py"]


def test_a_changed_file_changes_the_fingerprint(tmp_path: Path) -> None:
    root = write(tmp_path, {"g/a.py": "x = 1", "g/b.py": "y = 1"})
    before = opened(root).mark
    assert opened(root).mark == before
    write(root, {"g/b.py": "y = 12"})
    assert opened(root).mark != before


def test_of_a_git_checkout_what_git_does_not_ignore_is_taken_as_one_group(tmp_path: Path) -> None:
    root = write(
        tmp_path / "repo",
        {
            "src/a.py": "1", "b.py": "2", "new.py": "3", "LICENSE": MIT, "gone.py": "4", ".gitignore": "old*.py\n",
            "old.py": "5", "env/pyvenv.cfg": "", "env/lib/c.py": "6", ".tox/d.py": "7",
        },
    )  # fmt: skip
    for command in (["init", "-q"], ["add", "src", "b.py", "gone.py", "LICENSE"]):
        subprocess.run(["git", "-C", str(root), *command], check=True, capture_output=True)
    (root / "gone.py").unlink()
    found = {item.path: (item.group, item.licence, item.problem) for item in items(opened(root))}
    assert found == {
        "src/a.py": ("repo", "MIT", ""),
        "b.py": ("repo", "MIT", ""),
        "gone.py": ("repo", "MIT", "unreadable"),
        "new.py": ("repo", "MIT", ""),
    }
    above = {item.path: item.group for item in items(opened(tmp_path))}
    assert above == dict.fromkeys(("repo/src/a.py", "repo/b.py", "repo/gone.py", "repo/new.py"), "repo")


def test_a_broken_checkout_is_refused_with_what_git_says(tmp_path: Path) -> None:
    write(tmp_path / "repo", {"a.py": "1", ".git": "gitdir: /nowhere"})
    with pytest.raises(ReadError, match="git must be able to list"):
        opened(tmp_path / "repo")


def test_what_a_folder_without_code_has_instead_is_said(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    with pytest.raises(ReadError, match=r"files that end in \.py; it is empty\. Name the folder with your code"):
        opened(tmp_path / "none")
    write(tmp_path / "notes", {"a.txt": "x", "deep/b.txt": "y", "c.md": "z"})
    with pytest.raises(ReadError, match=r"it has none, but 2 \.txt, 1 \.md\. --suffixes \.txt reads those"):
        opened(tmp_path / "notes")
    assert len(items(opened(tmp_path / "notes", suffixes=(".txt",)))) == 2
    write(tmp_path, {"one.py": "x = 1"})
    with pytest.raises(UsageError, match=r"must be a folder, not a file in it; name"):
        opened(tmp_path / "one.py")


def test_unknown_sources_are_refused(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "x"})
    for name, words in {
        "instaled": "does not exist",
        str(tmp_path / "a.txt"): "another kind",
        "hub:one": "OWNER/NAME",
    }.items():
        with pytest.raises(UsageError, match=words):
            opened(name)
    with pytest.raises(UsageError, match="named once"):
        open_sources(PrepareOptions(sources=(str(tmp_path), str(tmp_path))))


# --- installed


def distribution(site: Path, name: str, metadata: str, paths: list[str]) -> None:
    write(site, {path: f"# {path}\n" for path in paths if not path.startswith("..")})
    record = "".join(f"{path},,\n" for path in paths)
    write(
        site / f"{name}-1.dist-info",
        {"METADATA": f"Metadata-Version: 2.1\nName: {name}\n{metadata}\n", "RECORD": record},
    )


def test_a_distribution_is_a_group_with_the_licence_of_its_metadata(tmp_path: Path) -> None:
    distribution(tmp_path, "One_Two", "License-Expression: MIT", ["one/a.py", "one/b.so", "../../bin/tool.py"])
    distribution(tmp_path, "three", "Classifier: License :: OSI Approved :: Apache Software License", ["three.py"])
    found = {
        i.path: (i.group, i.licence)
        for i in items(files.read_installed(suffixes=(".py",), largest=99, paths=[str(tmp_path)]))
    }
    assert found == {"one/a.py": ("one-two", "MIT"), "three.py": ("three", "Apache-2.0")}


def test_an_environment_without_packages_says_so(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="have no files"):
        files.read_installed(suffixes=(".py",), largest=99, paths=[str(tmp_path)])


def test_this_environments_packages_are_found() -> None:
    assert {"numpy", "rich"} <= {file.group for file in files.read_installed(suffixes=(".py",), largest=99).files}


# --- tables


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz", "rows.parquet"])
def test_a_tables_rows_are_documents_by_codeparrots_names(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    if name.endswith("parquet"):
        parquet.write_table(pa.Table.from_pylist(ROWS), file, row_group_size=7)
    else:
        file.write_bytes(gzip.compress(json_lines(ROWS)) if name.endswith("gz") else json_lines(ROWS))
    source = opened(file)
    assert [(i.content.decode(), i.path, i.group, i.licence) for i in items(source)] == [
        (row["content"], f"{row['repo_name']}/{row['path']}", row["repo_name"], "Apache-2.0") for row in ROWS
    ]
    goes_on_from_everywhere(source)


def test_other_columns_can_be_named(tmp_path: Path) -> None:
    row = {"body": "x = 1", "at": "a.py", "owner": "me", "terms": ["MIT", "isc"]}
    (tmp_path / "rows.jsonl").write_bytes(json_lines([row]))
    parquet.write_table(pa.Table.from_pylist([row]), tmp_path / "rows.parquet")
    fields = Fields(text="body", path="at", group="owner", licence="terms")
    for name in ("rows.jsonl", "rows.parquet"):
        [item] = items(opened(tmp_path / name, fields=fields))
        assert (item.content, item.path, item.group, item.licence) == (b"x = 1", "me/a.py", "me", "MIT OR ISC")


def test_a_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"words": ["x"]}), tmp_path / "rows.parquet")
    with pytest.raises(UsageError, match="--text-field"):
        opened(tmp_path / "rows.parquet")
    with pytest.raises(UsageError, match="must have the column body; it has words"):
        opened(tmp_path / "rows.parquet", fields=Fields(text="body"))


def test_broken_lines_are_skipped_with_their_places(tmp_path: Path) -> None:
    lines = [
        b'{"content": "x = 1"}', b"{", b"", b"[]", b'{"content": 3}', b'{"content": null}', b'{"text": "\\ud800"}', b"\xff",
        b'{"content": "y", "path": "\\ud800.py"}', b'{"content": "' + b"z" * 700_000 + b'"}', b'{"content": "last"}',
    ]  # fmt: skip
    (tmp_path / "rows.jsonl").write_bytes(b"\n".join(lines))
    found = items(opened(tmp_path / "rows.jsonl", largest=100))
    assert [text_of(item, 100)[1] for item in found] == [
        "", "corrupt", "empty", "corrupt", "no-text", "no-text", "not-utf-8", "corrupt", "", "huge", "",
    ]  # fmt: skip
    assert found[1].path.endswith("rows.jsonl:2")
    assert found[8].path == "?.py"


def test_a_cut_gzip_file_gives_what_it_has_and_is_named(tmp_path: Path) -> None:
    whole = gzip.compress(json_lines(ROWS), compresslevel=1)
    (tmp_path / "rows.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    found = items(opened(tmp_path / "rows.jsonl.gz"))
    assert found[-1].problem == "corrupt"
    assert all(not item.problem for item in found[:-1])


def test_a_broken_row_group_is_skipped_and_the_next_one_is_read(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    parquet.write_table(pa.Table.from_pylist(ROWS), file, row_group_size=10, compression="zstd", use_dictionary=False)
    column = parquet.ParquetFile(file).metadata.row_group(1).column(0)
    content = bytearray(file.read_bytes())
    start = column.data_page_offset
    content[start : start + column.total_compressed_size] = b"\xee" * column.total_compressed_size
    file.write_bytes(content)
    found = items(opened(file))
    assert [item.problem for item in found].count("corrupt") == 1
    assert [item.content for item in found if not item.problem] == [
        r["content"].encode() for r in ROWS[:10] + ROWS[20:]
    ]
    goes_on_from_everywhere(opened(file))


def test_texts_that_are_no_utf8_in_parquet_are_one_rows_problem(tmp_path: Path) -> None:
    schema = pa.schema([("content", pa.binary())])
    parquet.write_table(pa.table({"content": [b"x = 1", b"\xff\xfe", None]}, schema=schema), tmp_path / "rows.parquet")
    assert [text_of(item)[1] for item in items(opened(tmp_path / "rows.parquet"))] == ["", "not-utf-8", "empty"]


def test_files_that_are_no_tables_are_refused(tmp_path: Path) -> None:
    for name in ("rows.parquet", "rows.jsonl.gz"):
        write(tmp_path, {name: "no table"})
        with pytest.raises(ReadError, match="must be a"):
            opened(tmp_path / name)


# --- the Hub


def test_a_data_set_is_read_as_a_stream_and_gone_on_with(tmp_path: Path) -> None:
    folder = tmp_path / "me" / "code" / "data"
    folder.mkdir(parents=True)
    parquet.write_table(pa.Table.from_pylist(ROWS[:20]), folder / "a.parquet", row_group_size=8)
    (folder / "b.json.gz").write_bytes(gzip.compress(json_lines(ROWS[20:])))
    write(folder, {"README.md": "text"})
    with hub(tmp_path) as (address, requests):
        environment = {**os.environ, "HF_ENDPOINT": address, "HF_HUB_OFFLINE": "0"}
        done = subprocess.run(
            [sys.executable, "-c", _READ], env=environment, capture_output=True, text=True, timeout=100
        )
    assert done.returncode == 0, done.stderr
    texts, own, fingerprint = json.loads(done.stdout)
    assert texts == [row["content"] for row in ROWS]
    assert not own
    assert fingerprint == REVISION
    assert not any("README" in request for request in requests)


# In a process of its own: the Hub's address is read once for a process.
_READ = """
import json
from trainwright_lm.corpus.options import PrepareOptions
from trainwright_lm.corpus.prepare import open_sources
from trainwright_lm.corpus.sources import Cursor
[source] = open_sources(PrepareOptions(sources=("hub:me/code/data",)))
found = list(source.items(Cursor()))
for at in (0, 7, 19, 33):
    assert list(source.items(found[at].after)) == found[at + 1 :]
print(json.dumps([[item.content.decode() for item in found], source.own, source.mark]))
"""


def test_a_data_set_that_is_not_there_or_has_no_tables_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "me" / "code", {"README.md": "text"})
    with hub(tmp_path) as (address, _):
        _use_hub(address, monkeypatch)
        with pytest.raises(ReadError, match="me/other could not be reached on the Hub"):
            opened("hub:me/other")
        with pytest.raises(ReadError, match=r"me/code has no .*\.parquet"):
            opened("hub:me/code")
    _use_hub("http://127.0.0.1:9", monkeypatch)  # nobody listens there
    with pytest.raises(ReadError, match="could not be reached on the Hub"):
        opened("hub:me/code")


def _use_hub(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As HF_ENDPOINT and HF_HUB_OFFLINE do for addresses of metadata."""
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", address)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    huggingface_hub.HfFileSystem.clear_instance_cache()


# --- texts


@pytest.mark.parametrize(
    ("content", "text", "problem"),
    [
        (b"x = 1\n", "x = 1\n", ""),
        (b"\xef\xbb\xbfx = 1\r\ny = 2\r\n", "x = 1\ny = 2\n", ""),
        (b"s = '<|endoftext|>'", "s = '<|endoftext|>'", ""),
        (b" \n\t", "", "empty"),
        (b"x\0", "", "binary"),
        (b"caf\xe9", "", "not-utf-8"),
        (b"x" * 101, "", "huge"),
    ],
)
def test_bytes_become_text_or_a_reason(content: bytes, text: str, problem: str) -> None:
    item = Item(content=content, path="a", group="g", licence=None, after=Cursor(), share=1.0)
    assert text_of(item, 100) == (text, problem)
