"""Names of a state dict that are the model's, that would be with another prefix, and that never are."""

import torch
from torch import nn

from trainwright.core import Place
from trainwright.seams.listening.checkpoint_names import unmatched_checkpoint

HERE = Place("train.py", 3)


def _loaded(model: nn.Module, state: dict):
    return unmatched_checkpoint(model, state, model.load_state_dict(state, strict=False), HERE)


def _model() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))


def _state(prefix: str) -> dict:
    return {f"{prefix}{name}": value for name, value in _model().state_dict().items()}


def test_names_behind_another_prefix_are_recognized() -> None:
    found = _loaded(_model(), _state("module."))
    assert found is not None
    assert (found.matched, found.tensors, found.prefix, found.renamed, found.would_match) == (0, 4, "module.", "", 4)
    inner = nn.ModuleDict({"backbone": _model()})
    found = _loaded(inner, _state(""))
    assert found is not None and (found.prefix, found.renamed, found.would_match) == ("", "backbone.", 4)
    found = _loaded(inner, _state("net.encoder."))
    assert found is not None and (found.prefix, found.renamed) == ("net.encoder.", "backbone.")


def test_names_of_another_model_have_no_advice() -> None:
    found = _loaded(_model(), {f"layer{i}.gamma": torch.zeros(1) for i in range(4)})
    assert found is not None and found.would_match == 0


def test_a_new_head_a_part_of_a_larger_checkpoint_and_a_strict_load_are_in_order() -> None:
    state = _state("")
    assert _loaded(_model(), {k: v for k, v in state.items() if k.startswith("0")}) is None
    assert _loaded(_model(), {**state, **{f"decoder.{i}": torch.zeros(1) for i in range(60)}}) is None
    assert _loaded(_model(), state) is None
    assert unmatched_checkpoint(_model(), state, None, HERE) is None
