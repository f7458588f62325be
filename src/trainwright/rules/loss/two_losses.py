"""TW418 two-losses: the framework's loss removes the labels, which the model also needs to build its decoder inputs.

Why it matters: An encoder-decoder model builds its decoder inputs from the labels. Without them it stops, or its
decoder reads the source instead of the target and learns a task that generation never uses.
Evidence: The batch has token labels, and the model was called without them and without decoder inputs.
Error: `You must specify exactly one of input_ids or inputs_embeds`
Error: `You must specify exactly one of decoder_input_ids or decoder_inputs_embeds`
Error: `You have to specify either decoder_input_ids or decoder_inputs_embeds`
Fix (safe): Use DataCollatorForSeq2Seq(tokenizer, model=model), which makes decoder_input_ids from the labels.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.rules.repairs import ChangedCollator
from trainwright.stages import BatchFacts, ForwardFacts, SetupFacts

_DECODER_INPUTS = ("decoder_input_ids", "decoder_inputs_embeds")


@rule("TW418", Severity.ERROR)
def two_losses(batch: BatchFacts, forward: ForwardFacts, setup: SetupFacts) -> Iterator[Finding]:
    """An encoder-decoder that is called with neither labels nor decoder inputs."""
    labels, output = batch.labels, forward.output
    if labels is None or not labels.is_integer or len(labels.shape) != 2 or _DECODER_INPUTS[0] not in batch.accepts:
        return
    if "labels" not in batch.accepts or {"labels", *_DECODER_INPUTS} & {*forward.given}:
        return
    if not forward.given or any(name.isdigit() for name in forward.given):
        return  # what stands in a place without a name is not known
    failure = forward.failure
    if failure is not None and "input_ids" not in failure.message:
        return
    if failure is None and (output is None or len(output.shape) != 3):
        return  # a decoder that reads the source on purpose: a classification
    then = f"the model raised {failure}" if failure else "the decoder gets the source, shifted by one"
    yield Finding(
        severity=Severity.ERROR if failure else Severity.WARNING,
        message=f"{_taker(setup)} removes the labels from the batch, so {setup.model_class} has no decoder "
        f"inputs, which it builds from the labels",
        measured={"given": ", ".join(forward.given), "batch_keys": ", ".join(batch.tensors)},
        where=setup.place(Role.COLLATOR, Role.TRAINER, Role.TRAIN_CALL),
        proof=Proof(f"the model was called with only {', '.join(forward.given)}; {then}"),
        repair=_make_decoder_inputs(batch.label_key or "labels"),
        fix=Fix(does="give the collator the model: DataCollatorForSeq2Seq(tokenizer, model=model)", safety=Safety.SAFE),
    )


def _taker(setup: SetupFacts) -> str:
    """What computes the loss instead of the model."""
    smoothing = setup.arguments.get("label_smoothing_factor")
    if smoothing is not None and smoothing.value:
        return f"label_smoothing_factor={smoothing.value:g}"
    if any(m.name == "compute_loss" for m in setup.overrides):
        return "the script's compute_loss"
    return "compute_loss_func" if "loss" in setup.places else "the framework's loss"


def _make_decoder_inputs(key: str) -> Repair:
    def change(call: Call) -> Call:
        model = call["model"]

        def add(batch: dict[str, object]) -> dict[str, object]:
            return {**batch, "decoder_input_ids": call.tensors.decoder_inputs(model, batch[key])}

        return call.replace(collator=ChangedCollator(call["collator"], add))

    return Repair("make decoder_input_ids from the labels", Seam.TRAINER, change)
