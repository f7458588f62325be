"""Recipes: presets, files, settings, and what is refused."""

import pytest

from trainwright.errors import ReadError, UsageError
from trainwright_lm.config import PRESETS, as_tables, load_recipe, recipe_from


@pytest.mark.parametrize("preset", PRESETS)
def test_a_recipe_is_the_same_after_it_was_written_as_tables(preset) -> None:
    recipe = load_recipe(preset)
    assert recipe_from(as_tables(recipe)) == recipe


def test_a_file_changes_the_preset_and_a_setting_changes_the_file(tmp_path) -> None:
    file = tmp_path / "recipe.toml"
    file.write_text("[model]\nlayers = 2\nwidth = 64\n[run]\nupdates = 7\n")
    recipe = load_recipe("tiny", file, ["model.layers=3", 'run.prompts=["a b"]', "data.packing=tail"])
    assert (recipe.model.layers, recipe.model.width, recipe.run.updates) == (3, 64, 7)
    assert recipe.run.prompts == ("a b",) and recipe.data.packing == "tail"


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("model.layer=2", 'Did you mean "layers"'),
        ("modl.layers=2", 'Did you mean "model"'),
        ("model.layers=two", "of type int"),
        ("model.layers=true", "of type int"),
        ("model.layers=2.6", "of type int"),
        ('model.layers="6"', "of type int"),
        ("run.check=1", "of type bool"),
        ("run.prompts=[1, 2]", "a list of strings"),
        ("data.packing=up", "join, tail"),
        ("model.layers", "section.key=value"),
        ("model.layers=0", "above 0"),
        ("optimizer.learning_rate=nan", "finite"),
        ("run.epochs=inf", "finite"),
        ("optimizer.beta1=2.0", "below 1"),
        ("optimizer.beta2=1.0", "below 1"),
        ("model.dropout=1.0", "below 1"),
        ("run.seed=99999999999999999999999", "2 to the 63"),
        ("model.layers=1\nrun.seed=2", "one line"),
        ("optimizer.clip=-1", "not negative"),
        ("schedule.floor=2", "between 0 and 1"),
        ("model.heads=3", "even multiple"),
        ("data.micro_windows=5", "multiple of data.micro_windows"),
        ('run.sinks=["csv"]', "tensorboard, trackio and wandb"),
    ],
)
def test_a_setting_that_does_not_fit_is_refused_with_what_would(setting, said) -> None:
    with pytest.raises(UsageError, match=said):
        load_recipe(settings=[setting])


def test_a_presets_warm_up_leaves_a_short_trial_time_to_train() -> None:
    assert load_recipe("tiny").schedule.warmup_updates == 50
    assert load_recipe("tiny", settings=["run.updates=20"]).schedule.warmup_updates == 2
    assert load_recipe("tiny", settings=["run.updates=200"]).schedule.warmup_updates == 50
    named = load_recipe("tiny", settings=["run.updates=20", "schedule.warmup_updates=15"])
    assert named.schedule.warmup_updates == 15


def test_an_unknown_preset_and_an_unreadable_file_are_refused(tmp_path) -> None:
    with pytest.raises(UsageError, match='Did you mean "tiny"'):
        load_recipe("tny")
    with pytest.raises(ReadError, match="readable TOML"):
        load_recipe(file=tmp_path / "absent.toml")
