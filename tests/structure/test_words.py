"""Rules, stages and the check name no framework: what one calls things comes from its Words."""

import ast
import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import trainwright
from trainwright.adapters.keras.words import WORDS as KERAS
from trainwright.adapters.torch.words import LIGHTNING, LOOP, TRAINER, WITH_ACCELERATE
from trainwright.stages import Words

ROOT = Path(trainwright.__file__).parent
FILES = sorted(p for layer in ("rules", "stages") for p in (ROOT / layer).rglob("*.py"))
NAMES = re.compile(
    r"\b(torch|pytorch|transformers|accelerate|datasets|tensorflow|keras|jax|lightning|hugging ?face|trainer"
    r"|trainingarguments|dataloader|accelerator|lightningmodule)\b|\b(nn|tf)\.",
    re.IGNORECASE,
)
# Each with its reason.
EXCEPTIONS = {"trainer": "a role of the core's (Role.TRAINER) by which repairs ask for the object that trains"}
FIELDS = [f.name for f in dataclasses.fields(Words)]
ALL = {"trainer": TRAINER, "loop": LOOP, "accelerate": WITH_ACCELERATE, "lightning": LIGHTNING, "keras": KERAS}


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """The string constants of a file that are no docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    said = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.lineno, node.value


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_string_names_a_framework(path: Path) -> None:
    assert [(n, s) for n, s in strings(path) if s not in EXCEPTIONS and NAMES.search(s)] == []


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_nothing_is_decided_by_the_name_of_a_framework(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    compared = [n for n in ast.walk(tree) if isinstance(n, (ast.Compare, ast.Match))]
    assert [n.lineno for c in compared for n in ast.walk(c) if is_framework(n)] == []


def is_framework(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "framework"


def test_every_word_is_used() -> None:
    files = [*FILES, ROOT / "rehearsal" / "ranks.py"]
    source = "".join(p.read_text("utf-8") for p in files if p.name != "words.py")
    asked = {name for name in FIELDS if f"words.{name}" in source}
    assert [f for f in FIELDS if f not in asked and not (f == "losses" and "words.loss(" in source)] == []


@pytest.mark.parametrize("name", FIELDS)
def test_every_word_is_that_of_a_framework(name: str) -> None:
    """What is the same everywhere needs no word."""
    assert len({repr(getattr(words, name)) for words in ALL.values()}) > 1


@pytest.mark.parametrize("kind", ALL)
def test_every_framework_has_words_of_its_own(kind: str) -> None:
    own = {f: getattr(ALL[kind], f) for f in FIELDS}
    assert all(own != {f: getattr(other, f) for f in FIELDS} for k, other in ALL.items() if k != kind)


@pytest.mark.parametrize("kind", ALL)
def test_what_is_filled_in_has_its_place_in_each_frameworks_words(kind: str) -> None:
    plain = Words()
    for name in FIELDS:
        wanted, found = getattr(plain, name), getattr(ALL[kind], name)
        if isinstance(wanted, str):
            places = set(re.findall(r"\{(\w*)\}", found))
            assert places <= {"value", "type", "rows", "steps", "label"}, name
            assert set(re.findall(r"\{(\w*)\}", wanted)) <= places, name
