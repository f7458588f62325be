"""What people ask that is no fault: settings, commands and numbers, each with a short answer."""

from __future__ import annotations

from trainwright.explain.complaint import Complaint

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
