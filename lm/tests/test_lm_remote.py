"""Sources in remote storage: over HTTP and S3's interface, in archives; read again where the connection breaks."""

from __future__ import annotations

import gzip
import io
import pickle
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import fsspec
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import xxhash
from test_lm_prepare import content, options
from test_lm_sources import ROWS, goes_on_from_everywhere, items, json_lines, opened

from corpus import code, write
from trainwright.errors import ReadError, UsageError
from trainwright_lm.corpus import remote
from trainwright_lm.corpus.options import PrepareOptions
from trainwright_lm.corpus.prepare import open_sources, prepare
from trainwright_lm.tokens.prepared import read_manifest


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A folder with tables, an archive of source files, and other files."""
    root = tmp_path / "store"
    files = {f"g{n % 3}/f{n}.py": code(n) for n in range(9)}
    lines = {"a.jsonl.gz": gzip.compress(json_lines(ROWS[:20])), "c.jsonl": json_lines(ROWS[:5])}
    write(root, {**files, **lines, "notes.txt": "none"})
    parquet.write_table(pa.Table.from_pylist(ROWS[20:]), root / "b.parquet", row_group_size=10)
    archive(root / "code.tar.gz", files)
    return root


def archive(file: Path, files: dict[str, str]) -> None:
    with tarfile.open(file, "w:gz") as archive:
        for name, text in files.items():
            about = tarfile.TarInfo(name)
            about.size = len(text.encode())
            archive.addfile(about, io.BytesIO(text.encode()))


class Serving:
    """An HTTP server of a folder that breaks off some of its answers."""

    def __init__(self) -> None:
        self.address = ""
        self.breaks = 0
        """So many of the next answers with content end after half of it."""
        self.refusals: list[int] = []
        """The next answers' status."""
        self.ranges = True
        """Whether it sends parts of files; otherwise always the whole."""
        self.sizes = True
        """Whether it says how large a file is before it sends it."""


@pytest.fixture
def http(store: Path) -> Iterator[Serving]:
    serving = Serving()

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

        def do_HEAD(self) -> None:
            if serving.refusals or not serving.sizes:
                self.send_response(serving.refusals.pop(0) if serving.refusals else 200)
                self.end_headers()
            else:
                super().do_HEAD()

        def do_GET(self) -> None:
            if serving.refusals:
                self.do_HEAD()
                return
            file = Path(self.translate_path(self.path))
            if not file.is_file():
                super().do_GET()
                return
            data = file.read_bytes()
            if not serving.ranges:
                del self.headers["Range"]
            first, _, last = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
            piece = data[int(first) : int(last or len(data)) + 1]
            self.send_response(206 if "Range" in self.headers else 200)
            if serving.sizes:
                self.send_header("Content-Length", str(len(piece)))
            if serving.ranges:
                self.send_header("Accept-Ranges", "bytes")
                self.send_header("Content-Range", f"bytes {first}-{int(first) + len(piece) - 1}/{len(data)}")
            self.end_headers()
            broken = serving.breaks > 0 and len(piece) > 100
            serving.breaks -= broken
            self.wfile.write(piece[: len(piece) // 2] if broken else piece)
            self.close_connection = broken or self.close_connection

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(store)))
    Thread(target=server.serve_forever, daemon=True).start()
    serving.address = f"http://127.0.0.1:{server.server_port}"
    yield serving
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "WAITS", (0.01, 0.01, 0.01))


def texts(name: str) -> list[tuple[str, str, bytes]]:
    return sorted((item.path, item.group, item.content) for item in items(opened(name)))


def test_tables_over_http_are_those_of_the_disk_and_are_gone_on_with_from_everywhere(
    http: Serving, store: Path
) -> None:
    for name in ("a.jsonl.gz", "b.parquet", "c.jsonl"):
        assert texts(f"{http.address}/{name}") == texts(str(store / name))
        goes_on_from_everywhere(opened(f"{http.address}/{name}"))


def test_a_part_of_a_source_goes_to_a_task(http: Serving, store: Path) -> None:
    source = opened(f"{http.address}/")
    part = pickle.loads(pickle.dumps(source.part(1, 3)))
    assert [file.name for file in part.files] == ["b.parquet", "c.jsonl"]
    assert len(items(part)) == 35


