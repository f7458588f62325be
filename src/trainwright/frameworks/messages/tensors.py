"""What PyTorch's operations say of shapes and indices."""

from __future__ import annotations

from trainwright.frameworks.messages.known import KnownMessage

MESSAGES = (
    KnownMessage(
        texts=("Tensors must have same number of dimensions: got",),
        meaning="""
        `torch.cat` got tensors with different numbers of dimensions, for example (N, C) and (N,). Usually one
        of them lost a dimension by indexing with a number, `squeeze()` or a reduction: index with `x[:, :1]`,
        or restore the dimension with `unsqueeze`. If you want a new dimension, use `torch.stack`.
        """,
    ),
    KnownMessage(
        texts=("Sizes of tensors must match except in dimension",),
        meaning="""
        `torch.cat` joins tensors along one dimension; all other dimensions must be equal. Check that `dim` is
        the one that you want to grow. In a U-Net or another model with skip connections, sizes that are not
        divisible by the total stride come back smaller after upsampling: pad or crop the input, or interpolate
        to the size of the skip tensor. When batches of texts are joined, their padded lengths differ: pad to a
        common length first.
        """,
        rules=("ragged-batch",),
    ),
    KnownMessage(
        texts=(
            "stack expects a non-empty TensorList",
            "expected a non-empty list of Tensors",
        ),
        meaning="""
        A list of tensors to be joined is empty, because the loop that should fill it never ran or never
        appended. Check whether the loader yields any batch (a small set with `drop_last=True`, an exhausted
        iterator), and whether a filter left no rows.
        """,
        rules=("empty-dataset",),
    ),
    KnownMessage(
        texts=("too many indices for tensor of dimension",),
        meaning="""
        A tensor is indexed with more indices than it has dimensions. Print its shape right before that line.
        Frequent causes are a `squeeze()` that also removed a batch dimension of size 1, a loader or model that
        returns (N,) where (N, C) was expected, and class labels that are treated as one-hot rows.
        """,
    ),
    KnownMessage(
        texts=("tensors used as indices must be long",),
        meaning="""
        An index tensor has a float dtype. Convert it with `.long()`, or, if it is a mask, with `.bool()`. A
        result of division or a column from NumPy or pandas is often float although it holds whole numbers.
        """,
    ),
    KnownMessage(
        texts=("The shape of the mask … at index … does not match the shape of the indexed tensor",),
        meaning="""
        A boolean mask and the tensor that it selects from differ in shape. Print both. Usually the mask was
        computed from another tensor (before truncation, padding or shifting), or one of the two has an extra
        dimension.
        """,
    ),
    KnownMessage(
        texts=("Dimension out of range (expected to be in range of",),
        meaning="""
        An operation was given a `dim` that the tensor does not have. Usually the tensor has fewer dimensions
        than you think: a missing batch dimension, a `squeeze()` that removed too much, or a single row instead
        of a batch. `cross_entropy` and `softmax(dim=1)` raise it for a one-dimensional output: restore the
        batch dimension with `unsqueeze(0)`, or use `dim=-1`.
        """,
    ),
    KnownMessage(
        texts=(
            "iteration over a 0-d tensor",
            "len() of a 0-d tensor",
            "invalid index of a 0-dim tensor",
        ),
        meaning="""
        A tensor that holds a single number is iterated or indexed. It is usually a loss or a metric that is
        already reduced, or a label that a data set returns as a scalar. Use `.item()` for its value, and check
        what the function returns: code such as `loss, logits = model(...)` unpacks a tensor if the model
        returns only one.
        """,
    ),
    KnownMessage(
        texts=("view size is not compatible with input tensor's size and stride",),
        meaning="""
        `view` works only on memory in the right order, and `permute`, `transpose` or slicing changed that. Use
        `reshape`, which copies if it must. Check the order of the dimensions at the same time: to flatten after
        `permute`, be sure that the batch dimension is still first.
        """,
    ),
    KnownMessage(
        texts=("Boolean value of Tensor with more than one value is ambiguous",),
        meaning="""
        A tensor with several values is used as a condition. In `if`, `and` or `==` inside a condition, reduce
        it with `.all()`, `.any()` or `.item()`. A frequent cause is a loss class called like a function:
        `nn.CrossEntropyLoss(output, target)` passes the tensors as options; write
        `nn.CrossEntropyLoss()(output, target)`. `x in list_of_tensors` compares with `==` and raises this, too.
        """,
    ),
    KnownMessage(
        texts=(
            "Expected size for first two dimensions of batch2 tensor to be",
            "Expected batch2_sizes[0] == bs && batch2_sizes[1] == contraction_size",
        ),
        meaning="""
        A batched matrix product has factors that do not fit. In attention written by hand, the key must be
        transposed (`q @ k.transpose(-2, -1)`), and all of q, k and v need the same batch and head dimensions
        after the split into heads. Print the shapes before the line.
        """,
        rules=("mismatched-product",),
    ),
    KnownMessage(
        texts=("probability tensor contains either `inf`, `nan` or element < 0",),
        meaning="""
        `torch.multinomial` draws from probabilities that are not valid; `generate()` and reinforcement learning
        end here when the model's scores are NaN. The weights usually became NaN earlier in training: a learning
        rate that is too high, fp16 overflow, or a row that is masked completely in attention. Check
        `torch.isfinite` of the scores and the weights. For generation, load the model in bfloat16 or float32,
        and pad on the left for decoder-only models.
        """,
        rules=(
            "non-finite-activation",
            "non-finite-loss",
            "excessive-learning-rate",
        ),
    ),
    KnownMessage(
        texts=("of distribution … to satisfy the constraint",),
        meaning="""
        A distribution got parameters that are not valid; the message names the parameter and shows the values.
        NaN means that the network's output is NaN: look for a learning rate that is too high, inputs or rewards
        that are not scaled, or exploding gradients. A negative scale means that its layer needs `softplus` or
        `exp`.
        """,
        rules=(
            "non-finite-activation",
            "excessive-learning-rate",
        ),
    ),
    KnownMessage(
        texts=("Class values must be smaller than num_classes",),
        meaning="""
        `one_hot` got a label that is too large for `num_classes`. Either the count is too small, or the labels
        do not start at 0. Check `labels.min()` and `labels.max()`; -1 or 255 often marks rows without a label.
        """,
        rules=(
            "label-out-of-range",
            "misnumbered-labels",
        ),
    ),
    KnownMessage(
        texts=("must match the existing size … at non-singleton dimension … Target sizes:",),
        meaning="""
        A tensor cannot be broadcast to the size that the operation needs. In a transformer, the sequence is
        usually longer than the model's table of positions (the second number is `max_position_embeddings`):
        truncate the texts with `truncation=True, max_length=...`. Otherwise a mask or bias was made for another
        length than the input has.
        """,
        rules=("mismatched-mask",),
    ),
    KnownMessage(
        texts=("index … is out of bounds for dimension … with size",),
        meaning="""
        An index is as large as or larger than the dimension that it selects from; indices run from 0 to size -
        1. In a loss or in `gather`, a label is too large for the number of classes. In your own code, a loop
        runs one step too far, or an index was computed for an array that was filtered afterwards.
        """,
        rules=(
            "label-out-of-range",
            "tokens-beyond-vocabulary",
        ),
    ),
    KnownMessage(
        texts=("size mismatch, got input (…), mat (…), vec (…)",),
        meaning="""
        A matrix meets a vector of another length. If it comes from a linear layer, the input is a single row
        with the wrong number of features: its last dimension must equal `in_features`. Print both shapes before
        the line.
        """,
        rules=(
            "layer-size-mismatch",
            "mismatched-product",
        ),
    ),
    KnownMessage(
        texts=("'Tensor' object has no attribute",),
        meaning="""
        The tensor lacks a method or attribute of this name; often it is one of NumPy's. `astype` is
        `.to(dtype)` or `.float()`, `copy` is `.clone()`, and a loss or logits have to be taken from the model's
        output object first. If the name is an output's (`.loss`, `.logits`), the model returns a plain tensor:
        use it directly.
        """,
    ),
    KnownMessage(
        texts=(
            "mat1 and mat2 shapes cannot be multiplied",
            "size mismatch, m1: […], m2: […]",
        ),
        meaning="""
        A linear layer got an input whose last dimension is not its `in_features`. In "(a x b and c x d)", b is
        what came and c is what the layer expects. After convolutions, the usual cause is another image size
        than the layer was computed for: flatten with `flatten(1)`, and set `in_features` to b, or pool to a
        fixed size first (`nn.AdaptiveAvgPool2d`). If a is not the batch size, the flatten also merged the
        batch, or the input lacks its batch dimension.
        """,
        rules=(
            "layer-size-mismatch",
            "wrong-number-of-axes",
            "mismatched-product",
        ),
    ),
)
