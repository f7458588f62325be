"""What transformers and tokenizers say of texts, tokens and model calls."""

from __future__ import annotations

from trainwright.frameworks.messages.known import KnownMessage

MESSAGES = (
    KnownMessage(
        texts=(
            "You have to specify either input_ids or inputs_embeds",
            "You must specify exactly one of input_ids or inputs_embeds",
        ),
        meaning="""
        The model was called without token ids. The data set was not tokenized, or its columns have other names,
        so that the Trainer removed them; or the batch was passed as one argument (`model(batch)`): write
        `model(**batch)`. For an encoder-decoder model it is the decoder that lacks ids: pass `labels`, and do
        not remove them from the batch before the call (label smoothing and a custom loss do that).
        """,
        rules=(
            "untokenized-dataset",
            "discarded-columns",
            "two-losses",
        ),
    ),
    KnownMessage(
        texts=(
            "You have to specify either decoder_input_ids or decoder_inputs_embeds",
            "You cannot specify both input_ids and inputs_embeds at the same time",
        ),
        meaning="""
        The model builds the decoder's input from `labels`, and the batch has none. Add tokenized targets as
        `labels` (`tokenizer(text_target=...)`), and use a collator that keeps them, such as
        `DataCollatorForSeq2Seq`. Pass either ids or embeddings, not both.
        """,
        rules=(
            "two-losses",
            "missing-labels",
        ),
    ),
    KnownMessage(
        texts=("Asking to pad but the tokenizer does not have a padding token",),
        meaning="""
        GPT-2, Llama and other decoder-only models come without a padding token. Set `tokenizer.pad_token =
        tokenizer.eos_token`, and for classification `model.config.pad_token_id = tokenizer.pad_token_id`. If
        the model should learn where a text ends, a collator that masks padding would then mask the end, too:
        add a token of its own with `add_special_tokens({"pad_token": "[PAD]"})` and resize the embedding.
        """,
        rules=(
            "unmasked-padding",
            "masked-end-of-sequence",
        ),
    ),
    KnownMessage(
        texts=("Unable to create tensor, you should probably activate truncation and/or padding",),
        meaning="""
        The tokenizer or collator cannot make one tensor from rows of different lengths, or from texts; the
        message names the column. `input_ids`: pass `padding=True, truncation=True`, or pad in the collator.
        `labels`: they are per-token lists (use `DataCollatorForTokenClassification` or
        `DataCollatorForSeq2Seq`), or still texts (map them to numbers). Other text columns must be removed
        before collation.
        """,
        rules=(
            "ragged-batch",
            "unpadded-labels",
            "string-labels",
        ),
    ),
    KnownMessage(
        texts=(
            "text input must be of type `str`",
            "TextEncodeInput must be Union",
            "TextInputSequence must be str",
        ),
        meaning="""
        The tokenizer got something else than text. Usually a column of a pandas or CSV file has missing values,
        which are `None` or NaN: drop or fill those rows. Otherwise pass `list(df["text"])` instead of a series,
        convert numbers with `str`, and check that a pair of texts is passed as two arguments. Text that is
        already tokenized must be a list of strings with `is_split_into_words=True`.
        """,
        rules=("non-finite-data",),
    ),
    KnownMessage(
        texts=("Token indices sequence length is longer than the specified maximum sequence length for this model",),
        meaning="""
        A warning that the text has more tokens than the model has positions; the model itself would then fail
        with an index error. Pass `truncation=True, max_length=...`, or split long texts into parts
        (`return_overflowing_tokens=True, stride=...`). It is harmless only if you cut the ids into blocks
        afterwards.
        """,
        rules=(
            "tokens-beyond-vocabulary",
            "index-beyond-embedding",
        ),
    ),
    KnownMessage(
        texts=("tokenizer.chat_template is not set",),
        meaning="""
        The tokenizer has no chat template, because it belongs to a base model, not to a chat model. Use the
        chat model's tokenizer, set `tokenizer.chat_template`, or format the prompts yourself.
        """,
    ),
    KnownMessage(
        texts=(
            "Conversation roles must alternate user/assistant",
            "System role not supported",
        ),
        meaning="""
        The chat template of this model rejects the order of the messages. Start with a user message (after at
        most one system message), alternate the roles, and merge messages of the same role. If the template
        knows no system role, put that text in front of the first user message.
        """,
    ),
    KnownMessage(
        texts=(
            "number too small to fit in target type",
            "can't convert negative int to unsigned",
            "out of range integral type conversion attempted",
        ),
        meaning="""
        `tokenizer.decode` got a negative id: the -100 that marks ignored labels, or the padding of predictions.
        Replace it first: `np.where(labels != -100, labels, tokenizer.pad_token_id)`. If `predictions` are
        scores, take the argmax, or set `predict_with_generate=True`.
        """,
        rules=("crashing-metrics",),
    ),
    KnownMessage(
        texts=("This tokenizer does not have a mask token which is necessary for masked language modeling",),
        meaning="""
        The collator masks tokens for a masked language model, and this tokenizer belongs to a causal one. For
        GPT-like models pass `mlm=False`; for BERT-like ones load their own tokenizer.
        """,
        rules=("foreign-tokenizer",),
    ),
    KnownMessage(
        texts=("Cannot handle batch sizes > 1 if no padding token is defined",),
        meaning="""
        The model must find each row's last token and does not know the padding token. Set both:
        `tokenizer.pad_token = tokenizer.eos_token` and `model.config.pad_token_id = tokenizer.pad_token_id`.
        """,
        rules=("unmasked-padding",),
    ),
    KnownMessage(
        texts=("but `max_length` is set to … This can lead to unexpected behavior",),
        meaning="""
        The prompt is already as long as `max_length`, which counts the prompt, too. Use `max_new_tokens`
        instead.
        """,
    ),
    KnownMessage(
        texts=("The following `model_kwargs` are not used by the model",),
        meaning="""
        `generate` got an argument that neither it nor the model knows: a misspelled option, or `token_type_ids`
        from a tokenizer of another model. Fix the name, or pass `return_token_type_ids=False` to the tokenizer.
        """,
        rules=("foreign-tokenizer",),
    ),
    KnownMessage(
        texts=("A decoder-only architecture is being used, but right-padding was detected",),
        meaning="""
        The prompts are padded on the right, so the model continues from padding tokens, and its output is
        wrong. Set `tokenizer.padding_side = "left"` for generation. For training, right padding is fine.
        """,
    ),
    KnownMessage(
        texts=("Setting `pad_token_id` to `eos_token_id`",),
        meaning="""
        A note, not an error: `generate` needs a padding token, the model has none, and the end token is used.
        Pass `pad_token_id=tokenizer.eos_token_id` to silence it.
        """,
    ),
    KnownMessage(
        texts=("FlashAttention2 has been toggled on, but it cannot be used due to the following error",),
        meaning="""
        The package `flash-attn` is missing or does not fit this GPU or PyTorch. Install it for your versions of
        CUDA and PyTorch, or choose `attn_implementation="sdpa"`, which needs no package.
        """,
    ),
    KnownMessage(
        texts=(
            "Using `bitsandbytes` … quantization requires",
            "You need to install `bitsandbytes` in order to use bitsandbytes optimizers",
        ),
        meaning="""
        The package bitsandbytes is missing, too old, or was installed in another environment. Install it (`pip
        install -U bitsandbytes`), restart the process, and check that it finds the GPU: `python -m
        bitsandbytes`.
        """,
    ),
    KnownMessage(
        texts=(
            "requires `accelerate`",
            "Using the `Trainer` with `PyTorch` requires `accelerate",
        ),
        meaning="""
        Accelerate is missing or too old. `pip install -U accelerate`, and in a notebook restart the kernel: a
        package that was imported before stays at its old version.
        """,
    ),
    KnownMessage(
        texts=(
            "is not a valid OptimizerNames, please select one of",
            "is not a valid SchedulerType, please select one of",
        ),
        meaning="""
        The name of the optimizer or schedule is not one of those listed in the message. Names change between
        versions: `adamw_hf` became `adamw_torch`.
        """,
        rules=("renamed-argument",),
    ),
)
