"""Labels of tokens, and heads for tokens."""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Seam, Severity, rule
from trainwright.rules.fixes import safe, set_keyword, unsafe
from trainwright.stages import IGNORED_LABEL, BatchFacts, ForwardFacts, LossCall, LossFacts, SetupFacts

# Outputs that depend on later tokens belong to a masked model; sums in another order differ by 1e-6.
CAUSAL_WITHIN = 1e-3
# A collator for masked models puts the mask at 80 % of the labels, which are 15 % of all positions.
MASKED_SHARE, FEW_LABELS = 0.6, 0.5
_BINARY = "binary_cross_entropy_with_logits"


@rule("TW408", Severity.ERROR)
def wrong_head(
    loss: LossFacts, batch: BatchFacts, setup: SetupFacts, forward: ForwardFacts | None
) -> Iterator[Finding]:
    """A loss that raised because the numbers of score vectors and labels differ: one per row versus one per token."""
    if forward is not None and _is_of_masked_model(batch, forward):
        yield _masked(batch, setup)
        return
    call, labels = loss.call, batch.labels
    if call is None or call.failure is None or labels is None:
        return
    if _real_labels(call):
        yield _one_output(call, setup)
        return
    if call.function != "cross_entropy":
        return
    if "batch_size" not in call.failure.message and "batch size" not in call.failure.message:
        return
    given, wanted = _vectors(call.inputs.shape), _vectors((*call.targets.shape, 1))
    per_token = len(labels.shape) == 2 and labels.shape[1] > 1
    one_a_row = labels.shape in ((batch.rows,), (batch.rows, 1))
    if per_token and given == batch.rows and wanted == batch.rows * labels.shape[1]:
        message = (
            f"there is one label per token ({labels.shape}), but the model outputs {given} score vectors, one per row"
        )
        fix = "use a head for tokens (AutoModelForTokenClassification), or give each row one label"
        repair = None
    elif one_a_row and given > batch.rows and given % batch.rows == 0 and wanted == batch.rows:
        message = (
            f"there is one label per row ({labels.shape}), but the model outputs {given} score vectors, one per token"
        )
        fix = "use a head for whole rows (AutoModelForSequenceClassification), or give each token a label"
        repair = _first_of_each(batch.rows)
    else:
        return
    yield Finding(
        message=f"{message} ({setup.model_class})",
        measured={"score_vectors": given, "labels": wanted, "rows": batch.rows},
        where=setup.place(Role.MODEL, Role.TRAINER),
        proof=Proof(f"{call.failure.type}: {call.failure.message}"),
        repair=repair,
        fix=Fix(does=fix),
    )


def _is_of_masked_model(batch: BatchFacts, forward: ForwardFacts) -> bool:
    """Whether a model that sees no later tokens gets labels where tokens were masked."""
    mask, leak = batch.mask, forward.future_leak
    if mask is None or not mask.live or not forward.causal or leak is None or leak > CAUSAL_WITHIN:
        return False
    return mask.masked_live >= MASKED_SHARE * mask.live and mask.live <= FEW_LABELS * mask.positions


def _masked(batch: BatchFacts, setup: SetupFacts) -> Finding:
    mask, where = batch.mask, setup.place(Role.COLLATOR)
    assert mask is not None
    collator = "DataCollatorForLanguageModeling"
    edits = set_keyword(where, "mlm", "False", collator)
    return Finding(
        message=f"{setup.model_class} predicts the next token, but the batch is made for a masked model: {mask.live} of "
        f"{mask.positions} positions have a label, and {mask.masked_live} of these hold the mask token as input",
        measured={"labels": mask.live, "masked": mask.masked_live, "positions": mask.positions},
        where=where or setup.place(Role.TRAIN_DATASET_MADE, Role.TRAINER),
        proof=Proof("its outputs do not change when only later tokens do, and its labels stand at mask tokens"),
        fix=safe(f"{collator}(tokenizer, mlm=False); mlm=True is its default", edits)
        if batch.collator == collator
        else Fix(does="give a causal model the input tokens as labels, and mask nothing"),
    )


