"""Errors raised for real by the installed versions are found in the table of messages."""

import io
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy
import pandas
import pytest
import sklearn.metrics
import sklearn.preprocessing
import torch
from datasets import ClassLabel, Dataset, DatasetDict
from sklearn.model_selection import StratifiedKFold, train_test_split
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, IterableDataset, SequentialSampler, TensorDataset, random_split

from trainwright.frameworks.messages import best

ROWS = Dataset.from_dict({"text": ["a", "b"], "label": [0, 1]})
LINEAR = nn.Linear(3, 2)
OPTIMIZER = torch.optim.SGD(LINEAR.parameters(), lr=0.1)


def used_twice() -> None:
    weight = torch.ones(2, requires_grad=True)
    loss = (weight * weight).sum()
    loss.backward()
    loss.backward()


def changed_in_place() -> None:
    output = torch.ones(2, requires_grad=True).exp()
    output += 1
    output.sum().backward()


def changed_leaf() -> None:
    weight = torch.ones(2, requires_grad=True)
    weight += 1


def stepped_without_gradients() -> None:
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(torch.ones(1))
    scaler.step(OPTIMIZER)


def unscaled_in_half() -> None:
    scaler, half = torch.amp.GradScaler("cpu"), nn.Linear(1, 1).half()
    scaler.scale(half(torch.ones(1, 1).half()).sum()).backward()
    scaler.unscale_(torch.optim.SGD(half.parameters(), lr=0.1))


def whole_model() -> None:
    file = io.BytesIO()
    torch.save(LINEAR, file)
    file.seek(0)
    torch.load(file, weights_only=True)


def cut_off() -> None:
    file = io.BytesIO()
    torch.save({"weight": torch.zeros(100)}, file)
    torch.load(io.BytesIO(file.getvalue()[:300]))


def without_forward() -> None:
    nn.ModuleList([LINEAR])(torch.zeros(1, 3))


class Late(nn.Module):
    def __init__(self) -> None:
        self.layer = LINEAR


class Stream(IterableDataset):
    def __iter__(self):
        yield 1


def first_batch(rows: list[object]) -> object:
    return next(iter(DataLoader(rows, batch_size=len(rows))))


