"""Every role that rules can ask a line for is written down by an adapter or a look."""

import dataclasses
from pathlib import Path

import transformers

import trainwright
from trainwright.core import Role, role_of_split

ROOT = Path(trainwright.__file__).parent


def test_every_role_is_written_by_an_adapter() -> None:
    """By its name, or as an argument of a Trainer, all of which are written down."""
    source = "".join(p.read_text("utf-8") for folder in ("adapters", "look") for p in (ROOT / folder).rglob("*.py"))
    arguments = {f.name for f in dataclasses.fields(transformers.TrainingArguments)}
    assert [role for role in Role if f'"{role}"' not in source and role not in arguments] == []


def test_a_data_set_and_where_it_was_made_have_roles() -> None:
    assert role_of_split("train").made == Role.TRAIN_DATASET_MADE
    assert role_of_split("evaluation").made == Role.EVAL_DATASET_MADE