def test_an_archive_and_a_folder_have_the_files_of_the_disk(http: Serving, store: Path) -> None:
    on_disk = texts(str(store))
    assert texts(f"{http.address}/code.tar.gz") == on_disk and len(on_disk) == 9
    with zipfile.ZipFile(store / "code.zip", "w") as archive:
        for name in ("g0/f3.py", "g1/f4.py"):
            archive.write(store / name, name)
    whole = (
        f"zip://::{http.address}/code.zip",
        f"{http.address}/code.zip",
        store / "code.zip",
        f"zip://{store}/code.zip",
    )
    for address in whole:
        assert texts(str(address)) == [one for one in on_disk if one[0] in ("g0/f3.py", "g1/f4.py")]
    found = opened(f"{http.address}/")
    assert sorted(file.name for file in found.files) == [
        "a.jsonl.gz",
        "b.parquet",
        "c.jsonl",
        *sorted(path for path, *_ in on_disk),
    ]  # type: ignore[attr-defined]


def test_an_archive_that_is_the_only_source_is_grouped_below_its_top_folder(tmp_path: Path) -> None:
    archive(tmp_path / "code.tgz", {"x-1.0/README": "", "x-1.0/a/f.py": "1", "x-1.0/b/c/f.py": "2", "x-1.0/g.py": "3"})
    found = texts(str(tmp_path / "code.tgz"))
    assert found == [("a/f.py", "a", b"1"), ("b/c/f.py", "b", b"2"), ("code.tgz/g.py", "code.tgz", b"3")]
    write(tmp_path, {"other/f.py": "4"})
    one, _ = open_sources(PrepareOptions(sources=(str(tmp_path / "code.tgz"), str(tmp_path / "other"))))
    assert {item.group for item in items(one)} == {"x-1.0"}
    part = pickle.loads(pickle.dumps(opened(tmp_path / "code.tgz").part(1, 3)))
    assert [item.content for item in items(part)] == [b"2", b"3"]


def test_a_folder_of_tables_is_read_from_the_disk_as_from_its_address(store: Path) -> None:
    write(store / "tables", {"a.jsonl": json_lines(ROWS[:3]), "deep/b.jsonl": json_lines(ROWS[3:5])})
    assert texts(str(store / "tables")) == texts(f"file://{store}/tables") == texts(str(store / "c.jsonl"))
    goes_on_from_everywhere(opened(store / "tables"))
    assert len(items(opened(store / "tables").part(1, 2))) == 2


@pytest.mark.parametrize("sizes", [True, False])
def test_from_a_server_that_sends_only_whole_files_they_are_read_whole(
    http: Serving, store: Path, monkeypatch: pytest.MonkeyPatch, sizes: bool
) -> None:
    monkeypatch.setattr(remote, "_BLOCK_BYTES", 500)
    http.ranges, http.sizes = False, sizes
    for name in ("a.jsonl.gz", "b.parquet", "c.jsonl", "code.tar.gz"):
        assert texts(f"{http.address}/{name}") == texts(str(store / name))
    inside = texts(f"tar://g0::{http.address}/code.tar.gz")
    assert [content for *_, content in inside] == [content for *_, content in texts(f"file://{store}/g0")]


def test_what_is_busy_at_first_is_asked_again_and_what_is_forbidden_is_not(http: Serving, store: Path) -> None:
    http.refusals = [503, 503, 429, 429]  # HEAD and GET each
    assert len(items(opened(f"{http.address}/c.jsonl"))) == 5
    for status, left in ((403, 98), (404, 98), (503, 92)):
        http.refusals = [status] * 100
        with pytest.raises(ReadError, match=f"c.jsonl could not be reached: .*{status}"):
            opened(f"{http.address}/c.jsonl")
        assert len(http.refusals) == left
    http.refusals = []
    source = opened(f"{http.address}/code.tar.gz")
    http.breaks = 2
    assert len(items(opened(f"{http.address}/code.tar.gz"))) == len(items(source)) == 9


