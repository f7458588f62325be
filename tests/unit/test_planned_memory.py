"""The memory that a training needs is told from its weights and its optimizer's class."""

import pytest

from trainwright.stages import SetupFacts
from trainwright.stages.describe import describe
from trainwright.stages.setup import planned_memory

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
