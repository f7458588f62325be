"""What people say of a training that raises nothing, and what they ask: patterns, a short answer, and the rules that look for it."""

from __future__ import annotations

import re
from dataclasses import dataclass

# A longer text is a log or a report, in which single words say little.
MOST_WORDS = 30
# Any other single word is searched for among the rules.
LONE_WORDS = ("tpu", "tpus")
# What `_plain` writes as "not".
_NEGATIONS = re.compile(
    r"n't\b|(?:\b(?:does|do|did|is|are|was|wo|ca))nt\b|\b(?:cannot|not|never|no longer|without)\b"
    r"|\b(?:refuses|fails|failed|stops|stopped)(?: to)?\b"
)
_DOWN = r"(?:decreas|go(?:es|ing)? down|drop|fall|reduc|improv|converg|chang|mov)"
_LOSS = r"\b(?:loss(?:es)?|cost|objective)\b"
_SCORE = r"\b(?:accuracy|acc|score|f1|auc|metrics?|performance)\b"
_EVALUATION = r"\b(?:val|valid|validation|test|dev|eval|evaluation)(?![a-z])"


@dataclass(frozen=True, kw_only=True)
class Complaint:
    """One kind of complaint."""

    patterns: tuple[str, ...]
    """Regular expressions for the text as `_plain` writes it; the first complaint with one that is found answers."""
    answer: str
    rules: tuple[str, ...]
    """Names of rules, the most frequent cause first."""


