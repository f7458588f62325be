"""A causal model that gets the labels of a masked one."""

import numpy as np
import pytest

from trainwright.core import Place, Role
from trainwright.probes.batches import measure_label_mask
from trainwright.rules.loss.tokens import wrong_head
from trainwright.stages import BatchFacts, ForwardFacts, LossFacts, SetupFacts

MASK = 2
PLACE = Place("train.py", 17)


def said(masked: float, labelled: float, forward: ForwardFacts, mask_id: int | None = MASK):
    tokens = np.random.default_rng(0).integers(5, 200, (8, 100))
    draw = np.random.default_rng(1).random((8, 100))
    labels = np.where(draw < labelled, tokens, -100)
    inputs = np.where(draw < labelled * masked, MASK, tokens)
    mask = measure_label_mask(inputs, labels, None, pad_id=None, eos_id=None, mask_id=mask_id)
    batch = BatchFacts(mask=mask, collator="DataCollatorForLanguageModeling")
    setup = SetupFacts(places={Role.COLLATOR: PLACE}, model_class="GPT2LMHeadModel")
    return list(wrong_head.function(LossFacts(), batch, setup, forward))


def test_masked_labels_of_a_causal_model_are_named_with_the_edit() -> None:
    (found,) = said(0.8, 0.15, ForwardFacts(causal=True, future_leak=0.0))
    assert found.where == PLACE and found.fix is not None
    assert [(e.name, e.value) for e in found.fix.edits] == [("mlm", "False")]


@pytest.mark.parametrize(("masked", "labelled", "forward", "mask_id"), [
    (0.8, 0.15, ForwardFacts(causal=True, future_leak=0.3), MASK),  # it sees what comes later
    (0.8, 0.15, ForwardFacts(causal=False, future_leak=0.0), MASK),
    (0.8, 0.15, ForwardFacts(causal=True, future_leak=None), MASK),  # not known
    (0.0, 0.15, ForwardFacts(causal=True, future_leak=0.0), MASK),  # answers only
    (0.8, 1.0, ForwardFacts(causal=True, future_leak=0.0), MASK),
    (0.8, 0.15, ForwardFacts(causal=True, future_leak=0.0), None),
])  # fmt: skip
def test_other_labels_are_not(masked: float, labelled: float, forward: ForwardFacts, mask_id: int | None) -> None:
    assert said(masked, labelled, forward, mask_id) == []
