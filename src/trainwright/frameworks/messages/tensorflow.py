"""What TensorFlow says of tensors, graphs and input pipelines."""

from __future__ import annotations

from trainwright.frameworks.messages.known import KnownMessage

MESSAGES = (
    KnownMessage(
        texts=("root error(s) found",),
        wraps=True,
        meaning="""
        TensorFlow lists several errors, of which one is usually the cause. Read on below this line: each is
        numbered, with its operation; labels or token ids out of range and shapes that do not fit are the most
        frequent. With `run_eagerly=True` in `compile`, the traceback shows the line.
        """,
    ),
    KnownMessage(
        texts=(
            "Using a symbolic `tf.Tensor` as a Python `bool` is not allowed",
            "using a `tf.Tensor` as a Python `bool` is not allowed",
        ),
        meaning="""
        Inside a compiled step, the value of a tensor is not known yet, so `if` cannot test it. Use `tf.cond` or
        `tf.where` (`keras.ops.where`), or test a property that is known, such as `tf.executing_eagerly()` or a
        shape. For debugging, compile with `run_eagerly=True`.
        """,
    ),
    KnownMessage(
        texts=(
            "Iterating over a symbolic `tf.Tensor` is not allowed",
            "iterating over `tf.Tensor` is not allowed",
        ),
        meaning="""
        A Python loop over a tensor cannot be compiled here. Use `tf.map_fn`, `tf.unstack` (for a known length),
        or a vectorized operation.
        """,
    ),
    KnownMessage(
        texts=(
            "'SymbolicTensor' object has no attribute 'numpy'",
            "'Tensor' object has no attribute 'numpy'",
        ),
        meaning="""
        `.numpy()` works only outside compiled code. In a model, a loss or a metric, compute with TensorFlow or
        `keras.ops` instead; `tf.py_function` can call NumPy in an input pipeline. For debugging,
        `run_eagerly=True` makes it work, slowly.
        """,
        rules=("severed-graph",),
    ),
    KnownMessage(
        texts=("is out of scope and cannot be used here",),
        meaning="""
        A tensor made inside a loop or a `tf.function` was stored and used outside. Return it, or collect values
        in a `tf.TensorArray`; do not append to Python lists or attributes inside.
        """,
    ),
    KnownMessage(
        texts=("Incompatible shapes: […] vs. […]",),
        meaning="""
        Two tensors cannot be broadcast. With a loss or a metric, the output and the targets differ: compare
        `model.output_shape` with the shape of the targets; a last batch that is smaller breaks code with a
        fixed batch size.
        """,
        rules=(
            "broadcast-loss",
            "outputs-per-step",
        ),
    ),
    KnownMessage(
        texts=("Matrix size-incompatible: In[0]:",),
        meaning="""
        A matrix product has factors whose inner dimensions differ. The input has another number of features
        than the layer was built for; or, in your own code, a factor must be transposed.
        """,
        rules=("layer-size-mismatch",),
    ),
    KnownMessage(
        texts=("Can't convert non-rectangular Python sequence to Tensor",),
        meaning="""
        A list has rows of different lengths. Pad them (`keras.utils.pad_sequences`), or use
        `tf.ragged.constant` and layers that accept ragged tensors.
        """,
        rules=("ragged-batch",),
    ),
    KnownMessage(
        texts=(
            "EagerTensor' object does not support item assignment",
            "SymbolicTensor' object does not support item assignment",
        ),
        meaning="""
        Tensors of TensorFlow cannot be changed in place. Use `tf.where`, `tf.tensor_scatter_nd_update`, or a
        `tf.Variable` with `assign`.
        """,
        rules=("in-place-change",),
    ),
    KnownMessage(
        texts=("Input to reshape is a tensor with … values, but the requested shape has",),
        meaning="""
        The number of values does not fit the new shape. Often the batch size is written into it, and the last
        batch is smaller: use -1 for that dimension. Otherwise the images have another size or number of
        channels than expected.
        """,
        rules=(
            "fixed-batch-size",
            "layer-size-mismatch",
        ),
    ),
    KnownMessage(
        texts=("yielded an element of shape … where an element of shape … was expected",),
        meaning="""
        The `output_signature` of `from_generator` does not fit what the generator yields; the message gives
        both. Use `None` for dimensions that vary, and `padded_batch` to batch them.
        """,
    ),
    KnownMessage(
        texts=("A non-persistent GradientTape can only be used to compute one set of gradients",),
        meaning="""
        A tape is used up by its first `gradient` call. Ask for all gradients in one call (a list of variables),
        or create `tf.GradientTape(persistent=True)` and delete it afterwards.
        """,
        rules=("repeated-backward",),
    ),
    KnownMessage(
        texts=("No gradients provided for any variable",),
        meaning="""
        The loss does not depend on any trainable variable. Causes: `argmax`, `tf.round` or a NumPy computation
        between the output and the loss; the forward pass outside the tape; `trainable = False` on every layer;
        or a loss that ignores `y_pred`.
        """,
        rules=(
            "no-gradient",
            "severed-graph",
        ),
    ),
    KnownMessage(
        texts=(
            "tf.function-decorated function tried to create variables on non-first call",
            "tf.function only supports singleton tf.Variables created on the first call",
        ),
        meaning="""
        Layers or variables are created inside `call` or a `tf.function`. Create them in `__init__` or `build`.
        A function that is compiled for a second model or optimizer has the same problem: make a new
        `tf.function` for it.
        """,
        rules=("rebuilt-layers",),
    ),
    KnownMessage(
        texts=(
            "OOM when allocating tensor with shape",
            "failed to allocate memory",
            "Dst tensor is not initialized",
        ),
        meaning="""
        The device's memory is full; the message gives the tensor and the device. Reduce the batch size or the
        image size, use `mixed_float16`, and look in `nvidia-smi` for other processes. TensorFlow takes all
        memory at the start, unless `tf.config.experimental.set_memory_growth` is set.
        """,
        rules=(
            "out-of-memory",
            "accelerator-held-by-others",
        ),
    ),
    KnownMessage(
        texts=(
            "Could not find cuda drivers on your machine, GPU will not be used",
            "Cannot dlopen some GPU libraries",
        ),
        meaning="""
        A warning that TensorFlow runs on the CPU. Install the GPU build (`pip install "tensorflow[and-cuda]"`
        on Linux), check `nvidia-smi`, and `tf.config.list_physical_devices("GPU")`. Native Windows has no GPU
        support since 2.11: use WSL2.
        """,
    ),
    KnownMessage(
        texts=(
            "DNN library initialization failed",
            "Failed to get convolution algorithm. This is probably because cuDNN failed to initialize",
            "No DNN in stream executor",
        ),
        meaning="""
        cuDNN could not start. Either the GPU's memory is taken (end other processes, set memory growth), or the
        installed cuDNN and CUDA do not fit this TensorFlow.
        """,
        rules=(
            "out-of-memory",
            "accelerator-held-by-others",
        ),
    ),
    KnownMessage(
        texts=(
            "module 'tensorflow' has no attribute 'Session'",
            "module 'tensorflow' has no attribute 'placeholder'",
            "module 'tensorflow' has no attribute 'contrib'",
        ),
        meaning="""
        The code was written for TensorFlow 1. Use `tf.compat.v1` with `tf.compat.v1.disable_eager_execution()`
        to run it as it is; `tf.contrib` is gone for good.
        """,
        rules=("removed-api",),
    ),
    KnownMessage(
        texts=(
            "OUT_OF_RANGE: End of sequence",
            "Your input ran out of data; interrupting training",
        ),
        meaning="""
        The data ended before the planned number of steps. `steps_per_epoch` x `epochs` must not be more than
        the batches there are: leave `steps_per_epoch` out, or add `.repeat()`. `End of sequence` alone, as a
        log line, is harmless.
        """,
        rules=("exhausted-data",),
    ),
    KnownMessage(
        texts=("Dimensions … and … are not compatible",),
        meaning="""
        `from_tensor_slices` or a static shape got sizes that differ: usually inputs and labels with different
        numbers of rows. Print the shapes of both.
        """,
        rules=("misaligned-labels",),
    ),
    KnownMessage(
        texts=("was expected to be a … tensor but is a … tensor",),
        meaning="""
        TensorFlow does not convert dtypes by itself. Cast one side: `tf.cast(x, tf.float32)`; NumPy arrays are
        float64 and integers int64 by default.
        """,
    ),
)