def test_an_error_of_a_source_is_not_one_of_the_place_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import requests

    def fail(*arguments: object, **named: object) -> None:
        raise requests.ConnectionError("no network")

    monkeypatch.setattr(requests, "get", fail)
    for address in ("github://me:x@main/", "http://127.0.0.1:9/a.parquet"):
        with pytest.raises(ReadError, match=f"^{address} could not be reached: Connection"):
            prepare(tmp_path / "out", options(address))


@pytest.mark.parametrize("name", ["a.jsonl.gz", "b.parquet"])
def test_what_breaks_off_is_read_again_and_too_often_is_an_error(http: Serving, store: Path, name: str) -> None:
    source = opened(f"{http.address}/{name}")
    http.breaks = 2
    assert [item.content for item in items(source)] == [item.content for item in items(opened(store / name))]
    assert http.breaks == 0
    http.breaks = 100
    with pytest.raises(ReadError, match="same command again to resume"):
        items(source)


def test_a_preparation_that_broke_off_goes_on_to_the_same_bytes(
    http: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = options(f"{http.address}/a.jsonl.gz", f"{http.address}/b.parquet")
    prepare(tmp_path / "one", given)
    http.breaks = 100
    monkeypatch.setattr("trainwright_lm.corpus.pieces.PIECE_BYTES", 2000)
    with pytest.raises(ReadError, match="could not be read"):
        prepare(tmp_path / "two", given)
    http.breaks = 0
    monkeypatch.undo()
    prepare(tmp_path / "two", given)
    assert content(tmp_path / "one") == content(tmp_path / "two")
    read = sum(xxhash.xxh3_64_intdigest(row["content"].encode()) for row in ROWS) % 2**64
    assert read_manifest(tmp_path / "one")["funnel"]["checksum"] == f"{read:016x}"


def test_addresses_that_lead_nowhere_say_why(http: Serving, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="lm-remote"):
        opened("nowhere://a/b.parquet")
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(UsageError, match="lm-remote"):
        opened("gs://bucket/b.parquet")
    with pytest.raises(ReadError, match=r"none\.parquet could not be reached"):
        opened(f"{http.address}/none.parquet")
    with pytest.raises(ReadError, match="has no files that end in"):
        opened(f"{http.address}/g0/*.txt")
    with pytest.raises(UsageError, match="OWNER:NAME"):
        opened("github://me/x")
    with pytest.raises(ReadError, match="could not be reached: FileNotFoundError"):
        opened("zip://none.zip")
    whole = (store / "code.tar.gz").read_bytes()
    write(store, {"cut.tar.gz": whole[: len(whole) // 2], "no.zip": "none", "no.tgz": "none", "fake.parquet": "none"})
    for name in ("cut.tar.gz", "no.zip", "no.tgz"):
        with pytest.raises(ReadError, match=f"{http.address}/{name} must be a whole archive"):
            opened(f"{http.address}/{name}")
    with pytest.raises(ReadError, match=f"{http.address}/fake.parquet must be a parquet file"):
        items(opened(f"{http.address}/fake.parquet"))


def test_tables_and_archives_in_s3(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from moto.server import ThreadedMotoServer  # seconds to import

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        port = server.get_host_and_port()[1]
        for name, value in {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "us-east-1",
                            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        system = fsspec.filesystem("s3", skip_instance_cache=True)
        system.mkdir("bucket")
        for file in store.rglob("*.*"):
            system.put(str(file), f"bucket/all/{file.relative_to(store)}")
        for name in ("a.jsonl.gz", "b.parquet"):
            assert texts(f"s3://bucket/all/{name}") == texts(str(store / name))
        assert texts("s3://bucket/all/code.tar.gz") == texts(str(store))
        assert len(texts("s3://bucket/all/*.parquet")) == 30 and len(texts("s3://bucket/all")) == 64
        before = opened("s3://bucket/all/a.jsonl.gz").mark
        system.pipe("bucket/all/a.jsonl.gz", gzip.compress(json_lines(ROWS[:19])))
        fsspec.filesystem("s3").invalidate_cache()
        assert opened("s3://bucket/all/a.jsonl.gz").mark != before
        prepare(tmp_path / "data", options("s3://bucket/all"))
    finally:
        server.stop()
