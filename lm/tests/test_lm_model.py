"""The network equals transformers', has the published numbers of parameters, and its cache changes nothing."""

import math

import pytest
import torch
from torch import Tensor

from trainwright_lm.config import ModelConfig
from trainwright_lm.network.loss import training_loss
from trainwright_lm.network.model import PLAIN_ATTENTION_POSITIONS, Cache, Transformer, mlp_width

SMALL = {"vocabulary_size": 300, "layers": 2, "width": 48, "heads": 3, "context": 24}
BOTH = pytest.mark.parametrize("architecture", ["gpt2", "modern"])


def small(architecture: str, **changes: float) -> Transformer:
    torch.manual_seed(0)
    return Transformer(ModelConfig(architecture=architecture, **SMALL | changes))


def shaken(model: Transformer) -> Transformer:
    """With biases and norms that are not at 0 and 1, so that none can be forgotten."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model


def ids(batch: int = 2, positions: int = 24) -> Tensor:
    return torch.randint(0, 300, (batch, positions), generator=torch.Generator().manual_seed(1))


def as_gpt2(model: Transformer) -> torch.nn.Module:
    """transformers' GPT-2 with this model's weights; its Conv1D holds matrices the other way round."""
    from transformers import GPT2Config, GPT2LMHeadModel

    c = model.config
    theirs = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=c.vocabulary_size, n_positions=c.context, n_embd=c.width, n_layer=c.layers, n_head=c.heads
        )
    )
    state = {
        "wte.weight": model.embedding.weight,
        "wpe.weight": model.position.weight,
        "ln_f.weight": model.norm.weight,
        "ln_f.bias": model.norm.bias,
    }
    for i, layer in enumerate(model.layers):
        pairs = {
            "ln_1": layer.attention_norm,
            "attn.c_attn": layer.attention.query_key_value,
            "attn.c_proj": layer.attention.output,
            "ln_2": layer.mlp_norm,
            "mlp.c_fc": layer.mlp.up,
            "mlp.c_proj": layer.mlp.down,
        }
        for name, module in pairs.items():
            state[f"h.{i}.{name}.weight"] = module.weight.t() if ".c_" in name else module.weight
            state[f"h.{i}.{name}.bias"] = module.bias
    theirs.transformer.load_state_dict({k: v.detach() for k, v in state.items()})
    return theirs.eval()


def as_qwen3(model: Transformer) -> torch.nn.Module:
    """transformers' Qwen3 with this model's weights; it keeps apart what ours fuses."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    c = model.config
    theirs = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=c.vocabulary_size,
            hidden_size=c.width,
            intermediate_size=mlp_width(c),
            num_hidden_layers=c.layers,
            num_attention_heads=c.heads,
            num_key_value_heads=c.heads,
            head_dim=c.width // c.heads,
            max_position_embeddings=c.context,
            rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
            tie_word_embeddings=True,
        )
    )
    state = {"embed_tokens.weight": model.embedding.weight, "norm.weight": model.norm.weight}
    for i, layer in enumerate(model.layers):
        query, key, value = layer.attention.query_key_value.weight.chunk(3)
        gate, up = layer.mlp.gate_up.weight.chunk(2)
        parts = {
            "input_layernorm": layer.attention_norm.weight,
            "self_attn.q_proj": query,
            "self_attn.k_proj": key,
            "self_attn.v_proj": value,
            "self_attn.q_norm": layer.attention.query_norm.weight,
            "self_attn.k_norm": layer.attention.key_norm.weight,
            "self_attn.o_proj": layer.attention.output.weight,
            "post_attention_layernorm": layer.mlp_norm.weight,
            "mlp.gate_proj": gate,
            "mlp.up_proj": up,
            "mlp.down_proj": layer.mlp.down.weight,
        }
        state |= {f"layers.{i}.{name}.weight": weight for name, weight in parts.items()}
    theirs.model.load_state_dict({k: v.detach() for k, v in state.items()})
    return theirs.eval()


@BOTH
def test_logits_equal_those_of_transformers(architecture: str) -> None:
    ours = shaken(small(architecture)).eval()
    theirs = as_gpt2(ours) if architecture == "gpt2" else as_qwen3(ours)
    with torch.no_grad():
        expected = theirs(input_ids=ids()).logits
        torch.testing.assert_close(ours(ids()), expected, atol=1e-5, rtol=0)
    assert expected.std() > 0.5, "weights that are too small would hide a difference"


@pytest.mark.parametrize(("context", "parameters"), [(1024, 124_242_432), (128, 123_554_304)])
def test_gpt2_has_the_published_number_of_parameters(context: int, parameters: int) -> None:
    """Defect 11: the context that is asked for is the one that is built."""
    with torch.device("meta"):
        model = Transformer(
            ModelConfig(architecture="gpt2", layers=12, heads=12, width=768, context=context, vocabulary_size=50_000)
        )
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


