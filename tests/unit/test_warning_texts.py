"""The warnings that libraries really raise are found in the table, and the table names rules that exist."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from tokenizers import Tokenizer, models
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, IterableDataset, random_split
from transformers import AutoModelForCausalLM, BertConfig, PreTrainedTokenizerFast

from trainwright.core import LibraryWarning
from trainwright.frameworks.warning_texts import HARMLESS, KNOWN
from trainwright.judging.library_warnings import judge_warnings
from trainwright.registry import load_rules
from trainwright.seams.listening.hearing import Hearing, heard_by

metrics = pytest.importorskip("sklearn.metrics")
from sklearn import cluster, impute, linear_model, neural_network, preprocessing, svm  # noqa: E402
from sklearn.feature_selection import SelectKBest  # noqa: E402
from sklearn.model_selection import StratifiedKFold  # noqa: E402

SPREAD = np.random.RandomState(0).randn(50, 5) * [1, 10, 100, 1000, 1e4]
SIGNS = (SPREAD[:, 0] > 0).astype(int)
SCORES = torch.zeros(2, 3, requires_grad=True)


class TooLong(IterableDataset):
    """Yields more rows than its length says."""

    def __iter__(self):
        return iter(range(5))

    def __len__(self):
        return 3


def stepped_schedule() -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], 0.1)
    torch.optim.lr_scheduler.StepLR(optimizer, 1).step()


def longer_than_its_length() -> None:
    loader = DataLoader(TooLong())
    len(loader)
    list(loader)


def set_in_a_chain() -> None:
    table = pd.DataFrame({"a": [1, 2]})
    table["a"][0] = 5


def small_tokenizer() -> PreTrainedTokenizerFast:
    words = Tokenizer(models.WordLevel({"[PAD]": 0, "a": 1}, unk_token="a"))
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="a", model_max_length=4)


def padded_on_the_right() -> None:
    config = BertConfig(
        vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, is_decoder=True
    )
    model = AutoModelForCausalLM.from_config(config)
    rows = torch.tensor([[3, 4], [3, 0]])
    model.generate(rows, attention_mask=(rows > 0).long(), max_new_tokens=1, pad_token_id=0)


# What raises a warning, and the beginning of the quotation that is to be found for it.
RAISED: dict[str, Callable[[], object]] = {
    "Using a target size": lambda: F.mse_loss(torch.zeros(4, 1), torch.zeros(4)),
    "Detected call of": stepped_schedule,
    "Implicit dimension choice": lambda: F.softmax(SCORES),
    "dropout option adds": lambda: nn.LSTM(2, 2, dropout=0.5),
    "reduction: 'mean' divides": lambda: F.kl_div(SCORES.detach(), torch.ones(2, 3) / 3),
    "degrees of freedom is": lambda: torch.zeros(1).std(),
    "The .grad attribute": lambda: (SCORES * 2).grad,
    "Length of split": lambda: random_split(range(3), [0.0, 1.0]),
    "Length of IterableDataset": longer_than_its_length,
    "`parameters` is an empty": lambda: nn.utils.clip_grad_norm_((p for p in ()), 1.0),
    "Initializing zero-element": lambda: nn.Linear(0, 3),
    "None of the inputs have": lambda: checkpoint(lambda x: x * 2, torch.zeros(2), use_reentrant=True),
    "mean is more than 2 std": lambda: nn.init.trunc_normal_(torch.zeros(3), mean=10),
    "optimizer contains a": lambda: torch.optim.SGD([SCORES, SCORES], 0.1),
    "Using backward() with": lambda: SCORES.sum().backward(create_graph=True),
    "dropout2d: Received": lambda: nn.Dropout2d()(torch.zeros(2, 3, 4)),
    "To copy construct": lambda: torch.tensor(torch.zeros(2)),
    "overflow encountered in": lambda: np.exp(np.array([1000.0])),
    "divide by zero": lambda: np.log(np.array([0.0])),
    "invalid value": lambda: np.log(np.array([-1.0])),
    "Mean of empty slice": lambda: np.nanmean([np.nan]),
    "Degrees of freedom <= 0": lambda: np.var([1.0], ddof=1),
    "All-NaN": lambda: np.nanmax([np.nan]),
    "Casting complex": lambda: np.array([1j]).astype(float),
    "An input array is constant": lambda: stats.pearsonr([1, 1, 1], [1, 2, 3]),
    "A value is being set": set_in_a_chain,
    "Precision is ill-defined": lambda: metrics.precision_score([0, 1, 1], [0, 0, 0]),
    "F-score is ill-defined": lambda: metrics.f1_score([0, 0], [0, 0]),
    "Recall is ill-defined": lambda: metrics.recall_score([0, 0], [1, 0]),
    "Only one class is present": lambda: metrics.roc_auc_score([0, 0], [0.1, 0.2]),
    "No positive samples in y_true": lambda: metrics.roc_curve([0, 0], [0.1, 0.2]),
    "No negative samples in y_true": lambda: metrics.roc_curve([1, 1], [0.1, 0.2]),
    "No positive class found": lambda: metrics.precision_recall_curve([0, 0], [0.1, 0.2]),
    "y_pred contains classes": lambda: metrics.balanced_accuracy_score([0, 0], [1, 0]),
    "A single label was found": lambda: metrics.confusion_matrix([0, 0], [0, 0]),
    "lbfgs failed": lambda: linear_model.LogisticRegression(max_iter=2).fit(SPREAD, SIGNS),
    "Liblinear failed": lambda: svm.LinearSVC(max_iter=2).fit(SPREAD, SIGNS),
    "Objective did not converge": lambda: linear_model.Lasso(max_iter=1, alpha=1e-9).fit(SPREAD, SIGNS),
    "Maximum number of iteration": lambda: linear_model.SGDClassifier(max_iter=1).fit(SPREAD, SIGNS),
    "Stochastic Optimizer": lambda: neural_network.MLPClassifier(max_iter=2).fit(SPREAD, SIGNS),
    "A column-vector y": lambda: preprocessing.LabelEncoder().fit([[1], [2]]),
    "Found unknown categories": lambda: (
        preprocessing.OneHotEncoder(handle_unknown="ignore", drop="first").fit([[1], [2]]).transform([[3]])
    ),
    "unknown class(es)": lambda: preprocessing.MultiLabelBinarizer().fit([[1], [2]]).transform([[3]]),
    "The least populated class": lambda: next(StratifiedKFold(5).split(SPREAD, [0] * 48 + [1] * 2)),
    "The groups parameter is ignored": lambda: next(
        StratifiedKFold(2).split(SPREAD, SIGNS, groups=np.arange(len(SIGNS)))
    ),
    "Features": lambda: SelectKBest(k=1).fit(np.c_[np.zeros(50), SPREAD[:, :1]], SIGNS),
    "Skipping features without": lambda: impute.SimpleImputer().fit_transform([[np.nan, 1], [np.nan, 2]]),
    "Number of distinct clusters": lambda: cluster.KMeans(5, n_init=1).fit(np.zeros((10, 2))),
    "Token indices sequence": lambda: small_tokenizer().encode(["a"] * 9, is_split_into_words=True),
    "`max_length` is ignored": lambda: small_tokenizer()(["a"], padding=True, max_length=3),
    "A decoder-only architecture": padded_on_the_right,
}  # fmt: skip


def heard(call: Callable[[], object]) -> tuple[LibraryWarning, ...]:
    """The warnings of a call that says everything it has to say."""
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        hearing = Hearing()
        with heard_by(hearing):
            call()
    return judge_warnings(hearing.kept).heard


@pytest.fixture(autouse=True)
def _each_warning_again() -> Iterator[None]:
    """Let torch's C code repeat what it says only once in a process."""
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(False)


@pytest.mark.parametrize("text", RAISED)
def test_what_a_library_raises_is_in_the_table(text: str) -> None:
    [entry] = [known for known in KNOWN if known.text.startswith(text)]
    found = [w for w in heard(RAISED[text]) if w.means == entry.means and w.rule == entry.rule]
    assert found
    assert {w.library for w in found} == {entry.library}


def test_the_table_names_rules_that_exist_and_says_each_thing_once() -> None:
    rules = {rule.name for rule in load_rules()}
    assert {known.rule for known in KNOWN} - rules == {""}
    assert [
        text for text, count in Counter([known.text for known in KNOWN] + list(HARMLESS)).items() if count > 1
    ] == []
    assert [known.text for known in KNOWN if not known.means.endswith(".") or len(known.means) > 110] == []


def test_what_says_nothing_of_the_training_is_left_out() -> None:
    assert not heard(lambda: torch.from_numpy(np.broadcast_to(np.zeros(2), (3, 2))))
    assert not heard(lambda: warnings.warn("the user's own", stacklevel=1))