RAISED: dict[str, Callable[[], object]] = {
    "element 0 of tensors does not require grad": (lambda: torch.zeros(1).sum().backward()),
    "Trying to backward through the graph a second time": (used_twice),
    "has been modified by an inplace operation": (changed_in_place),
    "a leaf Variable that requires grad is being used": (changed_leaf),
    "grad can be implicitly created only for scalar outputs": (lambda: LINEAR(torch.zeros(2, 3)).backward()),
    "Can't call numpy() on Tensor that requires grad": (lambda: LINEAR.weight.numpy()),
    "Missing key(s) in state_dict": (lambda: LINEAR.load_state_dict({"module.weight": LINEAR.weight})),
    "size mismatch for … copying a param with shape": (lambda: LINEAR.load_state_dict(nn.Linear(3, 4).state_dict())),
    "parameter group that doesn't match the size": (lambda: torch.optim.SGD([LINEAR.weight], lr=1).load_state_dict(OPTIMIZER.state_dict())),
    "mat1 and mat2 must have the same dtype": (lambda: LINEAR(torch.zeros(1, 3, dtype=torch.float64))),
    "Input type (…) and bias type (…) should be the same": (lambda: nn.Conv2d(1, 1, 3)(torch.zeros(1, 1, 5, 5, dtype=torch.uint8))),
    "Expected … (unbatched) or … (batched) input to conv": (lambda: nn.Conv2d(1, 1, 3)(torch.zeros(5, 5))),
    "Kernel size can't be greater than actual input size": (lambda: nn.Conv2d(1, 1, 9)(torch.zeros(1, 1, 5, 5))),
    "Expected tensor for argument #1 'indices'": (lambda: nn.Embedding(3, 2)(torch.zeros(4))),
    "argument 'target' (position 2) must be Tensor, not": (lambda: functional.cross_entropy(torch.zeros(2, 3), None)),
    "position 1) must be Tensor, not tuple": (lambda: nn.Sequential(nn.LSTM(1, 1), nn.Linear(1, 1))(torch.zeros(1, 1, 1))),
    "Boolean value of Tensor with more than one value": (lambda: bool(torch.zeros(2) == 0)),
    "cannot be converted to Scalar": (lambda: torch.zeros(2).item()),
    "view size is not compatible with input tensor's size": (lambda: torch.zeros(2, 3).t().view(6)),
    "Sizes of tensors must match except in dimension": (lambda: torch.cat([torch.zeros(2, 3), torch.zeros(2, 4)])),
    "stack expects each tensor to be equal size": (lambda: first_batch([torch.zeros(1), torch.zeros(2)])),
    "each element in list of batch should be of equal size": (lambda: first_batch([[1], [1, 2]])),
    "batch must contain tensors, numpy arrays, numbers": (lambda: first_batch([None, None])),
    "Dimension out of range (expected to be in range of": (lambda: torch.zeros(2).sum(1)),
    "too many indices for tensor of dimension": (lambda: torch.zeros(2)[:, 0]),
    "The shape of the mask … at index": (lambda: torch.zeros(3)[torch.tensor([True])]),
    "can't convert np.ndarray of type numpy.object_": (lambda: torch.tensor(pandas.DataFrame({"a": [1], "b": ["x"]}).to_numpy(dtype=object))),
    "At least one stride in the given numpy array is negative": (lambda: torch.from_numpy(numpy.zeros(3)[::-1])),
    "Could not infer dtype of": (lambda: torch.tensor([1, None])),
    "optimizer got an empty parameter list": (lambda: torch.optim.SGD([], lr=1)),
    "can't optimize a non-leaf Tensor": (lambda: torch.optim.SGD([LINEAR.weight * 2], lr=1)),
    "No inf checks were recorded for this optimizer": (stepped_without_gradients),
    "Attempting to unscale FP16 gradients": (unscaled_in_half),
    "Weights only load failed": (whole_model),
    "PytorchStreamReader failed": (cut_off),
    "invalid load key, '<'": (lambda: pickle.loads(b"<html>")),
    'is missing the required "forward" function': (without_forward),
    "before Module.__init__() call": (Late),
    "must be divisible by num_heads": (lambda: nn.MultiheadAttention(5, 2)),
    "probability tensor contains either": (lambda: torch.multinomial(torch.tensor([float("nan"), 1.0]), 1)),
    "of distribution … to satisfy the constraint": (lambda: torch.distributions.Normal(torch.tensor(float("nan")), torch.tensor(1.0))),
    "sampler option is mutually exclusive with shuffle": (lambda: DataLoader([1], shuffle=True, sampler=SequentialSampler([1]))),
    "batch_sampler option is mutually exclusive with": (lambda: DataLoader([1], shuffle=True, batch_sampler=[[0]])),
    "expected unspecified shuffle option": (lambda: DataLoader(Stream(), shuffle=True)),
    "expected unspecified sampler option": (lambda: DataLoader(Stream(), sampler=[0])),
    "expected unspecified batch_sampler option": (lambda: DataLoader(Stream(), batch_sampler=[[0]])),
    "is mutually exclusive with drop_last": (lambda: DataLoader([1], batch_size=None, drop_last=True)),
    "prefetch_factor option could only be specified": (lambda: DataLoader([1], prefetch_factor=2)),
    "persistent_workers option needs num_workers > 0": (lambda: DataLoader([1], persistent_workers=True)),
    "Sum of input lengths does not equal the length": (lambda: random_split([1, 2], [1, 2])),
    "Size mismatch between tensors": (lambda: TensorDataset(torch.zeros(2), torch.zeros(3))),
    "Invalid key: … is out of bounds for size": (lambda: ROWS.remove_columns(["text", "label"])[0]),
    "Please first select a split": (lambda: DatasetDict({"train": ROWS})[0]),
    "Column to remove … not in the dataset": (lambda: ROWS.map(dict, remove_columns=["words"])),
    "Stratifying by column is only supported for ClassLabel": (lambda: ROWS.train_test_split(0.5, stratify_by_column="label")),
    "Invalid string class label": (lambda: ClassLabel(names=["a"]).str2int("b")),
    "axis … is out of bounds for array of dimension": (lambda: numpy.argmax(numpy.zeros(3), axis=1)),
    "operands could not be broadcast together with shapes": (lambda: numpy.zeros((2, 3)) == numpy.zeros((2, 3)) + numpy.zeros(4)),
    "setting an array element with a sequence": (lambda: numpy.array([[1], [1, 2]])),
    "Object arrays cannot be loaded when allow_pickle=False": (lambda: load_objects()),
    "The truth value of an array with more than one element": (lambda: bool(numpy.zeros(2) == 0)),
    "KeyError: 0": (lambda: pandas.Series([1, 2], index=[5, 7])[0]),
    "not in index": (lambda: pandas.DataFrame({"a": [1]})[["a", "b"]]),
    "Length of values (…) does not match length of index": (lambda: pandas.DataFrame({"a": [1, 2]}).assign(b=[1])),
    "Found input variables with inconsistent numbers": (lambda: train_test_split([1, 2, 3], [1, 2])),
    "Target is multiclass but average='binary'": (lambda: sklearn.metrics.f1_score([0, 1, 2], [0, 1, 2])),
    "y contains previously unseen labels": (lambda: sklearn.preprocessing.LabelEncoder().fit(["a"]).transform(["b"])),
    "is not fitted yet": (lambda: sklearn.preprocessing.StandardScaler().transform([[1]])),
    "Expected 2D array, got 1D array instead": (lambda: sklearn.preprocessing.StandardScaler().fit([1, 2])),
    "cannot be greater than the number of members": (lambda: list(StratifiedKFold(3).split([1, 2, 3], [0, 0, 1]))),
    "No such file or directory": (lambda: Path("/no/such/file").read_bytes()),
}  # fmt: skip


