"""What the Trainer, Accelerate, PEFT and TRL say."""

from __future__ import annotations

from trainwright.frameworks.messages.known import KnownMessage

MESSAGES = (
    KnownMessage(
        texts=("KeyError: 'eval_loss'",),
        type="KeyError",
        meaning="""
        The Trainer looks for the evaluation loss, for the best checkpoint, early stopping or a schedule, and
        evaluation computed none. It computes a loss only if the evaluation set has labels under a name that the
        model's forward takes: `labels`, or what `label_names` says. PEFT models and custom models often hide
        the signature: set `label_names=["labels"]` in TrainingArguments. Check that `compute_metrics` and
        `prediction_step` do not replace the loss, and that the evaluation set keeps its label column.
        """,
        rules=(
            "missing-evaluation-labels",
            "unknown-best-metric",
            "missing-labels",
        ),
    ),
    KnownMessage(
        texts=(
            "The `metric_for_best_model` training argument is set to '…', which is not found in the evaluation metrics",
        ),
        meaning="""
        The message lists the metrics that evaluation returned; the chosen one is not among them.
        `compute_metrics` must return it under that name (the Trainer adds `eval_`), it must be passed to the
        Trainer, and the evaluation set must have labels. If even `eval_loss` is missing, the labels do not
        reach the model: set `label_names`.
        """,
        rules=(
            "unknown-best-metric",
            "missing-evaluation-labels",
        ),
    ),
    KnownMessage(
        texts=(
            "EarlyStoppingCallback requires metric_for_best_model to be defined",
            "EarlyStoppingCallback requires IntervalStrategy of steps or epoch",
            "EarlyStoppingCallback requires load_best_model_at_end",
        ),
        meaning="""
        Early stopping needs to know what to watch and when. Set `load_best_model_at_end=True`,
        `metric_for_best_model="eval_loss"` (or your metric, with `greater_is_better=True` if more is better),
        and the same `eval_strategy` and `save_strategy`.
        """,
        rules=(
            "unknown-best-metric",
            "unmatched-strategies",
        ),
    ),
    KnownMessage(
        texts=("early stopping required metric_for_best_model, but did not find",),
        meaning="""
        This warning means that early stopping is off: evaluation did not return the metric that it watches.
        Compare the name with the keys that evaluation prints; `compute_metrics` must return it, and the
        evaluation set must have labels.
        """,
        rules=(
            "unknown-best-metric",
            "missing-evaluation-labels",
        ),
    ),
    KnownMessage(
        texts=(
            "You have set `args.eval_strategy` to … but you didn't pass an `eval_dataset`",
            "Trainer: evaluation requires an eval_dataset",
        ),
        meaning="""
        Evaluation is switched on and there is no data for it. Pass `eval_dataset=` to the Trainer (split it off
        with `train_test_split`), or set `eval_strategy="no"`.
        """,
    ),
    KnownMessage(
        texts=(
            "No valid checkpoint found in output directory",
            "Can't find a valid checkpoint at",
        ),
        meaning="""
        `resume_from_checkpoint` finds nothing to resume from. With `True`, the output directory must hold a
        `checkpoint-…` folder; on a first run pass False or None, or look first with `get_last_checkpoint`. With
        a path, the folder must hold the model's weights and `trainer_state.json`.
        """,
    ),
    KnownMessage(
        texts=(
            "The train_dataset does not implement __len__, so the number of training steps cannot be inferred",
            "train_dataset does not implement __len__, max_steps has to be specified",
        ),
        meaning="""
        A streamed data set has no length, so an epoch has no end that could be planned. Set `max_steps` (rows x
        epochs / batch size), or use a data set with a length.
        """,
        rules=("endless-epoch",),
    ),
    KnownMessage(
        texts=(
            "Your setup doesn't support bf16/gpu",
            "bf16 mixed precision requires PyTorch",
            "--tf32 requires Ampere",
        ),
        meaning="""
        The hardware lacks this precision: bf16 and TF32 need an NVIDIA GPU from Ampere on (A100, RTX 30). If
        there is no GPU at all, check `torch.cuda.is_available()`. On a T4 or V100 use `fp16=True`; on the CPU,
        `use_cpu=True` or neither.
        """,
    ),
    KnownMessage(
        texts=(
            "fp16 mixed precision requires a device in",
            "FP16 Mixed precision training with AMP or APEX (`--fp16`) and FP16 half precision evaluation",
        ),
        meaning="""
        fp16 needs a GPU, and none is seen or used. Check `torch.cuda.is_available()`; on the CPU, turn `fp16`
        off, or use `bf16` if the CPU supports it.
        """,
    ),
    KnownMessage(
        texts=("The model did not return a loss from the inputs, only the following keys",),
        meaning="""
        The batch had no labels, so the model computed no loss; the message lists what it received. Name the
        column `labels` (a tokenized causal model needs a copy of `input_ids`, or
        `DataCollatorForLanguageModeling(mlm=False)`), keep it through `map` and the collator, and load a class
        with a head for the task (`AutoModelFor…`).
        """,
        rules=(
            "missing-labels",
            "discarded-columns",
        ),
    ),
    KnownMessage(
        texts=("cannot be used as is for training: it only computes hidden states",),
        meaning="""
        The model has no head. Load the class for the task, such as `AutoModelForSequenceClassification` or
        `AutoModelForCausalLM`, instead of `AutoModel`.
        """,
        rules=("missing-labels",),
    ),
    KnownMessage(
        texts=("You cannot perform fine-tuning on purely quantized models",),
        meaning="""
        Weights in 4 or 8 bits cannot be trained themselves. Add an adapter: `model =
        prepare_model_for_kbit_training(model)`, then `get_peft_model(model, LoraConfig(...))`; or load the
        model without quantization.
        """,
        rules=("frozen-model",),
    ),
    KnownMessage(
        texts=(
            "You can't train a model that has been loaded with `device_map='auto'` in any distributed mode",
            "You can't train a model that has been loaded in 8-bit or 4-bit precision on a different device",
        ),
        meaning="""
        `device_map="auto"` spreads one model over the GPUs, and a distributed launch wants one copy for each.
        Either start a single process (`python train.py`), or load each copy on its own GPU: `device_map={"":
        PartialState().process_index}`.
        """,
        rules=("mixed-devices",),
    ),
    KnownMessage(
        texts=("AcceleratorState has already been initialized and cannot be changed",),
        meaning="""
        The first `Accelerator()` or TrainingArguments of a process fixes precision and device for all later
        ones. Create one Accelerator with all options before everything else, pass the same `mixed_precision`,
        and in a notebook restart the kernel, or call `AcceleratorState._reset_state(True)`.
        """,
    ),
    KnownMessage(
        texts=("Unknown mixed_precision mode",),
        meaning="""
        Accelerate knows `no`, `fp16`, `bf16` and `fp8`. For full precision write `no`, not `fp32`.
        """,
    ),
    KnownMessage(
        texts=("No executable batch size found, reached zero",),
        meaning="""
        `auto_find_batch_size` halved the batch size until nothing was left, and memory was still full. The
        model itself, its gradients and the optimizer's state do not fit: use a smaller model, LoRA, 8-bit
        optimizers, or gradient checkpointing. End other processes on the GPU.
        """,
        rules=("out-of-memory",),
    ),
    KnownMessage(
        texts=("The model and the optimizer parameters are not on the same device",),
        meaning="""
        The optimizer was built before the model was moved to its device. Move the model first, then build the
        optimizer, or let `accelerator.prepare(model, optimizer)` move both.
        """,
        rules=(
            "mixed-devices",
            "unregistered-parameters",
        ),
    ),
    KnownMessage(
        texts=("The batch received was empty, your model won't be able to train on it",),
        meaning="""
        All columns of the batch were removed, because none has the name of a parameter of the model's forward.
        Tokenize the data set, rename its columns, or set `remove_unused_columns=False` and write a collator.
        """,
        rules=(
            "discarded-columns",
            "untokenized-dataset",
        ),
    ),
    KnownMessage(
        texts=("Target modules … not found in the base model",),
        meaning="""
        The names in `target_modules` match no layer of this model. Print `[n for n, _ in
        model.named_modules()]`, and take the last part of the layers' names: `q_proj`, `v_proj` (Llama),
        `query`, `value` (BERT), `c_attn` (GPT-2), `query_key_value` (GPT-NeoX). `target_modules="all-linear"`
        takes all linear layers but the head.
        """,
    ),
    KnownMessage(
        texts=("Target module … is not supported. Currently, only the following modules are supported",),
        meaning="""
        `target_modules` names layers that LoRA cannot adapt, such as a norm, an activation or a whole block;
        the message names the module. Name linear or embedding layers. A quantized layer is not recognized if
        bitsandbytes is missing.
        """,
    ),
    KnownMessage(
        texts=("Please specify `target_modules`",),
        meaning="""
        PEFT does not know this architecture, so it cannot choose the layers. Pass `target_modules=[...]` with
        the names of linear layers, or `"all-linear"`.
        """,
    ),
    KnownMessage(
        texts=("Can't find 'adapter_config.json' at",),
        meaning="""
        The folder or repository holds no adapter. If it is a whole model, load it with
        `AutoModel…from_pretrained`. If it is a training's output, the adapter is in a `checkpoint-…` folder, or
        was not saved: `model.save_pretrained(path)`.
        """,
    ),
    KnownMessage(
        texts=(
            "object has no attribute 'gradient_checkpointing_enable'",
            "does not support gradient checkpointing",
        ),
        meaning="""
        The model is not one of transformers, or its architecture has no checkpointing. Turn
        `gradient_checkpointing` off, or pass the transformers model itself instead of a wrapper.
        """,
    ),
    KnownMessage(
        texts=("Trainer.__init__() got an unexpected keyword argument 'tokenizer'",),
        meaning="""
        The argument is now called `processing_class`: `Trainer(..., processing_class=tokenizer)`.
        """,
        rules=("renamed-argument",),
    ),
    KnownMessage(
        texts=(
            "SFTTrainer.__init__() got an unexpected keyword argument",
            "DPOTrainer.__init__() got an unexpected keyword argument",
        ),
        meaning="""
        TRL moved most options from the trainer to its configuration: `dataset_text_field`, `max_length` (once
        `max_seq_length`), `packing` and `beta` belong to `SFTConfig` or `DPOConfig`, which are passed as
        `args`. `tokenizer` is now `processing_class`.
        """,
        rules=("renamed-argument",),
    ),
    KnownMessage(
        texts=("You passed a `PeftModel` instance together with a `peft_config` to the trainer",),
        meaning="""
        The model already has an adapter, and the trainer would add a second one. Pass either the plain model
        with `peft_config`, or the PEFT model alone.
        """,
    ),
    KnownMessage(
        texts=(
            "You set `assistant_only_loss=True`, but the dataset is not conversational",
            "at least one example has no assistant tokens",
        ),
        meaning="""
        The loss would be taken only of the assistant's answers, and they cannot be found. The data needs a
        `messages` column with roles, and the chat template must mark the answers with `{% generation %}`.
        """,
        rules=("all-labels-masked",),
    ),
)