# The more specific ones first: a loss that is NaN does not decrease either.
COMPLAINTS = (
    Complaint(
        patterns=(r"\bnans?\b", r"not a number", r"\binf(?:inity|inite)?\b", r"\bnon-?finite\b"),
        answer="NaN or infinity comes from the data, from the model's arithmetic, or from steps that are too large.",
        rules=(
            "non-finite-data",
            "label-out-of-range",
            "excessive-learning-rate",
            "non-finite-loss",
            "non-finite-activation",
            "non-finite-gradients",
            "exploding-gradients",
            "unscaled-inputs",
        ),
    ),
    Complaint(
        patterns=(
            r"out of memory",
            r"\booms?\b",
            r"\b(?:memory|v?ram)\b.*(?:full|leak|grow|increas|exceed)",
            r"memory leak",
        ),
        answer="If the first step does not fit: halve the batch size and accumulate two batches for each update "
        "(gradient_accumulation_steps=2, or step the optimizer at every second batch with the loss divided by 2), which leaves "
        "the updates as they are; halve again if needed. Then shorten max_length, train in bf16, or use gradient checkpointing. "
        "If memory runs out later, graphs or outputs are kept from step to step: add up loss.item(), not the loss, and evaluate "
        "under no_grad.",
        rules=("out-of-memory", "retained-logits", "accelerator-held-by-others", "broadcast-loss"),
    ),
    Complaint(
        patterns=(
            rf"{_EVALUATION}.*(?:lower|less|smaller|better) than.*train",
            rf"{_SCORE}.*(?:\b1\.0+\b|\b100 ?%|\b99(?:\.\d+)? ?%|perfect)(?!.*{_EVALUATION})",
            r"too good",
            r"suspicious",
            r"\bleak(?:age|s|ed|ing)?\b",
        ),
        answer="A result that is too good usually means that evaluation sees training rows, or the model sees the answer.",
        rules=(
            "train-eval-overlap",
            "evaluation-on-training-data",
            "future-leak",
            "crossed-samples",
            "mismatched-metric",
        ),
    ),
    Complaint(
        patterns=(
            rf"{_EVALUATION}.*(?:missing|not (?:log|show|print|there|comput|report)|is none)",
            rf"no {_EVALUATION}",
            r"(?:best|wrong) checkpoint",
            r"early ?stop",
        ),
        answer="Metrics that are missing or ignored come from labels that do not reach the evaluation, or from a name that "
        "is never computed.",
        rules=(
            "missing-evaluation-labels",
            "unknown-best-metric",
            "wrong-metric-direction",
            "undirected-metric",
        ),
    ),
    Complaint(
        patterns=(
            r"\bover-?fit(?!.*\b(?:one|single|1|a) batch)",
            r"generali[sz]",
            rf"{_EVALUATION}.*(?:worse|ris|increas|up\b|low|drop|bad|poor|stuck|not)",
            rf"train.*(?:high|good|perfect|low|decreas|fine|100|but|while).*{_EVALUATION}",
        ),
        answer="If training improves and evaluation does not, check that both see the same preprocessing and the right "
        "mode before you regularize.",
        rules=(
            "differently-scaled-sets",
            "training-mode-evaluation",
            "split-of-sorted-data",
            "missing-classes",
            "misaligned-labels",
            "unreset-metric",
        ),
    ),
    Complaint(
        patterns=(
            r"(?:one|single|same|only) (?:class|label|category|value|output|prediction|token|answer)",
            r"(?:majority|dominant) class",
            r"(?:always|only|just) (?:predict|output|return|answer|class|zero|0|1)",
            r"predict\w* (?:all|only|the same|always|everything|zero|0|1|nothing)",
            r"(?:constant|identical) (?:predict|output|result|answer|prob|logit)",
            r"(?:predictions?|outputs?) (?:are|is) (?:all |the |always )*(?:same|constant|identical)",
            r"\b(?:f1|recall|precision|mcc)\b.*\b(?:0|zero)\b(?!\.[1-9])",
        ),
        answer="A model that always gives the same answer has lost its input, its gradient or its classes.",
        rules=(
            "imbalanced-classes",
            "held-out-at-constant",
            "constant-output",
            "argmax-of-one-column",
            "one-unit-softmax",
            "dead-units",
            "destroyed-labels",
            "sorted-without-shuffle",
        ),
    ),
    Complaint(
        patterns=(
            rf"{_SCORE}.*(?:chance|random|stuck|constant|same|low|plateau|bad|poor|0\.5\b|\b50 ?%|\b10 ?%)",
            rf"{_SCORE}.*\bnot\b.*(?:improv|increas|chang|up\b)",
            r"(?:chance|random) (?:level|guess|accuracy|performance)",
            r"no better than (?:chance|random)",
        ),
        answer="An accuracy at chance means that the labels, the loss or the metric do not fit, or that nothing is learned.",
        rules=(
            "misaligned-labels",
            "metrics-on-logits",
            "broadcast-loss",
            "double-activation",
            "frozen-model",
            "argmax-of-one-column",
            "constant-output",
            "broadcast-metric",
        ),
    ),
    Complaint(
        patterns=(rf"{_LOSS}.*\b(?:is|at|stays?|equals?|=|becomes?|of|always|exactly) ?(?:0(?:\.0+)?|zero)(?![\d.])",),
        answer="A loss of exactly 0 means that nothing is compared: masked labels, a class dimension of size one, or targets "
        "that the model sees. The Trainer also logs 0.0 for a loss that is NaN, unless logging_nan_inf_filter=False.",
        rules=(
            "all-labels-masked",
            "one-unit-softmax",
            "class-loss-of-one-score",
            "future-leak",
            "labels-inside-inputs",
        ),
    ),
    Complaint(
        patterns=(
            r"\b(?:0?\.69\d*|1\.09\d*|1\.38\d*|1\.6(?:1|09)\d*|2\.30?\d*|4\.60?\d*|6\.9\d?)\b",
            r"\b(?:ln|log) ?\(?\d",
        ),
        answer="A loss that stays at the logarithm of the number of classes (0.693 for 2, 1.609 for 5, 2.303 for 10, 4.605 "
        "for 100) is that of guessing: the output does not depend on the input, or the weights do not move.",
        rules=(
            "constant-output",
            "unstepped-optimizer",
            "frozen-model",
            "unregistered-parameters",
            "severed-graph",
            "negligible-learning-rate",
            "double-activation",
            "misaligned-labels",
        ),
    ),
    Complaint(
        patterns=(
            r"\b(?:weights?|parameters?)\b.*\bnot\b.*(?:chang|updat|mov)",
            r"\b(?:gradients?|grads?)\b.*(?:\bnone\b|zero|\b0\b|vanish|missing)",
            r"vanish",
        ),
        answer="Weights that stay as they are get no gradient, or no optimizer updates them.",
        rules=(
            "unstepped-optimizer",
            "frozen-model",
            "unregistered-parameters",
            "severed-graph",
            "no-gradient",
            "vanishing-gradients",
            "wiped-accumulation",
            "negligible-learning-rate",
        ),
    ),
    Complaint(
        patterns=(
            rf"{_LOSS}(?!.*\bnot\b).*(?:explod|diverg|blow|increas|\bris|grow|go(?:es|ing)? up|huge)",
            r"\b(?:explod\w*|diverg\w*)\b",
            r"gradients?.*\b(?:huge|large)",
        ),
        answer="A training loss that rises comes from steps that are too large, or from a loss with the wrong sign.",
        rules=(
            "excessive-learning-rate",
            "hidden-default-rate",
            "exploding-gradients",
            "unscaled-inputs",
            "unscaled-targets",
            "uncleared-gradients",
            "unscaled-accumulation",
        ),
    ),
    Complaint(
        patterns=(
            rf"{_LOSS}.*(?:fluctuat|oscillat|nois|jump|spik|unstable)",
            r"\b(?:unstable|oscillat\w*|fluctuat\w*)\b",
        ),
        answer="A loss that jumps comes from steps that are too large for some batches, or from batches that differ.",
        rules=(
            "excessive-learning-rate",
            "sorted-without-shuffle",
            "uncleared-gradients",
            "unscaled-inputs",
            "run-diverged",
            "exploding-gradients",
        ),
    ),
    Complaint(
        patterns=(
            rf"{_LOSS}.*\bnot\b.*{_DOWN}",
            rf"{_LOSS}.*\b(?:stuck|constant|flat|plateau\w*|same|stagnat\w*|high|stays)\b",
            r"\bnot\b.*\b(?:learn|converg|improv|work|over-?fit)",
            r"\bstuck\b",
            r"learn\w* nothing",
            r"underfit",
        ),
        answer="A loss that does not fall has its cause in the data, the loss call, the gradients or the optimizer.",
        rules=(
            "uncleared-gradients",
            "unstepped-optimizer",
            "excessive-learning-rate",
            "negligible-learning-rate",
            "frozen-model",
            "severed-graph",
            "misaligned-labels",
            "broadcast-loss",
            "double-activation",
        ),
    ),
    Complaint(
        patterns=(
            r"\bslow\w*\b",
            r"takes? (?:too |very |so )?(?:long|forever)",
            r"\bgpu\b.*(?:low|\b0 ?%|zero|idle|not used)",
            r"\bhang(?:s|ing)?\b",
        ),
        answer="The walk measures whether training works, not how fast it is; a profiler answers that (torch.profiler, or "
        "TensorBoard's). These faults also cost time.",
        rules=("mostly-padding", "retained-logits", "endless-epoch", "accelerator-held-by-others"),
    ),
    Complaint(
        patterns=(r"\bover-?fit\w*.*\b(?:one|single|1|a) batch",),
        answer="Overfitting one batch is a test, no fault: a model that works learns one batch by heart within a few dozen "
        "steps. Stage 8 of a check makes it, and says how many of the batch's answers are right at the end. If it cannot be "
        "learned, look at the rate, the loss, and what the forward pass loses.",
        rules=(
            "unlearnable-batch",
            "excessive-learning-rate",
            "negligible-learning-rate",
            "severed-graph",
            "unregistered-parameters",
        ),
    ),
    Complaint(
        patterns=(r"\btpus?\b",),
        answer="For a TPU, put the training into one function and start it with Accelerate's notebook_launcher, or with "
        "`accelerate launch`; give each process its own part of the rows, and pad to one fixed length, because each new shape "
        "is compiled anew. A check on the CPU finds the same faults of data, labels, loss and metrics.",
        rules=("ranks-see-different-data", "mostly-padding"),
    ),
)


