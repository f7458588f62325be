"""What a checked script overwrites or removes before its training is put back."""

import shutil
from pathlib import Path

import pytest

from trainwright.seams.isolation.earlier_files import EarlierFiles


def overwrite(folder: Path) -> None:
    (folder / "log.csv").open("w").close()


def append(folder: Path) -> None:
    with (folder / "log.csv").open("a") as file:
        file.write("more\n")


def remove(folder: Path) -> None:
    (folder / "log.csv").unlink()


def remove_tree(folder: Path) -> None:
    shutil.rmtree(folder)


def move(folder: Path) -> None:
    (folder / "log.csv").rename(folder / "old.csv")


def replace(folder: Path) -> None:
    (folder / "new.csv").write_text("new")
    (folder / "new.csv").replace(folder / "log.csv")


@pytest.mark.parametrize("change", [overwrite, append, remove, remove_tree, move, replace])
def test_an_earlier_file_is_as_it_was(tmp_path: Path, change) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "log.csv").write_text("epoch,loss\n1,0.5\n")
    with EarlierFiles():
        change(folder)
        assert not (folder / "log.csv").exists() or (folder / "log.csv").read_text() != "epoch,loss\n1,0.5\n"
    assert (folder / "log.csv").read_text() == "epoch,loss\n1,0.5\n"


def test_a_new_file_and_one_that_is_only_read_stay_as_they_are(tmp_path: Path) -> None:
    read = tmp_path / "data.csv"
    read.write_text("1\n")
    with EarlierFiles() as earlier:
        (tmp_path / "new.txt").write_text("new")
        assert read.read_text() == "1\n"
        assert not earlier._kept
    assert (tmp_path / "new.txt").read_text() == "new"


def test_nothing_is_kept_once_all_is_back(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("old")
    with EarlierFiles() as earlier:
        earlier.restore()
        (tmp_path / "report.json").write_text("new")
    assert (tmp_path / "report.json").read_text() == "new"


def test_a_file_written_beside_and_renamed_leaves_nothing_beside(tmp_path):
    """As every library writes that wants a file to be whole or absent."""
    (tmp_path / "old.json").write_text("old")
    with EarlierFiles():
        for name in ("old.json", "new.json"):
            part = tmp_path / f"{name}.part"
            part.write_text("written")
            part.replace(tmp_path / name)
        scratch = tmp_path / "scratch"
        scratch.write_text("for a moment")
        scratch.unlink()
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"old.json": "old", "new.json": "written"}
