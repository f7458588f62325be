"""What is said when checkpoints and pretrained models are loaded."""

from __future__ import annotations

from trainwright.frameworks.messages.known import KnownMessage

MESSAGES = (
    KnownMessage(
        texts=(
            "Missing key(s) in state_dict",
            "Unexpected key(s) in state_dict",
        ),
        meaning="""
        The names in the checkpoint and in the model differ. If they differ by `module.`, the checkpoint was
        saved from `DataParallel` or DDP: strip that prefix, or save `model.module.state_dict()`; `_orig_mod.`
        comes from `torch.compile` in the same way. If whole groups are missing, the model was built with other
        options, or the file holds a whole checkpoint: load `checkpoint["model"]` or `checkpoint["state_dict"]`.
        `strict=False` leaves the missing layers at random values.
        """,
    ),
    KnownMessage(
        texts=("size mismatch for … copying a param with shape",),
        meaning="""
        The checkpoint and the model have layers of the same name with different sizes. If it is the last layer,
        the number of classes differs: load the others only, and train a new head (in transformers,
        `ignore_mismatched_sizes=True`). If it is the embedding, the vocabulary differs: call
        `resize_token_embeddings(len(tokenizer))` before loading. Otherwise build the model with the options of
        the checkpoint.
        """,
    ),
    KnownMessage(
        texts=(
            "Weights only load failed",
            "Unsupported global: GLOBAL",
        ),
        meaning="""
        Since version 2.6, `torch.load` reads only tensors and plain containers by default, and this file holds
        other objects: a whole model, a configuration or NumPy scalars. If you trust the file, pass
        `weights_only=False`, or allow the named class with `torch.serialization.add_safe_globals`. Better, save
        `model.state_dict()`. A message about an unsupported operand means that the file is no checkpoint at
        all, for example an HTML page or a Git LFS pointer.
        """,
    ),
    KnownMessage(
        texts=(
            "PytorchStreamReader failed",
            "failed finding central directory",
        ),
        meaning="""
        The file is not complete: the download or the save was interrupted, the disk was full, or two processes
        wrote it at once. Download it again, or use an earlier checkpoint. A file of a few hundred bytes is
        usually a Git LFS pointer: run `git lfs pull`. In distributed training, save on one process only.
        """,
    ),
    KnownMessage(
        texts=(
            "unexpected EOF, expected … more bytes. The file might be corrupted",
            "Ran out of input",
        ),
        meaning="""
        The file ends too early. A download or a save was interrupted, the file is empty, or another process was
        still writing it. Download or save it again; remove the file from the cache first.
        """,
    ),
    KnownMessage(
        texts=(
            "invalid load key, '<'",
            "invalid load key, 'v'",
        ),
        meaning="""
        The file is no pickle. `'<'` is an HTML page that was saved instead of the file, and `'v'` is a Git LFS
        pointer (`version https://git-lfs...`): run `git lfs pull`, or download it with its direct link.
        """,
    ),
    KnownMessage(
        texts=("Attempting to deserialize object on a CUDA device but",),
        meaning="""
        The checkpoint was saved from a GPU, and this machine has none. Pass `map_location="cpu"` to
        `torch.load`, and move the model afterwards. If the machine has a GPU, PyTorch does not see it: check
        `torch.cuda.is_available()`.
        """,
    ),
    KnownMessage(
        texts=("Attempting to deserialize object on CUDA device … but torch.cuda.device_count() is",),
        meaning="""
        The checkpoint was saved from a GPU with a number that this machine does not have. Pass
        `map_location="cuda:0"` or `"cpu"` to `torch.load`.
        """,
    ),
    KnownMessage(
        texts=("Can't get attribute '…' on <module '__main__'",),
        meaning="""
        A whole object was pickled, and its class is not where it was: it was defined in the script that saved
        it. Import or define the class under the same name and module, and save `state_dict()` instead of the
        whole model in future.
        """,
    ),
    KnownMessage(
        texts=(
            "Repo id must be in the form 'repo_name' or 'namespace/repo_name'",
            "Repo id must use alphanumeric chars",
        ),
        meaning="""
        The name was taken for a repository on the Hub, because no folder of that path exists: check the path,
        relative to the working directory, and that the checkpoint was written there. A Hub name has at most one
        slash.
        """,
    ),
    KnownMessage(
        texts=("does not appear to have a file named",),
        meaning="""
        The folder or repository lacks that file. For `config.json`, the path points to the wrong folder: a
        Trainer writes models into `checkpoint-…` folders, and an adapter's folder has `adapter_config.json`
        instead (load the base model, then `PeftModel.from_pretrained`). For weights, the repository holds
        another format, such as GGUF or TensorFlow weights. For `preprocessor_config.json` or tokenizer files,
        save the tokenizer or processor next to the model, or load it from the base model.
        """,
    ),
    KnownMessage(
        texts=(
            "Error no file named model.safetensors",
            "Error no file named pytorch_model.bin",
        ),
        meaning="""
        The folder has a configuration but no weights. Look into it: the Trainer saves into `checkpoint-…`, PEFT
        saves `adapter_model.safetensors` (load it with `PeftModel.from_pretrained`), and a run that was stopped
        while saving leaves no weights.
        """,
    ),
    KnownMessage(
        texts=("is not a local folder and is not a valid model identifier listed on",),
        meaning="""
        No folder of that name exists here, and the Hub has no such repository that you may read. Check the
        spelling, including the owner's name. For a private or gated model, log in with `hf auth login`
        (formerly `huggingface-cli login`), or pass `token=`, and accept the terms on its page.
        """,
    ),
    KnownMessage(
        texts=(
            "You are trying to access a gated repo",
            "Access to model … is restricted",
            "Cannot access gated repo",
        ),
        meaning="""
        The model's authors ask for an agreement. Open its page on the Hub with the account that you use, accept
        the terms, wait for approval if it is needed, and log in on this machine with a token of that account
        that may read gated repositories (`hf auth login`).
        """,
    ),
    KnownMessage(
        texts=(
            "We couldn't connect to 'https://huggingface.co' to load",
            "Cannot reach https://huggingface.co",
            "offline mode is enabled",
        ),
        meaning="""
        The Hub cannot be reached and the file is not in the cache. Check the network, a proxy, and whether
        `HF_HUB_OFFLINE` is set. On a cluster, download on the login node first (`hf download NAME`), into a
        cache that the compute nodes see (`HF_HOME`).
        """,
    ),
    KnownMessage(
        texts=("Unrecognized model in … Should have a `model_type` key in its config.json",),
        meaning="""
        The folder's `config.json` does not say which architecture it is. Usually the path points to the wrong
        folder, or to an adapter, or the model belongs to another library. Load it with the class of its
        architecture, or with the library it was made for.
        """,
    ),
    KnownMessage(
        texts=("but Transformers does not recognize this architecture",),
        meaning="""
        The model is newer than the installed transformers, or belongs to another library. Upgrade transformers,
        or load the repository's own code with `trust_remote_code=True` if its page says so.
        """,
    ),
    KnownMessage(
        texts=(
            "Please pass the argument `trust_remote_code=True` to allow custom code to be run",
            "requires you to execute the configuration file in that repo",
            "contains custom code which must be executed",
        ),
        meaning="""
        The model or data set comes with its own Python code. Read that code; if you trust it, pass
        `trust_remote_code=True`, and pin `revision=` to the commit that you read.
        """,
    ),
    KnownMessage(
        texts=("Unrecognized configuration class … for this kind of AutoModel",),
        meaning="""
        The architecture has no model for this task: for example, T5 has no causal head and a plain encoder
        cannot generate. Use the `AutoModelFor…` class for its task (T5 and BART: `AutoModelForSeq2SeqLM`), or
        another model. For a new architecture, upgrade transformers.
        """,
        rules=("wrong-head",),
    ),
    KnownMessage(
        texts=(
            "Can't load tokenizer for",
            "Can't load image processor for",
            "Can't load feature extractor for",
        ),
        meaning="""
        The tokenizer's or processor's files are not in that folder or repository. Training saves only the model
        unless the Trainer is given `processing_class`: load the tokenizer from the base model, or save it next
        to the model with `save_pretrained`. A local folder of the same name as the model also hides the one on
        the Hub.
        """,
    ),
    KnownMessage(
        texts=("Couldn't instantiate the backend tokenizer",),
        meaning="""
        The repository has only a slow tokenizer, and the package that converts it is missing. Install
        `sentencepiece` (and `protobuf` or `tiktoken`, if the message names it), restart the process, and check
        the tokenizer's name.
        """,
    ),
    KnownMessage(
        texts=("You should probably TRAIN this model on a down-stream task",),
        meaning="""
        This is a warning, not an error: the named layers are not in the checkpoint and start at random. For a
        classification head on a pretrained encoder this is expected, and fine-tuning trains it. If it names
        most of the layers, the checkpoint does not fit the class. If it appears when you load your own
        fine-tuned model, the head was not saved, or the class is another one.
        """,
        rules=("frozen-untrained-layers",),
    ),
    KnownMessage(
        texts=("You set `ignore_mismatched_sizes` to `False`, thus raising an error",),
        meaning="""
        A layer of the checkpoint has another size than the model; the report above the error names it. It is
        usually the head, because `num_labels` differs: pass `ignore_mismatched_sizes=True` to start with a new
        head, which must then be trained.
        """,
    ),
    KnownMessage(
        texts=("No such file or directory",),
        type="FileNotFoundError",
        meaning="""
        The path does not exist, as seen from the working directory of the process (print `os.getcwd()`), which
        is not always the script's folder: notebooks, launchers and schedulers start elsewhere. Check the
        spelling and upper and lower case, and that the folder for outputs exists before something is written
        into it.
        """,
    ),
    KnownMessage(
        texts=("Cannot copy out of meta tensor; no data!",),
        meaning="""
        Weights were created on the `meta` device, which holds shapes only, and were never filled. Load the
        model without `device_map` or `low_cpu_mem_usage` tricks, do not call `.to()` on a model with offloaded
        layers, and use `to_empty` plus loading if you build it under `torch.device("meta")`. Layers that the
        checkpoint lacks can be left on `meta`, too.
        """,
    ),
    KnownMessage(
        texts=("Error while deserializing header",),
        meaning="""
        The safetensors file is damaged or is something else: an interrupted download or save, or a Git LFS
        pointer of a few hundred bytes. Delete it, also from the cache, and download it again.
        """,
    ),
)
