"""Two processes train what one does: the same gradients and weights, by DDP and by FSDP2, written by the first alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from lm_material import small_recipe, write_data
from lm_two import FINE, TRAININGS, WEIGHTED, keeping_gradients
from trainwright.errors import UsageError
from trainwright_lm.runs.checkpoint import steps
from trainwright_lm.runs.folder import open_run
from trainwright_lm.tokens.prepared import open_data
from trainwright_lm.training import train as module
from trainwright_lm.training.plan import make_plan
from trainwright_lm.training.processes import Processes
from trainwright_lm.training.train import train

pytestmark = pytest.mark.xdist_group("processes")

TESTS = Path(__file__).parent
EXACT = [name for name in TRAININGS if not name.endswith("muon")]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def two(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the runs that two processes trained."""
    out = tmp_path_factory.mktemp("two")
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    environment |= {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    done = subprocess.run([sys.executable, *launcher, str(TESTS / "helpers" / "lm_two.py"), str(data), str(out)], env=environment,
                          cwd=TESTS, capture_output=True, text=True, timeout=300)  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return out


@pytest.fixture(scope="module")
def one(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the same runs, trained by one process."""
    out = tmp_path_factory.mktemp("one")
    take_update = module.take_update
    for name, more in (("plain", ()), ("weighted", WEIGHTED)):
        held: dict[str, torch.Tensor] = {}
        module.take_update = keeping_gradients(held)
        train(open_data(data), out / name, small_recipe(*FINE, *more))
        torch.save(held, out / f"{name}.gradients")
    module.take_update = take_update
    return out


def difference(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> float:
    assert a.keys() == b.keys() and a
    return max((a[k] - b[k]).abs().max().item() for k in a)


def records(run: Path) -> list[dict]:
    """Those of the training; how it computes comes before them."""
    first, *others = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    assert first["kind"] == "computing"
    return others


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_two_processes_have_the_gradients_and_weights_of_one(name: str, one: Path, two: Path) -> None:
    same = "weighted" if "weighted" in name else "plain"
    gradients = [torch.load(folder / f"{n}.gradients") for folder, n in ((one, same), (two, name))]
    assert difference(*gradients) < 1e-6
    weights = [open_run(folder / n, "last").model.state_dict() for folder, n in ((one, same), (two, name))]
    assert difference(*weights) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_two_processes_log_and_evaluate_as_one_and_only_the_first_writes(name: str, one: Path, two: Path) -> None:
    ours = [r for r in records(two / name) if r["kind"] != "samples"]
    theirs = records(one / ("weighted" if "weighted" in name else "plain"))
    assert [(r["kind"], r["update"]) for r in ours] == [(r["kind"], r["update"]) for r in theirs]
    assert [r["loss"] for r in ours] == pytest.approx([r["loss"] for r in theirs], abs=1e-6)


def test_the_first_process_completes_the_prompts_with_whole_weights(two: Path) -> None:
    ddp, fsdp = (records(two / name)[-1]["texts"] for name in ("ddp", "fsdp"))
    assert ddp == fsdp and len(ddp) == 3


def test_muon_is_the_same_in_shards(two: Path) -> None:
    """In fp32; in bf16 a last bit of a gradient becomes a hundredth of a step."""
    names = ("ddp-muon", "fsdp-muon", "ddp")
    ddp, fsdp, adamw = (open_run(two / name, "last").model.state_dict() for name in names)
    assert difference(ddp, fsdp) < 1e-5 < 0.02 < difference(ddp, adamw)


def test_a_signal_to_one_process_stops_both_and_the_other_layout_goes_on(one: Path, two: Path) -> None:
    assert 5 in steps(two / "half" / "checkpoints")
    weights = [open_run(folder, "last").model.state_dict() for folder in (one / "plain", two / "half")]
    assert difference(*weights) < 1e-6
    losses = [[r["loss"] for r in records(folder)] for folder in (one / "plain", two / "half")]
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)


def test_one_process_goes_on_where_two_ended(data: Path, two: Path, one: Path, tmp_path: Path) -> None:
    import shutil

    run = Path(shutil.copytree(two / "half", tmp_path / "run"))
    shutil.rmtree(run / "checkpoints" / "step-00000012")
    train(open_data(data), run, small_recipe(*FINE))
    weights = [open_run(folder, "last").model.state_dict() for folder in (one / "plain", run)]
    assert difference(*weights) < 1e-6


def test_windows_that_the_processes_cannot_share_evenly_are_refused(data: Path) -> None:
    with pytest.raises(UsageError, match="multiple of the processes; got 8 and 3"):
        make_plan(open_data(data).train, small_recipe(), Processes(count=3, device=torch.device("cpu")))


def test_processes_share_an_updates_windows_out_without_a_rest_or_a_repeat(data: Path) -> None:
    cpu = torch.device("cpu")
    plan = make_plan(open_data(data).train, small_recipe(), Processes(device=cpu))
    whole, _ = plan.share(3, Processes(device=cpu))
    shares = [plan.share(3, Processes(rank=r, count=4, device=cpu))[0] for r in range(4)]
    assert torch.equal(torch.cat(shares), whole)
