"""What NumPy says in training scripts and metrics."""

from __future__ import annotations

from trainwright.frameworks.messages.known import KnownMessage

MESSAGES = (
    KnownMessage(
        texts=("axis … is out of bounds for array of dimension",),
        type="AxisError",
        meaning="""
        The array has fewer dimensions than the `axis` asks for. In a metric, `argmax(axis=1)` or `axis=-2` was
        applied to predictions that are already class indices, or have one column only; or the predictions are a
        tuple of several outputs: take `predictions[0]`. Print the shape in the metric function.
        """,
        rules=(
            "crashing-metrics",
            "argmax-of-one-column",
        ),
    ),
    KnownMessage(
        texts=("too many indices for array: array is",),
        meaning="""
        An array has fewer dimensions than there are indices. A column was expected where the array is flat: use
        `x.reshape(-1, 1)`, or index with one number. An array of dtype `object`, made of rows of different
        lengths, is flat, too.
        """,
        rules=("crashing-metrics",),
    ),
    KnownMessage(
        texts=("index … is out of bounds for axis … with size",),
        meaning="""
        An index is at least the size of that axis. For `to_categorical` or a confusion matrix, the labels do
        not run from 0 to classes - 1. In a data set, `__len__` is larger than the data, or indices refer to the
        rows before a filter.
        """,
        rules=(
            "misnumbered-labels",
            "label-out-of-range",
        ),
    ),
    KnownMessage(
        texts=("operands could not be broadcast together with shapes",),
        meaning="""
        NumPy cannot align the two shapes in the message. In a metric, scores (N, classes) are compared with
        labels (N,): take `predictions.argmax(axis=-1)` first. For per-token labels, drop the positions with
        -100 in both.
        """,
        rules=(
            "metrics-on-logits",
            "broadcast-metric",
        ),
    ),
    KnownMessage(
        texts=(
            "setting an array element with a sequence",
            "The requested array has an inhomogeneous shape",
        ),
        meaning="""
        Rows of different lengths cannot become one array. Pad them to one length, keep a list, or pass
        `dtype=object` if a flat array of objects is really wanted. In a metric, the Trainer's predictions are
        often a tuple: take `predictions[0]`.
        """,
        rules=(
            "ragged-batch",
            "crashing-metrics",
        ),
    ),
    KnownMessage(
        texts=(
            "The truth value of an array with more than one element is ambiguous",
            "The truth value of a Series is ambiguous",
            "The truth value of a DataFrame is ambiguous",
            "The truth value of an empty array is ambiguous",
        ),
        meaning="""
        An array is used as a condition. Reduce it with `.all()` or `.any()`; combine conditions with `&` and
        `|` and brackets instead of `and` and `or`; test for emptiness with `.size` or `.empty`, and for None
        with `is None`.
        """,
    ),
    KnownMessage(
        texts=("cannot reshape array of size",),
        meaning="""
        The number of values does not fit the new shape. The images have another size or number of channels than
        the code expects (gray or RGBA among RGB), or the batch size is written into the shape: use -1 for it.
        """,
        rules=("layer-size-mismatch",),
    ),
    KnownMessage(
        texts=(
            "all the input array dimensions except for the concatenation axis must match exactly",
            "all the input arrays must have same number of dimensions",
            "all input arrays must have the same shape",
        ),
        meaning="""
        Arrays to be joined differ in shape. Batches of predictions padded to different lengths are the usual
        case: pad them to one length, or collect per-row lists. `np.append` without `axis` flattens both.
        """,
        rules=(
            "retained-logits",
            "ragged-batch",
        ),
    ),
    KnownMessage(
        texts=("need at least one array to concatenate",),
        meaning="""
        A list of arrays is empty, because its loop never ran: the loader or folder is empty, or a filter left
        nothing. Check the path and the number of batches.
        """,
        rules=("empty-dataset",),
    ),
    KnownMessage(
        texts=(
            "matmul: Input operand 1 has a mismatch in its core dimension",
            "shapes … not aligned",
        ),
        meaning="""
        A matrix product has factors that do not fit: the last dimension of the first must equal the first of
        the second. Transpose one of them; for rows of data, `x @ w` needs w as (features, outputs).
        """,
        rules=("mismatched-product",),
    ),
    KnownMessage(
        texts=(
            "only size-1 arrays can be converted to Python scalars",
            "only length-1 arrays can be converted to Python scalars",
            "only 0-dimensional arrays can be converted to Python scalars",
        ),
        meaning="""
        One number is expected and an array came. Reduce it first (`.mean()`, `.item()`), take the argmax of
        scores in a metric, and return plain numbers from `compute_metrics`.
        """,
        rules=(
            "metrics-on-logits",
            "crashing-metrics",
        ),
    ),
    KnownMessage(
        texts=(
            "module 'numpy' has no attribute '…'",
            "`np.… was removed in the NumPy 2.0 release",
        ),
        meaning="""
        NumPy removed old names: `np.int`, `np.float`, `np.bool` and `np.object` in 1.24 (use `int`, `float`,
        `bool`, `object`), and more in 2.0 (`np.float_` is `np.float64`). If the line is in a library, upgrade
        it, or install `numpy<2`.
        """,
        rules=("removed-api",),
    ),
    KnownMessage(
        texts=(
            "numpy.dtype size changed, may indicate binary incompatibility",
            "A module that was compiled using NumPy 1.x cannot be run in",
            "Numpy is not available",
        ),
        meaning="""
        A compiled package was built for another NumPy. Upgrade that package (pandas, scikit-learn, torch, ...),
        or install `numpy<2`, and restart the process.
        """,
    ),
    KnownMessage(
        texts=("could not convert string to float",),
        meaning="""
        A text is where a number must be: an unencoded category, a header read as a row, a number with a comma
        or a sign (`1,234`, `5%`), or a missing value written as `?`. Look at the value in the message, encode
        text columns (one-hot, `LabelEncoder`), and use `pd.to_numeric(..., errors="coerce")`.
        """,
        rules=("string-labels",),
    ),
    KnownMessage(
        texts=("Unable to allocate … for an array with shape",),
        meaning="""
        The array in the message does not fit into memory. Check its shape: a broadcast of (N,) with (N, 1)
        gives N x N, and float64 takes twice as much as float32. Otherwise load the data in parts, or use
        `np.memmap`.
        """,
        rules=(
            "out-of-memory",
            "retained-logits",
        ),
    ),
    KnownMessage(
        texts=("zero-size array to reduction operation",),
        meaning="""
        `max` or `min` of an empty array. A filter or a split left no rows, or no prediction was collected.
        """,
        rules=("empty-dataset",),
    ),
    KnownMessage(
        texts=("Object arrays cannot be loaded when allow_pickle=False",),
        meaning="""
        The file holds Python objects, often rows of different lengths. If you trust it, pass
        `allow_pickle=True`; better, save plain arrays. A damaged or wrong file gives the same message: check
        its size.
        """,
    ),
    KnownMessage(
        texts=("Cannot cast ufunc '…' output from",),
        meaning="""
        A float result does not fit into an integer array that is changed in place. Convert the array first (`x
        = x.astype("float32")`), or write `x = x + y`.
        """,
    ),
    KnownMessage(
        texts=(
            "probabilities do not sum to 1",
            "probabilities contain NaN",
        ),
        meaning="""
        `np.random.choice` checks the probabilities in float64: cast first, then normalize (`p =
        p.astype("float64"); p /= p.sum()`). NaN comes from scores that are not finite.
        """,
        rules=("non-finite-activation",),
    ),
)
