"""A folder of small models as the hub's cache keeps them: python hub.py FOLDER

They are made at random, with tokenizers of the made texts, under the names that programs ask for.
"""

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from standins import texts
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertTokenizerFast,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
)

_BERT = ("bert-base-cased", "bert-base-uncased", "google-bert/bert-base-cased")
_GPT = ("made/gpt2", "gpt2")
_REVISION = "0" * 40
_TEMPLATE = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + eos_token }}{% endfor %}"


def main(folder: Path) -> None:
    """Make them all."""
    torch.manual_seed(0)
    for name in _BERT:
        _keep(folder, name, *_bert())
    for name in _GPT:
        _keep(folder, name, *_gpt())


def _keep(folder: Path, name: str, *parts: Any) -> None:
    kept = folder / f"models--{name.replace('/', '--')}"
    (kept / "refs").mkdir(parents=True, exist_ok=True)
    (kept / "refs" / "main").write_text(_REVISION, encoding="utf-8")
    for part in parts:
        part.save_pretrained(kept / "snapshots" / _REVISION)


def _lines() -> Iterator[str]:
    for rows in (texts.pairs, texts.reviews, texts.news, texts.preferences):
        for row in rows(random.Random(3), 400):
            yield from (value for value in row.values() if isinstance(value, str))


def _bert() -> tuple[Any, Any]:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(_lines(), trainers.WordPieceTrainer(vocab_size=600, special_tokens=special))
    fast = BertTokenizerFast(vocab=tokenizer.get_vocab(), do_lower_case=False, model_max_length=128)
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=128, max_position_embeddings=128,
    )  # fmt: skip
    return fast, BertForMaskedLM(config)


def _gpt() -> tuple[Any, Any]:
    tokenizer = Tokenizer(models.BPE(unk_token=None))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<|endoftext|>", "<|pad|>"]
    tokenizer.train_from_iterator(
        _lines(), trainers.BpeTrainer(vocab_size=600, special_tokens=special, initial_alphabet=alphabet)
    )
    from tokenizers import decoders

    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=special[0], bos_token=special[0], pad_token=special[1],
        model_max_length=128,
    )  # fmt: skip
    fast.chat_template = _TEMPLATE
    config = GPT2Config(
        vocab_size=tokenizer.get_vocab_size(), n_positions=128, n_embd=64, n_layer=2, n_head=4,
        bos_token_id=0, eos_token_id=0, pad_token_id=1,
    )  # fmt: skip
    return fast, GPT2LMHeadModel(config)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
