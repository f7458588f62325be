"""All tests, those of lm/ and exam/ too, run on one thread, in process, with errors of our own let out."""

import gc
import json
import os
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from trainwright.timing import Timing, count_time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
ROOT = Path(__file__).parent
TESTS = ROOT / "tests"
sys.path[:0] = [str(TESTS / "helpers"), str(TESTS), str(ROOT)]
from remembered import Remembered  # noqa: E402

# Time is the processor's, and passes a third as fast, so that a slow or busy machine measures what another does; a test that
# waits for something has the mark `wall_clock`.
SLOWNESS, PATIENCE = 3.0, 10.0
# How a report begins as JSON.
REPORT = b'{\n  "schema": 1,\n  "script"'


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item):
    """What a check leaves in a process (frameworks, caches) is not gone through again by each collection that follows."""
    if item.path.parent.name == "checks":
        gc.collect()
        gc.freeze()


@pytest.fixture(autouse=True)
def _timing(request):
    if request.node.get_closest_marker("wall_clock"):
        yield
        return
    before = count_time(Timing(now=lambda: time.process_time() / SLOWNESS, patience=PATIENCE))
    yield
    count_time(before)


# A busy machine is no fault of what is tested, and a run says the same as the one before it.
settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("here")


@pytest.fixture(autouse=True)
def _reports_fit(request):
    """Each report that a test leaves in its folder, as JSON, fits the schema."""
    yield
    folder = request.node.funcargs.get("tmp_path")
    for file in [*folder.glob("*.json"), *folder.glob("*/*.json")] if folder is not None else ():
        with file.open("rb") as opened:
            is_report = opened.read(len(REPORT)) == REPORT
        if is_report:
            from report_schema import check_data

            check_data(json.loads(file.read_bytes()))


def pytest_addoption(parser):
    parser.addoption("--rewrite", action="store_true", help="store the rendered reports in tests/golden anew")
    parser.addoption(
        "--remember", type=Path, help="a file of the tests that passed; on the same content they are not run"
    )


def pytest_configure(config):
    if config.option.remember:
        config.pluginmanager.register(Remembered(config.option.remember))


def pytest_collection_modifyitems(items):
    """A script with the comment `# slow` is left to `make test-all`."""
    for item in items:
        script = item.callspec.params.get("script") if hasattr(item, "callspec") else None
        path = TESTS / script if isinstance(script, str | Path) else None
        if path is not None and path.is_file() and "# slow" in path.read_text(encoding="utf-8"):
            item.add_marker("slow")
