"""Edges of the setup's rules, on facts without a framework."""

import pytest

from trainwright.core import Failure, Place, RenameKeyword
from trainwright.frameworks.removed_names import replacement
from trainwright.rules.setup.names import renamed_argument
from trainwright.stages import RefusedCall, SetupFacts


@pytest.mark.parametrize(
    ("owner", "name", "said"),
    [
        ("tensorflow.keras.mixed_precision", "experimental", "keras.mixed_precision itself"),
        ("keras.optimizers", "experimental", "keras.optimizers itself"),
        ("tensorflow.keras", "experimental", "keras.optimizers.schedules"),
        ("keras._tf_keras.keras.layers", "experimental", "keras.layers itself"),
        ("keras.api.layers", "core", "keras.layers itself"),
        ("keras.losses", "experimental", None),
        ("keras", "legacy", None),
        ("keras.preprocessing", "text", "TextVectorization"),
        ("keras.backend", "mean", "keras.ops.mean"),
        ("keras.backend", "argmax", "keras.ops.argmax, and give it the axis"),
        ("keras._tf_keras.keras.backend", "get_session", "no sessions"),
        ("keras.backend", "rnn", "most functions"),
        ("transformers.optimization", "AdamW", "torch.optim.AdamW"),
        ("sklearn.externals", "joblib", "joblib itself"),
    ],
)
def test_what_a_removed_name_has_become_goes_by_the_module_it_was_in(owner, name, said) -> None:
    known = replacement(owner, name, package=owner.partition(".")[0], of_class=False)
    assert known is None if said is None else said in str(known)


@pytest.mark.parametrize(
    ("library", "function", "accepts", "does"),
    [
        ("torch 2.9", "DataLoader", ("dataset", "num_workers"), "write num_workers= instead of workers= in DataLoader(…)"),
        ("torch 2.9", "Generator", ("device",), "leave workers out of Generator(…)"),
        ("keras 3.15", "fit", ("x", "y"), "leave workers out of fit(…): keras.utils.PyDataset takes it"),
        ("tf_keras 2.19", "fit", ("x", "y"), "leave workers out of fit(…): keras.utils.PyDataset takes it"),
    ],
)  # fmt: skip
def test_what_an_argument_has_become_goes_by_the_library(library, function, accepts, does) -> None:
    at = Place("train.py", 1)
    call = RefusedCall(
        function=function, argument="workers", value=4, given={"workers": 4}, accepts=accepts, library=library,
        failure=Failure(type="TypeError", message="", where=at), places={"workers": at},
    )  # fmt: skip
    assert [f.fix.does for f in renamed_argument.function(SetupFacts(refused=call))] == [does]


def test_a_name_of_another_frameworks_is_written_as_this_one_has_it() -> None:
    call = RefusedCall(
        function="AdamW", argument="learning_rate", value=0.1, given={"learning_rate": 0.1}, accepts=("params", "lr"),
        library="torch 2.9", failure=Failure(type="TypeError", message="", where=Place("train.py", 1)),
    )  # fmt: skip
    (found,) = renamed_argument.function(SetupFacts(refused=call))
    assert found.fix and found.fix.edits == (RenameKeyword("train.py", 1, "learning_rate", "lr"),)