def _real_labels(call: LossCall) -> bool:
    """Whether one real number per row was compared with several scores per row."""
    scores, targets = call.inputs.shape, call.targets
    if call.function != _BINARY or not targets.is_float or len(scores) != 2 or scores[1] < 2:
        return False
    if targets.shape not in (scores[:1], (*scores[:1], 1)):
        return False
    classes = bool(call.target_values) and all(v == int(v) and 0 <= v < scores[1] for v in call.target_values)
    return not classes


def _one_output(call: LossCall, setup: SetupFacts) -> Finding:
    width, targets = call.inputs.shape[1], call.targets
    return Finding(
        message=f"the labels are real numbers from {targets.minimum:.3g} to {targets.maximum:.3g}, one per row, but the "
        f"head outputs {width} scores per row ({setup.model_class})",
        measured={"outputs": width, "smallest_label": targets.minimum or 0.0, "largest_label": targets.maximum or 0.0},
        where=setup.place(Role.MODEL, Role.TRAINER),
        proof=Proof(f"{call.failure.type}: {call.failure.message}" if call.failure else ""),
        repair=Repair("take the first score as the value, and compute mse_loss", Seam.LOSS, _as_regression),
        fix=Fix(does="give the model one output for a regression (num_labels=1)"),
    )


def _as_regression(call: Call) -> Call:
    scores, targets = call["logits"], call["targets"]
    if call["function"] != _BINARY or len(scores.shape) != 2:
        return call
    return call.replace(function="mse_loss", logits=scores[:, 0], targets=call.tensors.reshape(targets, (len(scores),)))


def _vectors(shape: tuple[int, ...]) -> int:
    """Number of score vectors in a shape (N, C) or (N, C, …)."""
    count = shape[0] if shape else 0
    for size in shape[2:]:
        count *= size
    return count


def _first_of_each(rows: int) -> Repair:
    def change(call: Call) -> Call:
        scores = call["logits"]
        if call["function"] != "cross_entropy" or len(scores.shape) != 2 or len(scores) == len(call["targets"]):
            return call
        count = len(call["targets"])
        return call.replace(logits=call.tensors.reshape(scores, (count, -1, scores.shape[1]))[:, 0])

    return Repair("score each row by its first token", Seam.LOSS, change)


@rule("TW411", Severity.ERROR)
def labels_shifted_twice(loss: LossFacts, batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Labels that reach the model as next tokens and the loss as the tokens after those."""
    mask = batch.mask
    if loss.token_offset != 2 or mask is None or not mask.shifted_by_one or batch.label_key is None:
        return
    in_items = batch.label_key in batch.item_columns
    made = Role.TRAIN_DATASET_MADE
    roles = (made, Role.TRAIN_DATASET) if in_items else (Role.COLLATOR, made)
    yield Finding(
        message="the labels are the input tokens shifted by one, and the model shifts them again: at each position, the "
        "target is the token 2 positions later instead of the next token",
        measured={"places": loss.token_offset, "live_positions": mask.live},
        where=setup.place(*roles, Role.TRAINER),
        proof=Proof("each target at the loss call equals the input token two positions later"),
        repair=_move_back(batch.label_key),
        fix=safe("set labels to a copy of input_ids: the model shifts them itself"),
    )


def _move_back(key: str) -> Repair:
    def change(call: Call) -> Call:
        labels = call.tensors.to_numpy(call[key]).copy()
        labels[:, 1:] = labels[:, :-1].copy()
        labels[:, 0] = IGNORED_LABEL
        return call.replace(**{key: call.tensors.like(labels, call[key])})

    return Repair("shift the labels back by one", Seam.BATCH, change)


@rule("TW463", Severity.ERROR, raises=False)
def unshifted_labels(loss: LossFacts, forward: ForwardFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A loss of a causal model against its own input tokens."""
    leak = forward.future_leak
    if loss.token_offset != 0 or leak is None or leak > CAUSAL_WITHIN or loss.call is None:
        return
    yield Finding(
        message="each target is the input token at the same position instead of the next one: the model only has to repeat "
        "what it sees",
        measured={"offset": 0, "targets": str(loss.call.targets.shape)},
        where=loss.call.at or setup.place(Role.COLLATOR, Role.TRAIN_DATASET_MADE, Role.MODEL),
        proof=Proof(
            "every target equals the input token at its position, and outputs do not change when only later tokens do"
        ),
        fix=unsafe("shift them against each other: give the model tokens[:, :-1] and the loss tokens[:, 1:]"),
    )