_MEMORY = r"(?:memory|v?ram)\b"

QUESTIONS = (
    Complaint(
        patterns=(r"\bn_ctx\b", r"\bn_positions\b.*\bcontext\b"),
        answer="n_ctx is an old name in GPT-2's configuration and sizes nothing: the number of positions is n_positions (1,024 if "
        "it is not set). Write GPT2Config(n_positions=context_length, …). The setup row of a check says so where a script sets "
        "n_ctx alone.",
        rules=("index-beyond-embedding",),
    ),
    Complaint(
        patterns=(r"\bpush_to_hub\b", r"\b(?:push|upload|publish)\w*\b.*\b(?:hub|hugging ?face|hf)\b"),
        answer="push_to_hub sends a model or tokenizer to the Hugging Face Hub and needs a token with write access: `hf auth login`, "
        "or HF_TOKEN in the environment. The Trainer pushes at each save with TrainingArguments(push_to_hub=True, hub_model_id=…) "
        "and once more with trainer.push_to_hub(); a loop of your own calls model.push_to_hub(name) and tokenizer.push_to_hub(name) "
        "after the training. huggingface_hub 1.0 has no Repository any more: use upload_folder. During a check nothing is sent.",
        rules=("removed-api",),
    ),
    Complaint(
        patterns=(
            r"\bnvidia-smi\b",
            rf"\b(?:notebook|process|kernel|session)\b.*\b(?:still|hold|keep|use)\w*\b.*\b{_MEMORY}",
            rf"\b(?:free|release|empty|clear)\w*\b.*\b(?:gpu|cuda|{_MEMORY})",
        ),
        answer="`nvidia-smi` lists the processes on the GPU with the memory of each. A notebook keeps its memory until its kernel is "
        "shut down or restarted (closing the tab does not); a script that hangs, until it is ended: `kill PID`. Inside a process, "
        "`del` what holds the tensors, then gc.collect() and torch.cuda.empty_cache(); after a CUDA error only a restart helps. "
        "TensorFlow takes nearly all memory at its start unless set_memory_growth is called first.",
        rules=("accelerator-held-by-others", "out-of-memory"),
    ),
    Complaint(
        patterns=(
            r"\b(?:ask|asking|get|need|find)\b.*\bhelp\b",
            r"\b(?:report|file|open|write)\b.*\b(?:bug|issue)\b",
            r"\bwhere to (?:ask|post)\b",
        ),
        answer="`trainwright bundle SCRIPT` writes what others need to help: a page with the fault, its line, the way to it, versions and "
        "devices, and a short script that repeats it with made-up values; rows, names and keys are left out. It says whose fault it "
        "looks like, and where to post. Read it before you post it.",
        rules=(),
    ),
    Complaint(
        patterns=(
            rf"\b(?:how much|how many|what|which)\b.*\b(?:{_MEMORY}|gb|gib)",
            rf"\b{_MEMORY}.*\b(?:need|require|estimate|fit)\w*",
            rf"\b(?:need|require|estimate)\w*\b.*\b{_MEMORY}",
        ),
        answer="Without the batch, a training in 32 bits needs 4 bytes for each parameter's weight, 4 for its gradient, and what the "
        "optimizer keeps: 8 with Adam or AdamW, 4 with momentum, nothing with plain SGD; so 16 bytes with AdamW: 2 GB for the 124 "
        "million parameters of GPT-2. What the forward pass keeps comes on top and grows with batch size and length. The setup row "
        "of `trainwright check SCRIPT` gives these numbers for your model before any step is made.",
        rules=("out-of-memory", "accelerator-held-by-others"),
    ),
    Complaint(
        patterns=(
            r"\b(?:compar|try|search|find|choos|pick|tun|best|which|what)\w*\b.*\b(?:learning rates?|lr)\b",
            r"\b(?:learning rates?|lr)\b.*\b(?:find(?:er|ing)?|search|sweep|range test|compar\w*|tuning)\b",
        ),
        answer="Try rates a factor of 3 to 10 apart for a few dozen updates each, with the same rows and seed, and take the largest at "
        "which the loss still falls smoothly: from 1e-5 to 1e-4 to fine-tune a transformer, near 1e-3 for Adam on a new model, near "
        "1e-1 for SGD. Stage 6 of `trainwright check SCRIPT` holds the script's rate against others on one batch, and names one that "
        "learns clearly better.",
        rules=("excessive-learning-rate", "negligible-learning-rate", "hidden-default-rate"),
    ),
)


def complaint_of(text: str) -> Complaint | None:
    """The complaint that a short text expresses, or the question that it asks, if it is one of the tables."""
    said = _plain(text)
    words = len(said.split())
    if not 1 <= words <= MOST_WORDS:
        return None
    known = (*COMPLAINTS, *QUESTIONS) if words >= 2 or said.strip() in LONE_WORDS else QUESTIONS
    return next((one for one in known if any(re.search(pattern, said) for pattern in one.patterns)), None)


def _plain(text: str) -> str:
    """A text in lower case, with every negation written "not"."""
    return " ".join(_NEGATIONS.sub(" not", text.lower().replace("’", "'")).split())
