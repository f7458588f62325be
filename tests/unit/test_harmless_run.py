"""Where the kernel isolates no process: what is written is redirected as Python would write it, and the rest is refused."""
# All ways to a file are tried.
# ruff: noqa: PTH103, PTH104, PTH105, PTH106, PTH107, PTH110, PTH123, PTH208, PTH211

import bz2
import io
import logging
import os
import posix
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from trainwright.rehearsal.sandbox import forbid_writes
from trainwright.seams.isolation.harmless_run import aside
from trainwright.seams.isolation.refused import RefusedAct, is_refusal
from trainwright.seams.isolation.tally import KeptAway


def fill(folder: Path) -> Path:
    (folder / "dir").mkdir(parents=True)
    for name in ("old.txt", "keep.txt", "dir/one"):
        (folder / name).write_text("was")
    return folder


def held(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() if p.is_file() else "" for p in sorted(folder.rglob("*"))}


def append(name: str, mode: str = "a") -> Any:
    with open(name, mode, encoding="utf-8") as file:
        return file.write("more")


def make_new(name: str) -> bytes:
    number = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.write(number, b"1")
    os.close(number)
    return Path(name).read_bytes()


def replace_atomically() -> str:
    with tempfile.NamedTemporaryFile("w", dir=".", delete=False) as file:
        file.write("new")
    Path(file.name).replace("atomic")
    return Path("atomic").read_text()


def pack() -> Any:
    with zipfile.ZipFile("z.zip", "w") as packed:
        packed.writestr("a", "b")
    with tarfile.open("t.tar", "w") as archive:
        archive.add("keep.txt")
    with bz2.open("b.bz2", "wb") as file:
        file.write(b"1")
    with tarfile.open("t.tar") as archive:
        return zipfile.ZipFile("z.zip").read("a"), archive.getnames(), bz2.open("b.bz2").read()


def save() -> Any:
    torch.save({"a": torch.ones(2)}, "m.pt")
    base = sqlite3.connect("base.db")
    base.execute("create table a (b)")
    base.close()
    return torch.load("m.pt")["a"].tolist(), Path("base.db").exists()


STEPS: list[Callable[[], Any]] = [
    lambda: Path("new").mkdir(), lambda: Path("new").mkdir(), lambda: os.makedirs("a/b/c", exist_ok=True),
    lambda: append("a/b/c/x"), lambda: Path("a/b/c/x").read_text(), lambda: append("missing/x"),
    lambda: append("old.txt"), lambda: Path("old.txt").read_text(), lambda: sorted(os.listdir()),
    lambda: sorted(str(p) for p in Path().rglob("*")), lambda: os.rename("a/b", "moved"), lambda: os.listdir("moved/c"),
    lambda: os.rename("dir", "dir2"), lambda: os.listdir("dir2"), lambda: Path("dir/one").exists(), lambda: append("dir/one"),
    lambda: shutil.rmtree("dir2"), lambda: os.makedirs("dir2"), lambda: os.listdir("dir2"), lambda: os.rmdir("moved"),
    lambda: os.rmdir("dir2"), lambda: os.remove("none"), lambda: os.remove("new"), lambda: Path("old.txt").unlink(),
    lambda: os.access("old.txt", os.R_OK), lambda: Path("old.txt").read_text(), lambda: append("old.txt", "x"),
    lambda: append("old.txt", "x"), lambda: shutil.copytree("moved", "tree") and os.listdir("tree"),
    lambda: shutil.move("keep.txt", "here.txt"), lambda: os.replace("here.txt", "old.txt"), lambda: Path("old.txt").read_text(),
    replace_atomically, lambda: append("keep.txt", "w"), pack, save, lambda: os.symlink("old.txt", "latest"),
    lambda: Path("latest").read_text(), lambda: os.chdir("moved"), lambda: Path("c/x").read_text(), lambda: Path.cwd().name,
    lambda: Path("../old.txt").read_text(), lambda: os.chdir(".."), lambda: Path("touched").touch(),
    lambda: Path("touched").touch(exist_ok=False), lambda: os.truncate("old.txt", 2), lambda: Path("old.txt").read_text(),
    lambda: Path("old.txt").chmod(0o600), lambda: sorted(e.name for e in os.scandir() if e.is_file()),
    lambda: os.listdir("nothing"), lambda: shutil.rmtree("nothing"), lambda: shutil.rmtree("nothing", ignore_errors=True),
    lambda: Path(os.fsdecode(b"bytes")).write_bytes(b"1"), lambda: os.remove(b"bytes"), lambda: os.path.exists(b"bytes"),
    lambda: make_new("low"), lambda: make_new("low"),
]  # fmt: skip


def told() -> Iterator[Any]:
    for step in STEPS:
        try:
            yield step()
        except OSError as error:
            yield type(error), error.errno


def test_files_are_as_without_it_and_the_user_s_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, redirected, tally = fill(tmp_path / "plain"), fill(tmp_path / "redirected"), KeptAway()
    before = held(redirected)
    monkeypatch.chdir(plain)
    expected = [str(one).replace("plain", "redirected") for one in told()]
    os.chdir(redirected)
    with aside(tally, tmp_path / "written"):
        assert [str(one) for one in told()] == expected
        os.chdir(tmp_path)
    assert held(redirected) == before
    assert not tally.refused and len(tally.files) > 10


