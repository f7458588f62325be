"""Where a program reads texts."""

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from exam.source import Source, called, keyword

TRAINERS = ("Trainer", "Seq2SeqTrainer", "SFTTrainer")


def tokenizings(source: Source) -> Iterator[cst.Call]:
    """Calls of a tokenizer on texts."""
    for call in source.find(m.Call()):
        known = keyword(call, "truncation") or keyword(call, "is_split_into_words") or keyword(call, "text_target")
        named = isinstance(call.func, cst.Name) and called(call) in ("tokenizer", "read", "tok", "tokenize")
        if call.args and (known or named) and not isinstance(source.parent(call), cst.Decorator):
            if call.args[0].keyword is None and "pretrained" not in source.code(call.func):
                yield call
