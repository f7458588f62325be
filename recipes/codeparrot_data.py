"""Python files as blocks of tokens: what the two recipes, codeparrot_trainer.py and codeparrot_accelerate.py, begin with."""

import argparse
import itertools
import random
import sysconfig
from pathlib import Path

from datasets import Dataset, load_dataset
from tokenizers import ByteLevelBPETokenizer
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, pipeline

LIBRARIES = ("pandas", "sklearn", "matplotlib", "seaborn")
ARRAYS = "# create some data\nx = np.random.randn(100)\ny = np.random.randn(100)\n\n"
FRAME = "# dataframe with profession, income and name\ndf = pd.DataFrame({'profession': x, 'income':y, 'name': z})\n\n"
FOREST = "# import random forest regressor from scikit-learn\nfrom sklearn.ensemble import RandomForestRegressor\n\n"
PROMPTS = (
    ARRAYS + "# create scatter plot with x, y\n",
    ARRAYS + "# create dataframe from x and y\n",
    FRAME + "# calculate the mean income per profession\n",
    FOREST + "# fit random forest model with 300 estimators on X, y:\n",
)
TINY = {"files": 120, "largest": 8000, "vocabulary": 1000, "layers": 2, "heads": 2, "width": 96, "batch": 4}
TINY |= {"accumulation": 2, "rate": 3e-3, "warmup": 10, "log_every": 10, "evaluate_every": 60}


def read_arguments(description, out, schedule):
    """The command line's arguments; --tiny changes the defaults to those of a trial."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--tiny", action="store_true", help="a trial of two minutes on two CPU cores")
    add("--hub", metavar="NAME", help="stream this set of the Hub, such as huggingface-course/codeparrot-ds-train")
    add("--folder", default=sysconfig.get_path("purelib"), help="Python files; by default the installed packages")
    add("--files", type=int, default=5000, help="how many files that mention a library to take")
    add("--largest", type=int, default=1_000_000, help="leave out files of more characters")
    add("--vocabulary", type=int, default=32_000)
    add("--context", type=int, default=128, help="tokens in a block")
    add("--overflow", action="store_true", help="cut each file by itself and drop its tail, instead of joining files")
    add("--layers", type=int, default=12)
    add("--heads", type=int, default=12)
    add("--width", type=int, default=768)
    add("--epochs", type=int, default=1)
    add("--batch", type=int, default=32, help="blocks in a forward pass of one process")
    add("--accumulation", type=int, default=8, help="forward passes in an update")
    add("--rate", type=float, default=5e-4)
    add("--schedule", choices=("cosine", "linear"), default=schedule)
    add("--warmup", type=int, default=1000, help="updates")
    add("--precision", choices=("no", "fp16", "bf16"), default="no")
    add("--log-every", type=int, default=100, help="updates")
    add("--evaluate-every", type=int, default=1000, help="updates; the model is saved as often")
    add("--report", choices=("tensorboard", "wandb", "trackio"))
    add("--out", default=out)
    add("--push", metavar="NAME", help="the repository on the Hub that the model is pushed to")
    if parser.parse_known_args()[0].tiny:
        parser.set_defaults(**TINY)
    return parser.parse_args()


def read_files(args):
    """Yield each different file that mentions one of the libraries, as it is read."""
    if args.hub:
        texts = (row["content"] for row in load_dataset(args.hub, split="train", streaming=True))
    else:
        paths = sorted(path for path in Path(args.folder).rglob("*.py") if path.is_file())
        random.Random(0).shuffle(paths)
        texts = (path.read_text("utf-8", errors="ignore") for path in paths)
    seen = set()
    for text in texts:
        wanted = len(text) <= args.largest and any(library in text for library in LIBRARIES)
        if wanted and text.strip() not in seen:
            seen.add(text.strip())
            yield {"text": text}


def train_tokenizer(texts, size):
    """A byte-level BPE of these texts; padding has a token of its own, so that the end of a file is learned."""
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(texts, size, special_tokens=["<|endoftext|>", "<|pad|>"], show_progress=False)
    return PreTrainedTokenizerFast(tokenizer_object=bpe._tokenizer, eos_token="<|endoftext|>", pad_token="<|pad|>")


def prepare(args):
    """The tokenizer, and the training and validation blocks; no file is in both."""
    files = Dataset.from_list(list(itertools.islice(read_files(args), args.files)))
    tokenizer = train_tokenizer(files["text"], args.vocabulary)

    def cut(batch):
        if args.overflow:
            how = {"truncation": True, "max_length": args.context, "return_overflowing_tokens": True}
            blocks = tokenizer(batch["text"], split_special_tokens=True, **how).input_ids
        else:
            texts = tokenizer(batch["text"], split_special_tokens=True).input_ids
            joined = [token for ids in texts for token in (*ids, tokenizer.eos_token_id)]
            blocks = [joined[i : i + args.context] for i in range(0, len(joined), args.context)]
        return {"input_ids": [block for block in blocks if len(block) == args.context]}

    sets = files.train_test_split(test_size=0.1, seed=0).map(cut, batched=True, remove_columns=["text"])
    return tokenizer, sets["train"], sets["test"]


def build_model(args, tokenizer):
    """A GPT-2 of the size asked for, with new weights."""
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=args.context,
        n_layer=args.layers,
        n_head=args.heads,
        n_embd=args.width,
        bos_token_id=tokenizer.eos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return GPT2LMHeadModel(config)


def complete(model, tokenizer):
    """Print the line that the model writes after each prompt."""
    pipe = pipeline("text-generation", model=model.eval(), tokenizer=tokenizer)
    for prompt in PROMPTS:
        text = pipe(prompt, max_new_tokens=24, do_sample=False, return_full_text=False)[0]["generated_text"]
        print(prompt + text.strip("\n").split("\n")[0], end="\n\n")
