"""What PyTorch says during the backward pass, of optimizers, schedules and loss scaling."""

from __future__ import annotations

from trainwright.frameworks.messages.known import KnownMessage

MESSAGES = (
    KnownMessage(
        texts=("element 0 of tensors does not require grad and does not have a grad_fn",),
        meaning="""
        The loss is not connected to any trainable parameter. In order of frequency: all parameters are frozen
        (`requires_grad = False`, or a PEFT model in inference mode); the forward pass runs under
        `torch.no_grad()` or `inference_mode`; `.detach()`, `.item()`, `.numpy()`, `argmax` or
        `torch.tensor(loss)` cuts the graph between the model and the loss; or gradient checkpointing gets
        inputs that need no gradient: call `model.enable_input_require_grads()`, or pass `use_reentrant=False`.
        """,
        rules=(
            "no-gradient",
            "frozen-model",
            "severed-graph",
        ),
    ),
    KnownMessage(
        texts=("Trying to backward through the graph a second time",),
        meaning="""
        Two backward passes share a part of the graph, and the first one freed it. Most often something computed
        before the loop, or kept from the step before, is used again: a hidden state of a recurrent network
        (detach it between steps), a running sum of losses, embeddings or a regularization term computed once.
        With two losses, add them and call backward once. `retain_graph=True` usually only hides the fault, and
        memory grows.
        """,
        rules=("repeated-backward",),
    ),
    KnownMessage(
        texts=("one of the variables needed for gradient computation has been modified by an inplace operation",),
        meaning="""
        A tensor was changed after it was used and before backward needed it. Look for `+=`, `x[...] =`,
        `relu_`, `nn.ReLU(inplace=True)` on a tensor that is used again, and for `optimizer.step()` between the
        forward and the backward pass of a second loss, as in GANs and actor-critic training. Replace the
        operation by `x = x + ...`, or move the step. `torch.autograd.set_detect_anomaly(True)` shows the
        operation in the forward pass.
        """,
        rules=("in-place-change",),
    ),
    KnownMessage(
        texts=(
            "a leaf Variable that requires grad is being used in an in-place operation",
            "a view of a leaf Variable that requires grad is being used in an in-place operation",
        ),
        meaning="""
        A parameter is changed by `+=`, `[...] =` or a method ending in `_` while gradients are recorded. If you
        set or initialize weights, do it under `with torch.no_grad():`. If it is a computation in forward, write
        it without changing the parameter.
        """,
        rules=("in-place-change",),
    ),
    KnownMessage(
        texts=("grad can be implicitly created only for scalar outputs",),
        meaning="""
        `backward()` needs one number. The loss has several values, because of `reduction="none"`, several GPUs
        in `DataParallel`, or a model output passed as the loss: reduce it with `.mean()` before `backward()`.
        """,
        rules=("unreduced-loss",),
    ),
    KnownMessage(
        texts=("appears to not have been used in the graph",),
        meaning="""
        `torch.autograd.grad` was asked for the gradient of a tensor that the result does not depend on. Check
        that it is the tensor that the forward pass used, not a copy made later (`x.requires_grad_()` after the
        call is too late). If it is meant, pass `allow_unused=True`.
        """,
    ),
    KnownMessage(
        texts=("you can only change requires_grad flags of leaf variables",),
        meaning="""
        `requires_grad` was set on a computed tensor. Freeze the parameters themselves (`for p in
        layer.parameters(): p.requires_grad = False`), and cut a computation with `.detach()`.
        """,
        rules=("ineffective-freeze",),
    ),
    KnownMessage(
        texts=(
            "Inference tensors cannot be saved for backward",
            "Inplace update to inference tensor outside InferenceMode",
        ),
        meaning="""
        A tensor made under `torch.inference_mode()` is used in training: cached features, a frozen encoder's
        output, or state that an evaluation left behind. Use `torch.no_grad()` there, or `x.clone()` outside.
        """,
    ),
    KnownMessage(
        texts=("returned nan values in its 0th output",),
        meaning="""
        Anomaly detection found the first operation whose gradient is NaN; the traceback above it shows the line
        of the forward pass. `SqrtBackward` and `NormBackward` at 0, `LogBackward` at 0, `DivBackward` by 0, and
        `PowBackward` are the usual ones: add a small constant inside, or clamp the input. `torch.where` does
        not help after the fact: the gradient of the branch not taken is NaN, too.
        """,
        rules=(
            "non-finite-gradients",
            "non-finite-activation",
        ),
    ),
    KnownMessage(
        texts=("Attempting to unscale FP16 gradients",),
        meaning="""
        The weights themselves are in fp16, and loss scaling needs fp32 weights. The model was loaded with
        `torch_dtype=torch.float16` (or `dtype`), or converted by `.half()`, and then trained with `fp16=True`
        or a GradScaler. Load it in float32 and let autocast use fp16, or train in bf16 without a scaler. With
        PEFT, convert the trainable adapter weights to float32.
        """,
        rules=("misused-scaler",),
    ),
    KnownMessage(
        texts=("No inf checks were recorded for this optimizer",),
        meaning="""
        `scaler.step(optimizer)` found no gradient in any parameter of this optimizer. Either
        `scaler.scale(loss).backward()` did not run before it, `optimizer.zero_grad()` ran in between, the loss
        does not reach these parameters, or the optimizer holds the parameters of another model or of an old
        copy. With LoRA, check that the adapter is trainable.
        """,
        rules=(
            "misused-scaler",
            "no-gradient",
            "unregistered-parameters",
        ),
    ),
    KnownMessage(
        texts=("Attempted step but _scale is None",),
        meaning="""
        `scaler.step` ran before `scaler.scale(loss)` was ever called. The order is
        `scaler.scale(loss).backward()`, `scaler.step(optimizer)`, `scaler.update()`. Check that `backward()` is
        not called on the unscaled loss.
        """,
        rules=("unscaled-loss",),
    ),
    KnownMessage(
        texts=("unscale_() has already been called on this optimizer since the last update()",),
        meaning="""
        `scaler.unscale_` may run once between two updates. It is called in every step of gradient accumulation,
        or by hand and by the library (clipping in Accelerate or the Trainer): call it only in the step that
        updates, followed by `scaler.step` and `scaler.update()`.
        """,
        rules=("misused-scaler",),
    ),
    KnownMessage(
        texts=("step() has already been called since the last update()",),
        meaning="""
        `scaler.step(optimizer)` ran twice without `scaler.update()`. Call `update()` once after the steps of
        all optimizers.
        """,
        rules=("misused-scaler",),
    ),
    KnownMessage(
        texts=("gradients from `parameters` is non-finite, so it cannot be clipped",),
        meaning="""
        The gradients contain NaN or infinity, and clipping was told to raise. Find the first batch with a loss
        that is not finite; the usual causes are a learning rate that is too high, fp16 overflow, a logarithm or
        a division by 0, and NaN in the data.
        """,
        rules=(
            "non-finite-gradients",
            "exploding-gradients",
            "excessive-learning-rate",
        ),
    ),
    KnownMessage(
        texts=("optimizer got an empty parameter list",),
        meaning="""
        `model.parameters()` is empty, or the filter for trainable parameters leaves none. Layers must be
        attributes of an `nn.Module` or be held by `nn.ModuleList` or `nn.ModuleDict`; a Python list hides them.
        Generators can be read only once: passing the same `parameters()` generator twice gives an empty list
        the second time.
        """,
        rules=(
            "unregistered-parameters",
            "frozen-model",
        ),
    ),
    KnownMessage(
        texts=("is not iterable",),
        type="TypeError",
        meaning="""
        A single object is used where a list is expected. For an optimizer, pass `model.parameters()`, not the
        model. For a loop, check that a loader is iterated, not a data set class or a number (`range(epochs)`,
        not `epochs`). `'NoneType' object is not iterable` means that a function returned nothing.
        """,
    ),
    KnownMessage(
        texts=("can't optimize a non-leaf Tensor",),
        meaning="""
        The optimizer got a computed tensor. `torch.randn(3, requires_grad=True).cuda()` is a copy, not the
        leaf: create it on the device (`device="cuda"`), or wrap it in `nn.Parameter`.
        """,
    ),
    KnownMessage(
        texts=(
            "Invalid learning rate:",
            "Invalid beta parameter at index",
            "Invalid weight_decay value",
            "Invalid momentum value",
        ),
        meaning="""
        The optimizer rejects the value in the message. A negative rate often comes from a search space in the
        wrong scale, and a text from a configuration file: YAML reads `1e-4` as text; write `1.0e-4`, or convert
        it with `float`.
        """,
    ),
    KnownMessage(
        texts=(
            "not supported between instances of 'float' and 'str'",
            "'<=' not supported between instances of 'float' and 'str'",
        ),
        meaning="""
        A text is compared with a number. In training scripts it is usually a hyperparameter from a
        configuration file or the command line: YAML reads `1e-4` as text, and `argparse` returns text without
        `type=float`. Convert it where it is read.
        """,
    ),
    KnownMessage(
        texts=("some parameters appear in more than one parameter group",),
        meaning="""
        Two parameter groups share a parameter, usually `model.parameters()` next to the parameters of one of
        its layers, or tied weights. Put each parameter into one group: filter the second list by `id`.
        """,
    ),
    KnownMessage(
        texts=(
            "loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
            "loaded state dict has a different number of parameter groups",
        ),
        meaning="""
        The optimizer's checkpoint belongs to a model with another number of trainable parameters: layers were
        added, removed, frozen or unfrozen since it was saved. Freeze the same layers before you build the
        optimizer, or start with a fresh optimizer and load only the model's weights.
        """,
    ),
    KnownMessage(
        texts=("param 'initial_lr' is not specified in param_groups",),
        meaning="""
        A schedule was created with `last_epoch` other than -1 on a fresh optimizer. Load the optimizer's state
        before you create the schedule, or leave `last_epoch=-1` and load the schedule's own state dict.
        """,
    ),
    KnownMessage(
        texts=(
            "ReduceLROnPlateau.step() missing 1 required positional argument: 'metrics'",
            "step() missing 1 required positional argument: 'metrics'",
        ),
        meaning="""
        `ReduceLROnPlateau` needs the value to watch: `scheduler.step(val_loss)`, once after each validation. In
        a loop with several schedules, call this one separately.
        """,
    ),
    KnownMessage(
        texts=("step() missing 1 required positional argument: 'closure'",),
        meaning="""
        `LBFGS` evaluates the loss several times in one step and needs a function that does it: define
        `closure()` with `zero_grad`, the loss and `backward`, return the loss, and call
        `optimizer.step(closure)`. A GradScaler does not support this.
        """,
    ),
    KnownMessage(
        texts=("is not an Optimizer",),
        type="TypeError",
        meaning="""
        A schedule was given a model, or a wrapper of the optimizer that it does not know. Pass the torch
        optimizer itself, before it is wrapped.
        """,
    ),
    KnownMessage(
        texts=("attempting to assign a gradient of size",),
        meaning="""
        A gradient of another shape was assigned to `.grad`: gradients of another model or of another parameter
        order. Match them by name instead of by position.
        """,
    ),
    KnownMessage(
        texts=("cudnn RNN backward can only be called in training mode",),
        meaning="""
        cuDNN needs training mode to compute gradients of a recurrent layer. The model is still in evaluation
        mode, often because an evaluation called `model.eval()` and nothing called `model.train()` again: call
        it at the start of every epoch. For gradients in evaluation mode, run it under
        `torch.backends.cudnn.flags(enabled=False)`.
        """,
        rules=("inactive-training-mode",),
    ),
    KnownMessage(
        texts=(
            "Recomputed values for the following tensors have different metadata",
            "A different number of tensors was saved during the original forward and recomputation",
        ),
        meaning="""
        Gradient checkpointing computes the forward pass twice, and the second time it ran differently. Causes
        are a cache (`use_cache=True`: set it to False), code that depends on a counter or on random numbers
        outside torch, autocast or a dtype changed in between, and layers that change their own state.
        """,
    ),
    KnownMessage(
        texts=(
            "None of the inputs have requires_grad=True. Gradients will be None",
            "none of output has requires_grad=True, this checkpoint() is not necessary",
        ),
        meaning="""
        Gradient checkpointing in its reentrant form passes gradients only if an input of the block needs them,
        and with a frozen embedding (LoRA, a frozen backbone) none does. Pass `use_reentrant=False`
        (`gradient_checkpointing_kwargs={"use_reentrant": False}`), or call
        `model.enable_input_require_grads()`.
        """,
        rules=(
            "no-gradient",
            "frozen-model",
        ),
    ),
)
