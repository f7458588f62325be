"""Arrow's own ways to a file, written in C++: inside `away` they see what was redirected, and write nothing for real."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainwright.seams.isolation.harmless_run import NotForALook, aside
from trainwright.seams.isolation.silence import away
from trainwright.seams.isolation.tally import Tally
from walking import loud, said, walk_apart

pa = pytest.importorskip("pyarrow")
csv, dataset, feather, fs, json, orc, parquet = (
    pytest.importorskip(f"pyarrow.{name}") for name in ("csv", "dataset", "feather", "fs", "json", "orc", "parquet")
)
# Bound before anything is replaced, as a script's module would have it.
LOCAL = fs.LocalFileSystem()
TABLE = pa.table({"a": [1, 2, 3]})


def _by_os_file(path: Any) -> Any:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, TABLE.schema) as writer:
        writer.write_table(TABLE)
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


def _by_streams(path: Any) -> Any:
    with pa.output_stream(path) as file:
        file.write(b"one")
    with pa.OSFile(str(path), mode="ab") as file:
        file.write(b" two")
    with pa.input_stream(path) as file:
        assert file.read() == path.read_bytes() == b"one two"
    assert isinstance(pa.OSFile(str(path)), pa.OSFile)
    return TABLE


def _by_map(path: Any) -> Any:
    with pa.create_memory_map(str(path), 3) as file:
        file.write(b"one")
    with pa.memory_map(str(path), "r+") as file:
        file.write(b"two")
    with pa.MemoryMappedFile.create(f"{path}2", 2):
        assert sorted(p.name for p in path.parent.iterdir()) == ["new", "new2", "old"]
    assert path.read_bytes() == b"two"
    return TABLE


def _by_ipc(path: Any) -> Any:
    with pa.ipc.new_stream(str(path), TABLE.schema) as writer:
        writer.write_table(TABLE)
    return pa.ipc.open_stream(str(path)).read_all()


def _by_csv(path: Any) -> Any:
    csv.write_csv(TABLE, path)
    assert isinstance(csv.CSVWriter(f"{path}2", TABLE.schema), csv.CSVWriter)
    assert csv.open_csv(path).read_all() == TABLE
    return csv.read_csv(path)


def _by_json(path: Any) -> Any:
    path.write_text("\n".join(f'{{"a": {i}}}' for i in (1, 2, 3)))
    return json.read_json(path)


def _by_feather(path: Any) -> Any:
    feather.write_feather(TABLE, str(path))
    return feather.read_table(str(path), memory_map=True)


def _by_orc(path: Any) -> Any:
    orc.write_table(TABLE, str(path))
    assert orc.ORCFile(str(path)).read() == TABLE
    return orc.read_table(str(path))


def _by_parquet(path: Any) -> Any:
    parquet.write_table(TABLE, path)
    assert parquet.read_schema(path) == TABLE.schema
    assert parquet.read_metadata(path).num_rows == 3
    assert parquet.ParquetFile(path).read() == TABLE
    assert parquet.read_table([str(path)]) == TABLE
    collected: list[Any] = []
    parquet.write_table(TABLE, f"{path}3", metadata_collector=collected)
    collected[0].write_metadata_file(f"{path}4")
    return parquet.read_table(path, memory_map=True)


def _by_parquet_and_a_file_system(path: Any) -> Any:
    parquet.write_table(TABLE, str(path), filesystem=LOCAL)
    return parquet.read_table(path.name, filesystem=fs.SubTreeFileSystem(str(path.parent), LOCAL))


def _by_folder(path: Any) -> Any:
    parquet.write_to_dataset(TABLE.append_column("b", [["x", "y", "x"]]), path, partition_cols=["b"])
    dataset.write_dataset(TABLE, path / "again", format="parquet")
    assert dataset.dataset(path / "again").to_table() == TABLE
    shutil.rmtree(path / "again")
    return parquet.read_table(path).sort_by("a").select(["a"])


def _by_file_system(path: Any) -> Any:
    with LOCAL.open_output_stream(str(path)) as file:
        file.write(b"one")
    with LOCAL.open_append_stream(str(path)) as file:
        file.write(b" two")
    with LOCAL.open_input_file(str(path)) as file:
        assert file.read() == b"one two"
    LOCAL.copy_file(str(path), f"{path}2")
    LOCAL.move(f"{path}2", f"{path}3")
    LOCAL.create_dir(f"{path}4/deep")
    LOCAL.delete_file(str(path))
    LOCAL.delete_file(str(path.parent / "old" / "kept"))
    assert LOCAL.get_file_info(str(path)).type == fs.FileType.NotFound
    assert LOCAL.get_file_info(f"{path}3").size == 7
    found = LOCAL.get_file_info(fs.FileSelector(str(path.parent), recursive=True))
    assert sorted(os.path.relpath(one.path, path.parent) for one in found) == ["new3", "new4", "new4/deep", "old"]
    LOCAL.delete_dir(f"{path}4")
    assert not Path(f"{path}4").exists()
    fs.copy_files(f"{path}3", f"{path}5")
    assert Path(f"{path}5").read_bytes() == b"one two"
    return TABLE


WAYS = {name: value for name, value in dict(globals()).items() if name.startswith("_by_")}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.filterwarnings("ignore:.*eather")
def test_what_arrow_writes_is_read_back_and_nothing_is_left(way: Callable[[Path], Any], tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "kept").write_text("kept")
    with away(Tally()):
        assert way(tmp_path / "new") == TABLE
    assert [str(p.relative_to(tmp_path)) for p in sorted(tmp_path.rglob("*"))] == ["old", "old/kept"]
    assert way(tmp_path / "new") == TABLE
    assert len(list(tmp_path.iterdir())) > 1, "afterwards it writes for real"


def test_a_folder_that_a_run_writes_once_can_be_written_several_times(tmp_path: Path) -> None:
    with away(Tally()):
        for _ in range(2):
            dataset.write_dataset(TABLE, tmp_path / "new", format="parquet")
    dataset.write_dataset(TABLE, tmp_path / "new", format="parquet")
    with pytest.raises(pa.ArrowInvalid):
        dataset.write_dataset(TABLE, tmp_path / "new", format="parquet")


@pytest.mark.parametrize("form", ["parquet", "csv", "feather"])
def test_a_folder_of_files_is_read_with_what_was_added_and_without_what_was_deleted(form: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        dataset.write_dataset(
            TABLE, tmp_path, format=form, basename_template=name + "{i}", existing_data_behavior="overwrite_or_ignore"
        )
    with away(Tally()):
        dataset.write_dataset(
            TABLE, tmp_path, format=form, basename_template="three{i}", existing_data_behavior="overwrite_or_ignore"
        )
        assert dataset.dataset(tmp_path, format=form).count_rows() == 9
        (tmp_path / "one0").unlink()
        (tmp_path / "two0").replace(tmp_path / "two1")
        found = dataset.dataset(str(tmp_path), format=form)
        assert sorted(Path(f).name for f in found.files) == ["three0", "two1"]
        assert found.to_table().num_rows == 6
        with pytest.raises(FileNotFoundError):
            pa.memory_map(str(tmp_path / "one0"))
    assert dataset.dataset(str(tmp_path), format=form).count_rows() == 6


def test_what_a_process_of_the_script_s_writes_is_found_by_the_others(tmp_path: Path) -> None:
    """`datasets.map(num_proc=2)`: the workers write parts, which the script and a managing process read by their names."""
    with away(Tally()):
        for name in ("one", "two"):
            if (child := os.fork()) == 0:
                feather.write_feather(TABLE, str(tmp_path / f"{name}.tmp"))
                (tmp_path / f"{name}.tmp").replace(tmp_path / name)
                os._exit(0)
            os.waitpid(child, 0)
        assert sorted(p.name for p in tmp_path.iterdir()) == ["one", "two"]
        assert feather.read_table(str(tmp_path / "two")) == TABLE
        (tmp_path / "one").unlink()
        assert not (tmp_path / "one").exists()
        with pytest.raises(FileNotFoundError):
            (tmp_path / "none").iterdir().__next__()
    assert not list(tmp_path.iterdir())


def test_an_evaluation_that_maps_in_several_processes_is_walked_in_silence(tmp_path: Path) -> None:
    text = (Path(__file__).parents[1] / "healthy" / "loops" / "files_by_arrow.py").read_text("utf-8")
    assert text.count("with_indices=True)") == 1
    (tmp_path / "train.py").write_text(text.replace("with_indices=True)", "with_indices=True, num_proc=2)"))
    report = walk_apart(tmp_path / "train.py")
    assert not loud(report) and not report.faulty and report.failure is None, said(report)


def test_a_worker_that_ends_does_not_walk_on() -> None:
    """Inside `aside` the script cannot end the check, but a process that it started ends itself."""
    with aside():
        if (child := os.fork()) == 0:
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        with pytest.raises(NotForALook):
            os._exit(0)


LATE = """
import sys
from trainwright.seams.isolation.silence import away
from trainwright.seams.isolation.tally import Tally

def written(folder):
    table = pa.table({"a": [1]})
    pq.write_table(table, folder + "/one")
    feather.write_feather(table, folder + "/two")
    with pa.OSFile(folder + "/three", "w") as file:
        file.write(b"three")
    assert pq.read_table(folder + "/one") == feather.read_table(folder + "/two") == table
    return pa.memory_map(folder + "/three").read()

assert "pyarrow" not in sys.modules
with away(Tally()):
    import pyarrow as pa
    from pyarrow import feather, parquet as pq
    assert written(sys.argv[1]) == b"three"
written(sys.argv[2])
with away(Tally()):
    assert written(sys.argv[1]) == b"three"
"""


def test_arrow_may_be_imported_while_files_are_redirected(tmp_path: Path) -> None:
    inside, after = tmp_path / "inside", tmp_path / "after"
    inside.mkdir()
    after.mkdir()
    subprocess.run([sys.executable, "-c", LATE, str(inside), str(after)], check=True)
    assert not list(inside.iterdir()) and len(list(after.iterdir())) == 3