def load_objects() -> None:
    file = io.BytesIO()
    numpy.save(file, numpy.array([object()]), allow_pickle=True)
    file.seek(0)
    numpy.load(file)


def raised_by(call: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as caught:
        call()
    return caught.value


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("text", "call"), RAISED.items(), ids=list(RAISED))
def test_an_error_raised_for_real_is_found(text: str, call: Callable[[], object]) -> None:
    error = raised_by(call)
    match = best(type(error).__qualname__, str(error))
    assert match is not None, str(error)
    assert any(text in one for one in match.known.texts), (match.text, str(error))


def test_an_error_of_a_worker_process_is_found_below_the_wrapper() -> None:
    loader = DataLoader([torch.zeros(1), torch.zeros(2)], batch_size=2, num_workers=1)
    error = raised_by(lambda: next(iter(loader)))
    assert best("RuntimeError", str(error)).text == "stack expects each tensor to be equal size"


def test_errors_of_transformers_are_found(tmp_path: Path) -> None:
    import tokenizers
    import transformers

    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]")
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=9, n_embd=8, n_layer=1, n_head=2, n_positions=8)
    )
    arguments = transformers.TrainingArguments(str(tmp_path), report_to="none", use_cpu=True)
    trainer = transformers.Trainer(model=model, args=arguments, train_dataset=ROWS)
    encoder_decoder = transformers.T5ForConditionalGeneration(
        transformers.T5Config(vocab_size=9, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=1)
    )
    calls: dict[str, Callable[[], object]] = {
        "You must specify exactly one of input_ids or inputs_embeds": lambda: encoder_decoder(torch.ones(1, 2).long()),
        "You have to specify either input_ids or inputs_embeds": model,
        "Asking to pad but the tokenizer does not have a padding token": lambda: tokenizer(["a", "a a"], padding=True),
        "tokenizer.chat_template is not set": lambda: tokenizer.apply_chat_template([{"role": "user", "content": "a"}]),
        "Repo id must be in the form": lambda: transformers.AutoModel.from_pretrained("./no/such/folder/x"),
        "Should have a `model_type` key": lambda: transformers.AutoModel.from_pretrained(str(tmp_path)),
        "Trainer: evaluation requires an eval_dataset": trainer.evaluate,
        "No valid checkpoint found in output directory": lambda: trainer.train(resume_from_checkpoint=True),
        "Trainer.__init__() got an unexpected keyword argument 'tokenizer'": lambda: transformers.Trainer(
            model, tokenizer=tokenizer
        ),
    }
    for text, call in calls.items():
        error = raised_by(call)
        match = best(type(error).__name__, str(error))
        assert match is not None and any(text in one for one in match.known.texts), str(error)


def test_the_value_that_a_feature_cannot_hold_is_named() -> None:
    error = raised_by(lambda: Dataset.from_dict({"a": [1, "b"]}))
    assert best(type(error).__name__, str(error)).text == "Could not convert … with type … tried to convert to"
