"""What a script's variables lead to is put back as it was."""

import torch

from trainwright.seams.state.reachable import ScriptState
from trainwright.seams.torch.state import ModelState


def test_an_expanded_tensor_is_left_and_its_base_is_put_back() -> None:
    base = torch.arange(3.0)
    scope = {"base": base, "wide": base.expand(4, 3), "table": torch.eye(2).to_sparse()}
    state = ScriptState([scope])
    base += 1
    state.put_back()
    assert base.tolist() == [0.0, 1.0, 2.0] and scope["wide"].shape == (4, 3)


def test_an_expanded_buffer_of_a_model_is_left() -> None:
    model = torch.nn.Linear(2, 2)
    model.register_buffer("wide", torch.zeros(1, 3).expand(5, 3))
    state, before = ModelState(model), model.weight.detach().clone()
    with torch.no_grad():
        model.weight += 1
    state.put_back()
    assert torch.equal(model.weight, before)
