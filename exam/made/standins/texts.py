"""Texts: pairs of sentences, reviews, stories and answers, in place of `datasets.load_dataset`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import ModuleType
from typing import Any

_TRAIN, _TEST = 256, 96
_WHO = [
    "the company",
    "the senator",
    "a spokesman",
    "the airline",
    "the court",
    "the bank",
    "the union",
    "the minister",
]
_DID = (("said", "stated"), ("bought", "acquired"), ("rejected", "turned down"), ("praised", "applauded"))
_WHAT = [
    "the offer",
    "the report",
    "the new plan",
    "three factories",
    "the budget",
    "the merger",
    "the bill",
    "two ships",
]
_WHEN = ["on Monday", "on Friday", "last week", "in March", "this year", "after the vote"]
_GOOD = ["wonderful", "moving", "clever", "charming", "brilliant", "touching", "lovely", "superb"]
_BAD = ["dull", "clumsy", "boring", "awful", "tedious", "shallow", "noisy", "dreadful"]
_PARTS = ["plot", "cast", "music", "ending", "dialogue", "camera work", "first half", "story"]
_TOPICS = {"World": "treaty border envoy", "Sports": "goal coach league", "Business": "stock profit bank",
           "Sci/Tech": "chip rocket software"}  # fmt: skip


def fill(module: ModuleType) -> None:
    """Put made texts in place of `load_dataset`; folders and files of this machine are read as ever."""
    load = module.load_dataset

    def load_dataset(path: str, name: str | None = None, *args: Any, **kwargs: Any) -> Any:
        rows = _rows_for(path, name)
        if rows is None:
            return load(path, name, *args, **kwargs)
        return _sets(module, rows, kwargs.get("split") or (args[-1] if args else None))

    module.load_dataset = load_dataset  # type: ignore[attr-defined]


def _rows_for(path: str, name: str | None) -> Any:
    known = {
        "mrpc": pairs, "imdb": reviews, "sst2": sentences, "ag_news": news, "stories": stories,
        "preference": preferences, "judged": judged,
    }  # fmt: skip
    asked = name if name in known else path.rpartition("/")[2]
    return known.get(asked)


def _sets(module: ModuleType, rows: Any, split: Any) -> Any:
    made = module.DatasetDict()
    for part, seed, count in (("train", 0, _TRAIN), ("validation", 1, _TEST), ("test", 2, _TEST)):
        made[part] = module.Dataset.from_list(list(rows(random.Random(seed), count)))
    if rows in (pairs, sentences):
        for part in made:
            made[part] = made[part].cast_column("label", module.ClassLabel(names=["no", "yes"]))
    if isinstance(split, dict):
        return module.DatasetDict({name: _part(made, said) for name, said in split.items()})
    return _part(made, split) if split else made


def _part(made: Any, said: str) -> Any:
    """`train`, or `train[:100]`."""
    name, _, count = said.rstrip("]").partition("[:")
    return made[name].select(range(min(int(count), len(made[name])))) if count else made[name]


def pairs(chance: random.Random, count: int) -> Iterator[dict[str, Any]]:
    """Sentences that say the same in other words, or not."""
    for i in range(count):
        who, what, when = chance.choice(_WHO), chance.choice(_WHAT), chance.choice(_WHEN)
        did, too = chance.choice(_DID)
        same = chance.random() < 0.6
        start = f"{who} {did} {what} {when} ."
        doubt = chance.choice(["however , it was never", "but nobody has", "no one", "it is not true that he"])
        second = f"{when} {who} {too} {what} ." if same else f"{doubt} {too} {chance.choice(_WHAT)} ."
        yield {"sentence1": start.capitalize(), "sentence2": second.capitalize(), "label": int(same), "idx": i}


def reviews(chance: random.Random, count: int) -> Iterator[dict[str, Any]]:
    """Reviews of films and whether they are kind."""
    for _ in range(count):
        good = chance.random() < 0.5
        said = [f"the {chance.choice(_PARTS)} is {_word(chance, good)}" for _ in range(chance.randint(3, 8))]
        yield {"text": " . ".join(said) + " .", "label": int(good)}


def _word(chance: random.Random, good: bool) -> str:
    return chance.choice(_GOOD if good == (chance.random() < 0.9) else _BAD)


def sentences(chance: random.Random, count: int) -> Iterator[dict[str, Any]]:
    """One sentence of a review."""
    for i, row in enumerate(reviews(chance, count)):
        yield {"sentence": row["text"].split(" . ")[0], "label": row["label"], "idx": i}


def news(chance: random.Random, count: int) -> Iterator[dict[str, Any]]:
    """A line of news and its section."""
    for _ in range(count):
        label = chance.randrange(4)
        word = chance.choice(list(_TOPICS.values())[label].split())
        yield {"text": f"{chance.choice(_WHO)} spoke of the {word} {chance.choice(_WHEN)} .", "label": label}


def stories(chance: random.Random, count: int) -> Iterator[dict[str, Any]]:
    """A few sentences of running text."""
    for _ in range(count):
        yield {"text": " ".join(row["sentence1"] for row in pairs(chance, 3))}


def preferences(chance: random.Random, count: int) -> Iterator[dict[str, Any]]:
    """A question, a kind answer and a rude one."""
    for _ in range(count):
        part = chance.choice(_PARTS)
        yield {
            "prompt": f"How was the {part} ?",
            "chosen": f" I thank you : the {part} is {chance.choice(_GOOD)} .",
            "rejected": f" Go away : the {part} is {chance.choice(_BAD)} .",
        }


def judged(chance: random.Random, count: int) -> Iterator[dict[str, Any]]:
    """A question, an answer, and whether it was kind."""
    for row in preferences(chance, count):
        kind = chance.random() < 0.5
        yield {"prompt": row["prompt"], "completion": row["chosen" if kind else "rejected"], "label": kind}
