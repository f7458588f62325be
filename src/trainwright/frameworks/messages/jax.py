"""What JAX says of traced values, shapes and devices."""

from __future__ import annotations

from trainwright.frameworks.messages.known import KnownMessage

MESSAGES = (
    KnownMessage(
        texts=(
            "Attempted boolean conversion of traced array",
            "TracerBoolConversionError",
        ),
        meaning="""
        Inside `jit`, `grad` or `vmap`, a traced value is used in `if`, `while`, `and` or `assert`. Use
        `jnp.where` or `jax.lax.cond`/`while_loop`; if the value is an option, not data, mark its argument with
        `static_argnames`.
        """,
    ),
    KnownMessage(
        texts=(
            "Abstract tracer value encountered where concrete value is expected",
            "ConcretizationTypeError",
        ),
        meaning="""
        A traced value is used where Python needs a number, such as `float(x)`, `int(x)`, a shape or a range.
        Use `x.astype(float)` to convert, keep the computation in `jnp`, and pass sizes as static arguments
        (`static_argnames`). For logging use `jax.debug.print`, or return the value.
        """,
    ),
    KnownMessage(
        texts=(
            "The numpy.ndarray conversion method __array__() was called on traced array",
            "TracerArrayConversionError",
        ),
        meaning="""
        NumPy was called on a traced value. Use `jnp` instead of `np` inside transformed functions, or
        `jax.pure_callback`. If the value indexes a NumPy array, convert that array with `jnp.asarray` first.
        """,
    ),
    KnownMessage(
        texts=(
            "The __index__() method was called on traced array",
            "TracerIntegerConversionError",
        ),
        meaning="""
        A traced value is used as an index of a list, in `range` or as a size. Index a `jnp` array instead, use
        `jax.lax.fori_loop`, or make the argument static.
        """,
    ),
    KnownMessage(
        texts=(
            "Array boolean indices must be concrete",
            "NonConcreteBooleanIndexError",
        ),
        meaning="""
        `x[mask]` has a size that depends on the data, which `jit` cannot compile. Use `jnp.where(mask, x, 0)`,
        or `jnp.nonzero(mask, size=n)`.
        """,
    ),
    KnownMessage(
        texts=("Shapes must be 1D sequences of concrete values of integer type",),
        meaning="""
        A shape is computed from a traced value. Sizes must be known when the function is compiled: take them
        from `x.shape`, or mark the argument with `static_argnames`.
        """,
    ),
    KnownMessage(
        texts=(
            "Non-hashable static arguments",
            "unhashable type: 'jaxlib",
        ),
        meaning="""
        A static argument must be hashable, because it is a key of the compilation cache. Pass a tuple instead
        of a list, a frozen dataclass instead of a dictionary, and do not mark arrays as static.
        """,
    ),
    KnownMessage(
        texts=(
            "Encountered an unexpected tracer",
            "UnexpectedTracerError",
        ),
        meaning="""
        A value from inside a transformed function was stored outside and used later: in a global, an attribute
        or a list. Return it instead. `JAX_CHECK_TRACER_LEAKS=1` shows where it escapes.
        """,
    ),
    KnownMessage(
        texts=(
            "as an abstract array. The problematic value is of type",
            "is not a valid JAX type",
            "is not a valid JAX array type",
        ),
        meaning="""
        A jitted function got something else than arrays and numbers: a text, a function, a model object. Mark
        it with `static_argnames`, bind it with `functools.partial`, or register the class as a pytree.
        """,
    ),
    KnownMessage(
        texts=("JAX arrays are immutable and do not support in-place item assignment",),
        meaning="""
        Write `x = x.at[i].set(value)` (or `.add`, `.multiply`) instead of `x[i] = value`.
        """,
    ),
    KnownMessage(
        texts=("grad requires real- or complex-valued inputs",),
        meaning="""
        The function is differentiated with respect to integers. `grad` takes the first argument by default:
        choose the parameters with `argnums`, and convert the input to float.
        """,
    ),
    KnownMessage(
        texts=("Gradient only defined for scalar-output functions",),
        meaning="""
        `grad` needs a loss with one value: reduce it with `.mean()` or `.sum()`. If the function also returns
        other things, pass `has_aux=True`; for a vector output use `jax.jacobian`.
        """,
    ),
    KnownMessage(
        texts=("vmap got inconsistent sizes for array axes to be mapped",),
        meaning="""
        The arguments of a `vmap` function have different sizes along the mapped axis. Set `in_axes` (`None` for
        an argument that is shared, such as parameters), and check that inputs and labels have the same number
        of rows.
        """,
    ),
    KnownMessage(
        texts=(
            "carry input and carry output must have equal types",
            "body_fun output and input must have identical types",
        ),
        meaning="""
        The state of a loop must keep its shape and dtype. The usual cause is an initial 0 (int) that becomes a
        float, or a dtype promoted by a float64 or float32 constant: start with `jnp.zeros((), jnp.float32)`.
        """,
    ),
    KnownMessage(
        texts=(
            "branches must have equal output types but they differ",
            "must have same type structure, got",
        ),
        meaning="""
        Both branches of `cond` must return the same structure, shapes and dtypes: reduce or cast one of them.
        """,
    ),
    KnownMessage(
        texts=(
            "Array has been deleted with shape",
            "Donation is not implemented for",
        ),
        meaning="""
        An array was given to a function with `donate_argnums`, which may reuse its memory, and was used again
        afterwards. Use the function's result instead, or do not donate it.
        """,
    ),
    KnownMessage(
        texts=(
            "dot_general requires contracting dimensions to have the same shape",
            "Incompatible shapes for broadcasting",
        ),
        meaning="""
        The shapes in the message do not fit. For a product, the last dimension of the first factor must equal
        the first of the second; print the shapes with `jax.debug.print` or under `jax.disable_jit()`.
        """,
        rules=(
            "layer-size-mismatch",
            "broadcast-loss",
        ),
    ),
    KnownMessage(
        texts=(
            "RESOURCE_EXHAUSTED: Out of memory",
            "RESOURCE_EXHAUSTED: Out of memory while trying to allocate",
        ),
        meaning="""
        The device's memory is full. Reduce the batch size, use `jax.checkpoint` and bfloat16, and donate the
        old state (`donate_argnums`). JAX takes 75% of the memory at the start: if another process needs the
        GPU, set `XLA_PYTHON_CLIENT_PREALLOCATE=false` or a smaller `XLA_PYTHON_CLIENT_MEM_FRACTION`.
        """,
        rules=(
            "out-of-memory",
            "accelerator-held-by-others",
        ),
    ),
    KnownMessage(
        texts=(
            "Unknown backend: 'gpu' requested",
            "Unable to initialize backend",
            "An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed",
        ),
        meaning="""
        JAX finds no GPU. Install the CUDA build (`pip install -U "jax[cuda12]"`), check `nvidia-smi`, and
        `JAX_PLATFORMS`. As a warning, it only means that the CPU is used.
        """,
    ),
    KnownMessage(
        texts=(
            "invalid value (nan) encountered in",
            "Invalid nan value encountered",
        ),
        meaning="""
        `jax_debug_nans` found the first NaN. The usual causes are a division by 0, a logarithm of 0, a square
        root whose gradient is infinite at 0, and `jnp.where` with a NaN in the branch that is not taken: make
        the input safe before the operation.
        """,
        rules=(
            "non-finite-loss",
            "non-finite-activation",
        ),
    ),
    KnownMessage(
        texts=(
            "pytree structure error",
            "Dict key mismatch",
            "Custom node type mismatch",
        ),
        meaning="""
        Two nested structures that are mapped together differ, such as parameters and gradients, or a checkpoint
        and a model. Compare them with `jax.tree.structure`; a different optimizer or model option is the usual
        cause.
        """,
    ),
    KnownMessage(
        texts=(
            "Cannot concatenate arrays with shapes that differ in dimensions other than the one being concatenated",
        ),
        meaning="""
        All dimensions but the joined one must be equal. Check `axis`, and pad rows of different lengths first.
        """,
        rules=("ragged-batch",),
    ),
)
