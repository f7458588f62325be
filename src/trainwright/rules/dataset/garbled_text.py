"""TW116 garbled-text: the tokens keep almost nothing of the texts they were made from.

Why it matters: The model is trained on empty or identical rows, or on the unknown token, and the loss stays at chance
level.
Evidence: Sampled rows are decoded: how many are empty, how many are distinct compared with the raw texts, and the share
of unknown tokens.
Fix (unsafe): Raise max_length, or use a tokenizer that was made for such texts.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Place, Proof, Role, Safety, Severity, rule
from trainwright.stages import DatasetFacts, SetupFacts, TextFacts

# Half of the rows or tokens without content: a suitable tokenizer never comes near that.
HALF = 0.5
# If fewer than a fifth of the distinct texts are still distinct, most rows duplicate another row.
FEWEST_DISTINCT_SHARE = 0.2
# Such rows were truncated if the texts are at least this many times longer than what is left.
CUT = 2.0
FEWEST_ROWS = 16


@rule("TW116", Severity.ERROR)
def garbled_text(dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Rows that are empty or identical once decoded, or that consist of unknown tokens."""
    texts = dataset.texts
    if texts is None or texts.rows < FEWEST_ROWS:
        return
    cut = _cut(texts)
    collapsed = texts.source_distinct is not None and texts.distinct < FEWEST_DISTINCT_SHARE * texts.source_distinct
    where = setup.place(Role.MAX_LENGTH, Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAINER)
    if texts.unknown_share is not None and texts.unknown_share > HALF:
        share = texts.unknown_share
        yield Finding(
            message=f"{share:.0%} of the tokens of {texts.rows} sampled rows are the unknown token",
            measured={"unknown_share": round(share, 3), "rows": texts.rows},
            where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAINER),
            proof=Proof(_example(texts)),
            fix=Fix(does="use a tokenizer that was made for these texts (language, case, script)"),
        )
    elif texts.empty > HALF * texts.rows:
        yield _cut_to_nothing(texts, where, f"{texts.empty} of {texts.rows} sampled rows decode to nothing")
    elif cut and collapsed:
        said = f"{texts.source_distinct} different texts of {texts.rows} sampled rows become {texts.distinct} different rows"
        yield _cut_to_nothing(texts, where, said)


def _cut(texts: TextFacts) -> bool:
    return texts.source_tokens is not None and texts.source_tokens >= CUT * max(1, texts.longest - 2)


def _cut_to_nothing(texts: TextFacts, where: Place | None, said: str) -> Finding:
    length = f"; the longest row has {texts.longest} tokens"
    wanted = f", the median text {texts.source_tokens:.0f} without special ones" if texts.source_tokens else ""
    raise_to = f" to at least {texts.source_tokens:.0f}" if texts.source_tokens else ""
    return Finding(
        message=said + length + wanted,
        measured={
            "empty_rows": texts.empty,
            "distinct_rows": texts.distinct,
            "rows": texts.rows,
            "longest": texts.longest,
        },
        where=where,
        proof=Proof(_example(texts)),
        fix=Fix(does=f"raise max_length{raise_to} in the tokenizer call", safety=Safety.UNSAFE)
        if _cut(texts) or texts.source_tokens is None
        else Fix(
            does="look at a row's input_ids where they are made: nothing was cut, and only special tokens are left"
        ),
    )


def _example(texts: TextFacts) -> str:
    if not texts.examples:
        return f"{texts.distinct} different rows after decoding"
    raw, left = texts.examples[0]
    return f"decoded, {_shorten(raw)!r} is {_shorten(left)!r}" if raw else f"decoded, a row is {_shorten(left)!r}"


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"