PAST: list[Callable[[Path], Any]] = [
    lambda path: posix.open(str(path), os.O_CREAT | os.O_WRONLY),
    lambda path: io.FileIO(str(path), "w"),
    lambda path: posix.mkdir(str(path)),
    lambda path: posix.unlink(str(path.with_name("keep.txt"))),
    lambda path: os.open(path.name, os.O_CREAT | os.O_WRONLY, dir_fd=os.open(path.parent, os.O_RDONLY)),
    lambda path: subprocess.run(["touch", path], check=True),
    lambda path: os.system(f"touch {path}"),
    lambda path: os.execv("/bin/touch", ["touch", str(path)]),
]


@pytest.mark.parametrize("past", PAST)
def test_what_passes_by_what_is_redirected_is_refused(past: Callable[[Path], Any], tmp_path: Path) -> None:
    folder, tally = fill(tmp_path / "here"), KeptAway()
    before = held(folder)
    with aside(tally, tmp_path / "written"), pytest.raises(RefusedAct) as raised:
        past(folder / "new")
    assert held(folder) == before
    assert is_refusal(raised.value, tally) and "was refused" in " ".join(tally.remark())


def test_commands_that_ask_are_run(tmp_path: Path) -> None:
    with aside(tally := KeptAway(), tmp_path / "written"):
        assert subprocess.check_output(["uname", "-s"]) and not subprocess.call(
            "ls /", shell=True, stdout=subprocess.PIPE
        )
    assert not tally.refused


def test_other_machines_are_out_of_reach_once_training_has_begun(tmp_path: Path) -> None:
    with aside(tally := KeptAway(), tmp_path / "written") as guard:
        guard.cut_network()
        with pytest.raises(OSError, match="another machine"):
            urllib.request.urlopen("http://example.org", timeout=5)
    assert tally.requests == 1


def test_a_file_that_was_redirected_and_is_missed_is_no_fault_of_the_script(tmp_path: Path) -> None:
    tally = KeptAway(files={str(tmp_path / "model.bin")})
    assert is_refusal(FileNotFoundError(2, "No such file", "model.bin"), tally)
    assert is_refusal(RuntimeError("unable to open database file"), tally)
    assert not is_refusal(FileNotFoundError(2, "No such file", "data.csv"), tally)


def test_what_a_process_of_the_script_s_writes_is_found_by_the_others(tmp_path: Path) -> None:
    with aside(KeptAway(), tmp_path / "written"):
        if (child := os.fork()) == 0:
            (tmp_path / "one.tmp").write_text("one")
            (tmp_path / "one.tmp").replace(tmp_path / "one")
            os._exit(0)
        os.waitpid(child, 0)
        assert (tmp_path / "one").read_text() == "one"
        assert sorted(p.name for p in tmp_path.iterdir()) == ["one", "written"]
    assert [p.name for p in tmp_path.iterdir()] == ["written"]


def test_arrow_reads_what_was_redirected(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    dataset = pytest.importorskip("pyarrow.dataset")
    table = arrow.table({"a": [1, 2, 3]})
    with aside(tally := KeptAway(), tmp_path / "written"):
        parquet.write_table(table, tmp_path / "one")
        assert parquet.read_table(tmp_path / "one") == table
        with open(tmp_path / "two", "wb") as file, arrow.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
        assert arrow.ipc.open_stream(arrow.memory_map(str(tmp_path / "two"))).read_all() == table
        with pytest.raises(RefusedAct):
            dataset.write_dataset(table, tmp_path / "three", format="parquet")
    assert [p.name for p in tmp_path.iterdir()] == ["written"] and tally.refused


def interrupt(folder: Path) -> None:
    with aside(KeptAway(), folder / "written"):
        (folder / "new").mkdir()
        raise KeyboardInterrupt


def test_all_is_as_it_was_after_an_exception(tmp_path: Path) -> None:
    patched = (open, os.stat, os.mkdir, logging.Logger.callHandlers, tempfile.tempdir, torch.save)
    with pytest.raises(KeyboardInterrupt):
        interrupt(tmp_path)
    assert patched == (open, os.stat, os.mkdir, logging.Logger.callHandlers, tempfile.tempdir, torch.save)
    assert not (tmp_path / "new").exists()
    (tmp_path / "new").mkdir()
    assert (tmp_path / "new").exists()


LOCKED = """
import os, sys
from pathlib import Path
from trainwright.rehearsal.sandbox import forbid_writes
assert forbid_writes([Path(sys.argv[1])])
Path(sys.argv[1], "kept").write_text("kept")
print(os.system(f"echo past > {sys.argv[2]}/past"))
try:
    Path(sys.argv[2], "past").write_text("past")
except PermissionError:
    print("refused")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Landlock is of Linux")
def test_the_kernel_may_forbid_what_no_python_hears(tmp_path: Path) -> None:
    for name in ("kept", "other"):
        (tmp_path / name).mkdir()
    words = [sys.executable, "-c", LOCKED, str(tmp_path / "kept"), str(tmp_path / "other")]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    if "AssertionError" in ended.stderr:
        pytest.skip("this kernel has no Landlock")
    assert "refused" in ended.stdout and not list((tmp_path / "other").iterdir()), ended.stderr
    assert (tmp_path / "kept" / "kept").exists()


def test_elsewhere_nothing_is_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not forbid_writes([])
