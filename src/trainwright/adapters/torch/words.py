"""Wording shared by all torch trainings."""

from __future__ import annotations

from trainwright.stages.words import Words

TORCH = Words(
    without_gradients="under torch.no_grad()",
    layer_list="nn.ModuleList",
    layer_dict="nn.ModuleDict",
    causal_mask="give the attention a causal mask (is_causal=True); is_decoder=True for a model that has that setting",
    embedding_rows="num_embeddings",
    losses={
        "binary_cross_entropy": "nn.BCELoss",
        "binary_cross_entropy_with_logits": "nn.BCEWithLogitsLoss",
        "nll_loss": "nn.NLLLoss",
        "cross_entropy": "nn.CrossEntropyLoss",
        "ctc_loss": "nn.CTCLoss",
    },
    multilabel_loss='nn.BCEWithLogitsLoss (Hugging Face: problem_type="multi_label_classification")',
    unlabelled_rows="mark rows without a label with -100",
    collator="pass collate_fn={value} to the DataLoader",
    drop_last="drop_last=True",
    less_padding="tokenize without padding and pad in the collator (DataCollatorWithPadding), and draw rows of similar "
    "length together (a batch_sampler of the DataLoader)",
    backward="call loss.backward() before the update",
)
