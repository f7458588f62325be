"""The memory that a training needs is told from its weights and its optimizer's class, and so is what time ran out for."""

import pytest

from trainwright.core import Stage, StageRun, Status
from trainwright.stages.describe import describe
from trainwright.stages.setup import SetupFacts, planned_memory
from trainwright.walk.closing import no_step, unreached

MB = 2**20


@pytest.mark.parametrize(
    ("optimizer", "momentum", "state"),
    [
        ("AdamW", False, 2),
        ("adamw_torch_fused", False, 2),
        ("SGD", False, 0),
        ("SGD", True, 1),
        ("RMSprop", False, 1),
        ("adamw_8bit", False, None),
        ("adamw_torch_4bit", False, None),
        ("adamw_anyprecision", False, None),
        ("rmsprop_bnb", False, 1),
        ("Adafactor", False, None),
        ("paged_adamw_32bit", False, None),
        ("galore_adamw", False, None),
        ("TheirOwn", False, None),
    ],
)
def test_an_optimizer_keeps_so_many_copies(optimizer: str, momentum: bool, state: int | None) -> None:
    held = planned_memory(100, 80, optimizer, momentum=momentum)
    assert held.state_known is (state is not None)
    assert held.state_bytes == 80 * (state or 0)


def test_the_setup_row_says_it_of_a_large_model_only() -> None:
    large = SetupFacts(model_class="Net", planned_memory=planned_memory(500 * MB, 500 * MB, "AdamW"))
    told = describe(large)
    assert "needs 2,000 MB besides the batch: weights 500 MB, gradients 500 MB, optimizer 1,000 MB" in told
    unknown = describe(SetupFacts(model_class="Net", planned_memory=planned_memory(500 * MB, 500 * MB, "Adafactor")))
    assert "needs more than 1,000 MB" in unknown and "and the optimizer's state" in unknown
    assert "needs" not in describe(SetupFacts(model_class="Net", planned_memory=planned_memory(MB, MB, "AdamW")))


def stage(one: Stage, seconds: float, why: str = "") -> StageRun:
    return StageRun(stage=one, status=Status.SKIPPED if why else Status.PASSED, seconds=seconds, why=why)


def test_what_time_ran_out_for_is_said() -> None:
    late = "the budget of 60 s ran out"
    runs = [stage(Stage.SETUP, 9.0), stage(Stage.FORWARD, 33.0), stage(Stage.OPTIMIZER, 0.0, late)]
    said = unreached([*runs, stage(Stage.BASELINE, 0.0, late)], 60.0, 124_439_808)
    assert "did not reach optimizer to baseline: the forward stage alone took 33 s" in said
    assert "with 124 million parameters" in said and "--budget 240" in said
    assert unreached(runs[:2], 60.0, 124_439_808) == ""
    assert "The model has 124 million parameters." in no_step(60.0, 124_439_808)
    assert "parameters" not in no_step(60.0, 1_000)