def test_gpt2_starts_as_transformers_starts_it() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    ours = small("gpt2", width=192, vocabulary_size=1000)
    theirs = GPT2LMHeadModel(GPT2Config(vocab_size=1000, n_positions=24, n_embd=192, n_layer=2, n_head=3)).state_dict()
    pairs = {
        "transformer.wte.weight": ours.embedding.weight,
        "transformer.wpe.weight": ours.position.weight,
        "transformer.h.1.attn.c_attn.weight": ours.layers[1].attention.query_key_value.weight,
        "transformer.h.1.attn.c_proj.weight": ours.layers[1].attention.output.weight,
        "transformer.h.1.mlp.c_fc.weight": ours.layers[1].mlp.up.weight,
        "transformer.h.1.mlp.c_proj.weight": ours.layers[1].mlp.down.weight,
    }
    for name, weight in pairs.items():
        assert weight.std().item() == pytest.approx(theirs[name].std().item(), rel=0.05), name
    assert ours.layers[0].mlp.down.bias.eq(0).all() and ours.layers[0].mlp_norm.weight.eq(1).all()


@BOTH
@pytest.mark.parametrize(("vocabulary", "width"), [(1_000, 96), (8_192, 256)])
def test_before_training_the_loss_is_that_of_guessing(architecture: str, vocabulary: int, width: int) -> None:
    model = small(architecture, vocabulary_size=vocabulary, width=width, heads=4, layers=4)
    tokens = torch.randint(0, vocabulary, (4, 25), generator=torch.Generator().manual_seed(2))
    loss = training_loss(model, tokens[:, :-1], tokens[:, 1:]) / 96
    assert loss.item() == pytest.approx(math.log(vocabulary), abs=0.12)


@BOTH
def test_a_cache_changes_nothing(architecture: str) -> None:
    model = shaken(small(architecture)).eval()
    cache, tokens = Cache(model.config, model.embedding.weight), ids(1)
    with torch.no_grad():
        whole = model.hidden(tokens)
        hidden = model.hidden(tokens, cache)
    torch.testing.assert_close(hidden, whole, atol=2e-5, rtol=1e-5)
    assert cache.length == 24


@BOTH
def test_a_cache_forgets_what_its_length_leaves_out(architecture: str) -> None:
    model = shaken(small(architecture)).eval()
    cache = Cache(model.config, model.embedding.weight)
    tokens = ids(1, 12)
    with torch.no_grad():
        model.hidden(tokens.flip(1), cache)
        cache.length = 0
        again = model.hidden(tokens, cache)
        torch.testing.assert_close(again, model.hidden(tokens), atol=2e-5, rtol=1e-5)


@BOTH
def test_a_position_sees_nothing_after_it(architecture: str) -> None:
    model = shaken(small(architecture)).eval()
    changed = ids().clone()
    changed[:, 12:] = (changed[:, 12:] + 1) % 300
    with torch.no_grad():
        before, after = model(ids()), model(changed)
    torch.testing.assert_close(before[:, :12], after[:, :12])
    assert not torch.allclose(before[:, 12], after[:, 12])


@BOTH
def test_dropout_acts_in_training_alone(architecture: str) -> None:
    model = small(architecture, dropout=0.5)
    assert not torch.equal(model(ids()), model(ids()))
    model.eval()
    assert torch.equal(model(ids()), model(ids()))


@BOTH
def test_bf16_autocast_stays_near_fp32(architecture: str) -> None:
    model = small(architecture)
    exact = model.hidden(ids())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        near = model.hidden(ids())
    assert (near.float() - exact).norm() < 0.02 * exact.norm()


@BOTH
@pytest.mark.parametrize("positions", [24, PLAIN_ATTENTION_POSITIONS + 1])
def test_bf16_gradients_point_where_fp32s_do(architecture: str, positions: int) -> None:
    """On a CPU bf16 has attention of its own up to some length, and torch's beyond."""
    model = small(architecture, context=positions)
    tokens = ids(2, positions + 1)
    grads = []
    for enabled in (False, True):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            loss = training_loss(model, tokens[:, :-1], tokens[:, 1:])
        grads.append(torch.autograd.grad(loss, list(model.parameters())))
    for (name, _), exact, near in zip(model.named_parameters(), *grads, strict=True):
        if exact.norm() > 1e-3 * max(grad.norm() for grad in grads[0]):
            assert torch.cosine_similarity(exact.flatten(), near.flatten(), dim=0) > 0.99, name


@BOTH
def test_in_bf16_a_position_sees_nothing_after_it(architecture: str) -> None:
    model = shaken(small(architecture)).eval()
    changed = ids().clone()
    changed[:, 12:] = (changed[:, 12:] + 1) % 300
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        before, after = model.hidden(ids()), model.hidden(changed)
    assert torch.equal(before[:, :12], after[:, :12])
    assert not torch.equal(before[:, 12], after[:, 12])


@pytest.mark.parametrize(("width", "inside"), [(256, 704), (512, 1376), (768, 2048), (128, 352)])
def test_swiglu_is_as_large_as_an_mlp_of_four_widths(width: int, inside: int) -> None:
    assert mlp_width(ModelConfig(width=width)) == inside
    assert mlp_width(ModelConfig(architecture="gpt2", width=width)) == 4 * width
