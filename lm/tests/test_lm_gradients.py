"""Gradients written by hand are the true ones."""

import pytest
import torch
from torch.nn import functional as F

from trainwright_lm.network.model import RmsNorm, query_key_value


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64)


@pytest.mark.parametrize("shape", [(5, 8), (2, 3, 8), (1, 1)])
def test_rms_norm_and_its_gradients(shape: tuple[int, ...]) -> None:
    norm = RmsNorm(shape[-1], 1e-3).double()
    with torch.no_grad():
        norm.weight.copy_(drawn(shape[-1]))
    x = drawn(*shape).requires_grad_()
    torch.testing.assert_close(norm(x), F.rms_norm(x, shape[-1:], norm.weight, 1e-3))
    assert torch.autograd.gradcheck(lambda x, w: _with(norm, w, x), (x, norm.weight))


def _with(norm: RmsNorm, weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.func.functional_call(norm, {"weight": weight}, x)


def test_normalised_and_turned_queries_and_keys_and_their_gradients() -> None:
    parts = drawn(2, 3, 3, 2, 4).requires_grad_()
    weights = drawn(2, 4).requires_grad_()
    angles = drawn(3, 2)
    assert torch.autograd.gradcheck(
        lambda p, w: query_key_value(p, w, angles.cos(), angles.sin(), 1e-3), (parts, weights)
    )
    query, key, value = query_key_value(parts, weights, angles.cos(), angles.sin(), 1e-3)
    for found, part in ((query, 0), (key, 1)):
        normalised = F.rms_norm(parts[:, :, part].transpose(1, 2), (4,), weights[part], 1e-3)
        turned = torch.view_as_complex(torch.stack(normalised.chunk(2, -1), -1).contiguous()) * torch.polar(
            torch.ones_like(angles), angles
        )
        torch.testing.assert_close(found, torch.cat((turned.real, turned.imag), -1))
    assert torch.equal(value, parts[:, :, 2].transpose(1, 2))


def test_bf16_loses_only_bf16s_rounding() -> None:
    x = drawn(64, 32)
    norm = RmsNorm(32, 1e-6)
    near = norm(x.bfloat16())
    assert near.dtype == torch.bfloat16
    exact = F.rms_norm(x.bfloat16().double(), (32,), None, 1e-6)
    assert ((near - exact).abs() <= exact.abs() * 2**-8).all()
