"""What stands in for the Hub in the two originals: the Python files of the installed packages and a tokenizer of them."""

import itertools
import random
import sysconfig
from pathlib import Path

from datasets import Dataset, DatasetDict
from tokenizers import ByteLevelBPETokenizer
from transformers import PreTrainedTokenizerFast


def load_files(keep, tiny):
    """A training and a validation set of what `keep` leaves of the files."""
    paths = sorted(path for path in Path(sysconfig.get_path("purelib")).rglob("*.py") if path.is_file())
    random.Random(0).shuffle(paths)
    texts = (path.read_text("utf-8", errors="ignore") for path in paths)
    files = ({"content": text} for text in texts if len(text) < (8000 if tiny else 1_000_000))
    kept = Dataset.from_dict(keep(itertools.islice(files, 3000 if tiny else None)))
    parts = kept.train_test_split(test_size=0.1, seed=0)
    return DatasetDict({"train": parts["train"], "valid": parts["test"]})


def load_tokenizer(texts, tiny):
    """A byte-level BPE with the one special token that the chapter's has."""
    bpe = ByteLevelBPETokenizer()
    size = 1000 if tiny else 50_000
    bpe.train_from_iterator(texts, size, special_tokens=["<|endoftext|>"], show_progress=False)
    end = "<|endoftext|>"
    return PreTrainedTokenizerFast(tokenizer_object=bpe._tokenizer, bos_token=end, eos_token=end, unk_token=end)
