"""Who holds a GPU's memory, as the driver lists it (a stand-in: no test needs a GPU), and what is said of it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pynvml
import pytest

from gpu_driver import functions
from trainwright.adapters.keras.words import WORDS
from trainwright.core import Severity
from trainwright.rules.forward.out_of_memory import out_of_memory
from trainwright.rules.setup.processes import accelerator_held_by_others
from trainwright.seams.devices.memory_owners import accelerators, lacks_gpu_memory
from trainwright.stages import ForwardFacts, MemoryFacts, SetupFacts

GIB = 2**30
ME, PARENT, GONE = os.getpid(), os.getppid(), 2**22 + 1  # no process has a number above the system's most


@pytest.fixture
def driver(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def says(*processes, **more):
        for name, function in functions(*processes, **more).items():
            assert hasattr(pynvml, name)
            monkeypatch.setattr(pynvml, name, function)

    return says


@pytest.fixture
def child() -> Iterator[int]:
    """The number of a process that is neither this one nor its parent, which may be the system's first."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process.pid
        process.kill()


def test_other_processes_on_the_gpus_in_use_are_listed(driver, monkeypatch, child):
    driver((0, ME, 500, "python"), (0, child, 10240, "/opt/a, b/python3"), (0, PARENT, 20480, "jupyter"),
           (0, GONE, 4096, None), (0, PARENT, None, "jupyter"), (1, PARENT, 70000, "jupyter"))  # fmt: skip
    (gpu,) = accelerators("cuda")
    assert (gpu.index, gpu.name, gpu.total_bytes) == (0, "NVIDIA H100 80GB HBM3", 80 * GIB)
    assert [(p.pid, p.name, p.held_bytes) for p in gpu.others] == [
        (PARENT, "jupyter", 20 * GIB),
        (child, "python3", 10 * GIB),
    ]
    # Where the driver does not list us: those we may use.
    driver((1, PARENT, 70000, None))
    assert [[p.name for p in g.others] for g in accelerators("cuda")] == [[], ["process"]]
    for chosen, visible in (("1", [1]), ("GPU-a", [0]), ("", []), ("-1", [])):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
        assert [g.index for g in accelerators("cuda")] == visible


def test_a_driver_that_is_absent_fails_or_hangs_says_nothing(driver, monkeypatch):
    def absent():
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    driver((0, PARENT, 70000, "python"), error=pynvml.NVML_ERROR_GPU_IS_LOST)
    assert accelerators("cuda") == ()
    driver((0, PARENT, 70000, "python"), seconds=20)
    assert accelerators("cpu") == () and accelerators("cuda") == ()
    monkeypatch.setattr(pynvml, "nvmlInit", absent)
    assert accelerators("cuda") == ()
    monkeypatch.setitem(sys.modules, "pynvml", None)  # not installed
    assert accelerators("cuda") == ()


def said(held_mib, driver, **more):
    driver((0, ME, 500, "python"), (0, PARENT, held_mib, "python3"))
    setup = SetupFacts(device="cuda", accelerators=accelerators("cuda"), **more)
    return setup, list(accelerator_held_by_others.function(setup))


def test_what_others_hold_is_noted_and_named_where_the_memory_ends(driver):
    assert not said(40000, driver)[1]
    setup, (finding,) = said(61440, driver, words=WORDS)
    assert finding.severity == Severity.NOTE
    assert "uses 60.0 of the 80.0 GiB of GPU 0" in finding.message
    assert f"python3 (pid {PARENT}) with 60.0 GiB" in finding.message
    assert f"end process {PARENT} (python3)" in finding.fix.does and "memory_growth" not in finding.fix.does
    memory = MemoryFacts(device="cuda", total_bytes=80 * GIB, weights_bytes=GIB, gradients_bytes=GIB,
                         optimizer_bytes=GIB, activations_bytes=GIB, batch_rows=64, largest_rows=20)  # fmt: skip
    (ended,) = out_of_memory.function(ForwardFacts(memory=memory), setup)
    assert "(batch_size=16) and pass gradient_accumulation_steps=4 to the optimizer" in ended.fix.does
    assert f"process {PARENT} (python3) holds 64.42 GB of GPU 0" in ended.fix.does


def test_tensorflow_without_memory_growth_is_noted_beside_any_other_process(driver):
    _, (finding,) = said(1024, driver, takes_all_memory=True, words=WORDS)
    assert finding.severity == Severity.NOTE and "memory growth is not set" in finding.message
    assert "set_memory_growth(gpu, True)" in finding.fix.does


def test_the_words_of_three_frameworks_are_known_and_the_cpu_s_are_not_the_gpu_s():
    assert lacks_gpu_memory("CUDA out of memory. Tried to allocate 2.00 GiB.")
    assert lacks_gpu_memory("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 16384 bytes.")
    assert lacks_gpu_memory("OOM when allocating tensor on /device:GPU:0 by allocator GPU_0_bfc")
    assert not lacks_gpu_memory("OOM when allocating tensor on /device:CPU:0 by allocator cpu")
    assert not lacks_gpu_memory("mat1 and mat2 shapes cannot be multiplied")


@pytest.mark.keras
def test_memory_growth_and_limits_are_read_from_tensorflow(monkeypatch):
    keras = pytest.importorskip("keras")
    if keras.config.backend() != "tensorflow":
        pytest.skip("TensorFlow is not the backend")
    from trainwright.adapters.keras import backend

    state = SimpleNamespace(grows=False, limit=None)
    config = SimpleNamespace(
        get_visible_devices=lambda kind: ["gpu"],
        get_logical_device_configuration=lambda gpu: [SimpleNamespace(memory_limit=state.limit)],
        experimental=SimpleNamespace(get_memory_growth=lambda gpu: state.grows),
    )
    monkeypatch.delenv("TF_FORCE_GPU_ALLOW_GROWTH", raising=False)
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(config=config))
    assert backend.takes_all_memory()
    state.limit = 4096
    assert not backend.takes_all_memory()
    state.grows, state.limit = True, None
    assert not backend.takes_all_memory()
    state.grows = False
    monkeypatch.setenv("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    assert not backend.takes_all_memory()
