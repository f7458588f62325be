"""The dimensions of a batch are not in the order that the first convolution expects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainwright.core import Finding, Place, Proof, Repair, Role, Severity, Tensors, rule
from trainwright.rules.fixes import safe
from trainwright.rules.repairs import change_batches
from trainwright.stages import BatchFacts, ForwardFacts, ImageFacts, ParameterFacts, SetupFacts

# Axes: rows, channels and one to three of space.
_DIMENSIONS = {"Conv1d": 3, "Conv2d": 4, "Conv3d": 5}
# Images read in their own order are three times smoother than scrambled ones; noise is the same either way.
SMOOTHER = 0.5


@rule("TW212", Severity.ERROR)
def channels_misplaced(batch: BatchFacts, setup: SetupFacts, forward: ForwardFacts) -> Iterator[Finding]:
    """Channels on another axis than the convolution expects, or channels that were made by reshaping."""
    if batch.images is not None and batch.images.found_at is not None:
        if _reaches_convolution(batch.images, forward):
            yield _other_axis(batch.images, setup, forward)
    elif forward.failure is not None:
        yield from _last(batch, setup, forward)
    elif batch.images is not None and batch.images.reread_roughness < SMOOTHER * batch.images.roughness:
        yield _scrambled(batch.images, setup)


def _last(batch: BatchFacts, setup: SetupFacts, forward: ForwardFacts) -> Iterator[Finding]:
    first = next((p for p in forward.parameters if p.module_kind in _DIMENSIONS and p.name.endswith("weight")), None)
    if first is None:
        return
    axes, channels = _DIMENSIONS[first.module_kind], first.shape[1]
    for key, tensor in batch.tensors.items():
        shape = tensor.shape
        if len(shape) == axes and shape[-1] == channels != shape[1]:
            yield Finding(
                message=f"{key} has shape {shape}, with its {channels} channels last; {first.module} expects them "
                f"in dimension 1, which has size {shape[1]}",
                measured={"shape": str(shape), "channels": channels, "axis_1": shape[1]},
                where=_place(setup, forward, first),
                proof=Proof(f"{first.module} has weights for {channels} channels; the model raised {forward.failure}"),
                repair=_permute(key, axes),
                fix=safe(f"move the channels to the front of each row: {_moved(axes)}"),
            )
            return


def _reaches_convolution(images: ImageFacts, forward: ForwardFacts) -> bool:
    """Whether a convolution gets the batch's images unchanged, or the model rejects them."""
    called = [*forward.modules, *([forward.failed_module] if forward.failed_module else [])]
    given = [m.inputs[0].shape for m in called if m.kind.startswith("Conv") and m.inputs]
    return images.shape[1:] in [shape[1:] for shape in given] or (not given and forward.failure is not None)


def _other_axis(images: ImageFacts, setup: SetupFacts, forward: ForwardFacts) -> Finding:
    found, taken = images.found_at or 1, images.taken_at
    channels, there = images.shape[found], images.shape[taken]
    order = (0, 2, 3, 1) if found == 1 else (0, 3, 1, 2)
    return Finding(
        message=f"{images.key} has shape {images.shape}, with its {channels} {'channel' if channels == 1 else 'channels'} "
        f"in dimension {found}; the first convolution expects them in dimension {taken}, which holds {there} lines of pixels",
        measured={
            "shape": str(images.shape),
            "channels": channels,
            f"axis_{taken}": there,
            "roughness": round(images.reread_roughness, 4),
        },
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAINER, Role.TRAIN_CALL),
        proof=Proof(
            f"with the channels in dimension {found}, neighboring values differ by {images.reread_roughness:.2f} "
            f"standard deviations, as pixels do; in noise, by 1.13"
        ),
        # A model that accepts this shape was built for it, and would have to be rebuilt.
        repair=_move_channels(images.key, order, taken) if forward.failure is not None else None,
        fix=safe(
            f"move the channels of the images, np.transpose(images, {order}), and declare the model's input accordingly"
        ),
    )


def _move_channels(key: str, order: tuple[int, ...], axis: int) -> Repair:
    return change_batches(
        f"move the channels of {key} to dimension {axis}",
        lambda batch, tensors: {**batch, key: tensors.permute(batch[key], order)},
    )


def _scrambled(images: ImageFacts, setup: SetupFacts) -> Finding:
    ratio = images.roughness / images.reread_roughness
    rows, channels, height, width = (images.shape[i] for i in ((0, 1, 2, 3) if images.taken_at == 1 else (0, 3, 1, 2)))
    other = (rows, height, width, channels) if images.taken_at == 1 else (rows, channels, height, width)
    order = "last" if images.taken_at == 1 else "first"
    return Finding(
        message=f"{images.key} was reshaped to {images.shape}, not permuted: read with the channels {order}, neighboring "
        f"pixels are {ratio:.1f} times more similar",
        measured={"roughness": round(images.roughness, 4), "reread_roughness": round(images.reread_roughness, 4)},
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.COLLATOR, Role.TRAINER, Role.TRAIN_CALL),
        proof=Proof(
            f"neighbors differ by {images.roughness:.3f} standard deviations on average, and by {images.reread_roughness:.3f} read "
            f"as {other}"
        ),
        repair=_reread(images.key, images.taken_at),
        fix=safe(
            f"write {'permute(2, 0, 1) (or np.transpose)' if images.taken_at == 1 else 'np.transpose'} where the images are reshaped"
        ),
    )


def _place(setup: SetupFacts, forward: ForwardFacts, first: ParameterFacts) -> Place | None:
    where = next((m.where for m in forward.modules if m.name == first.module and m.where), None)
    return (
        setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.COLLATOR, Role.TRAINER, Role.TRAIN_CALL) or where
    )


def _moved(axes: int) -> str:
    order = ", ".join(map(str, (axes - 2, *range(axes - 2))))
    return f"permute({order})"


def _permute(key: str, axes: int) -> Repair:
    return change_batches(
        f"move the channels of {key} to dimension 1",
        lambda batch, tensors: {**batch, key: tensors.permute(batch[key], (0, axes - 1, *range(1, axes - 1)))},
    )


def _reread(key: str, taken_at: int) -> Repair:
    def change(batch: dict[str, Any], tensors: Tensors) -> dict[str, Any]:
        rows, *sizes = batch[key].shape
        if taken_at == 1:
            channels, height, width = sizes
            images = tensors.reshape(batch[key], (rows, height, width, channels))
            return {**batch, key: tensors.permute(images, (0, 3, 1, 2))}
        height, width, channels = sizes
        images = tensors.reshape(batch[key], (rows, channels, height, width))
        return {**batch, key: tensors.permute(images, (0, 2, 3, 1))}

    return change_batches(f"read {key} with the channels {'last' if taken_at == 1 else 'first'}, and permute", change)
