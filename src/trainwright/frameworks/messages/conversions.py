"""What PyTorch says of devices and dtypes, and of conversions from and to NumPy."""

from __future__ import annotations

from trainwright.frameworks.messages.known import KnownMessage

MESSAGES = (
    KnownMessage(
        texts=("Expected all tensors to be on the same device",),
        meaning="""
        One operation got tensors on two devices, usually a batch on the CPU and a model on the GPU. Most often
        the batch, or one part of it such as the labels or the mask, was not moved; `x.to(device)` returns a new
        tensor and must be assigned. Next come tensors created inside forward without `device=x.device`, and
        constants kept as plain attributes of a module: register them with `register_buffer`, so that
        `model.to(device)` moves them too. Layers kept in a Python list instead of `nn.ModuleList` are not moved
        either.
        """,
        rules=("mixed-devices",),
    ),
    KnownMessage(
        texts=(
            "Input type (…) and weight type (…) should be the same",
            "Input type (…) and bias type (…) should be the same",
        ),
        meaning="""
        A convolution got an input of another dtype or device than its weights. If one of the types contains
        `cuda`, move the input or the model to the other's device. Otherwise convert the input: NumPy arrays
        arrive as float64 (`double`) and images as `unsigned char`, so write `x.float()`. `Half` against `Float`
        means that part of the model or of the input was converted by `.half()`; use autocast instead of
        converting by hand.
        """,
        rules=("mixed-devices",),
    ),
    KnownMessage(
        texts=(
            "mat1 and mat2 must have the same dtype",
            "expected m1 and m2 to have the same dtype",
        ),
        meaning="""
        A linear layer got an input of another dtype than its weights. `Double` comes from NumPy or pandas,
        which compute in float64: convert with `x.float()` where the tensor is made. `Long` means that indices
        or integer features reach the layer directly: convert them to float, or pass them through an embedding.
        `Half` or `BFloat16` against `Float` means that a part of the model was loaded or converted in another
        precision: load it in one dtype, or run the forward pass under `torch.autocast`.
        """,
    ),
    KnownMessage(
        texts=("expected scalar type … but found",),
        meaning="""
        Two tensors that one operation combines have different dtypes. `Double` next to `Float` comes from NumPy
        or pandas, which compute in float64: convert the inputs, the targets or the class weights with
        `.float()`. `Half` next to `Float` comes from mixing `.half()` or a 16-bit checkpoint with float32
        tensors: use autocast, or convert both. If `Long` is expected, the targets of a class loss must be
        integers: `y.long()`.
        """,
        rules=("wrong-target-dtype",),
    ),
    KnownMessage(
        texts=("Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int",),
        meaning="""
        An embedding got float indices. Token ids and categories must be integers: convert them with `.long()`
        where the batch is made. Frequent causes are `torch.FloatTensor(ids)` or `torch.Tensor(ids)`, which
        always make floats, and a scaler or a `.float()` that is applied to the whole batch, ids included.
        """,
    ),
    KnownMessage(
        texts=(
            "only one element tensors can be converted to Python scalars",
            "cannot be converted to Scalar",
        ),
        meaning="""
        Code asks for one number from a tensor that holds several, with `.item()`, `float(...)`, or
        `torch.tensor(list_of_tensors)`. Reduce it first (`.mean()`), convert it with `.tolist()`, or join a
        list of tensors with `torch.stack`. If it is a loss, it was probably computed with `reduction="none"`.
        """,
        rules=("ragged-batch",),
    ),
    KnownMessage(
        texts=("Can't call numpy() on Tensor that requires grad",),
        meaning="""
        A tensor that is part of the graph is converted to NumPy, often inside a plot or a metric. Write
        `x.detach().cpu().numpy()`. If it happens in forward or in the loss, the conversion would cut the
        gradient: compute with torch operations there instead. An evaluation that raises this should run under
        `torch.no_grad()`.
        """,
        rules=("severed-graph",),
    ),
    KnownMessage(
        texts=("can't convert cuda:… device type tensor to numpy",),
        meaning="""
        A tensor on the GPU is converted to NumPy, usually to compute a metric or to plot. Write
        `x.detach().cpu().numpy()`. Libraries that call `np.asarray` themselves, such as scikit-learn and
        matplotlib, need the same conversion before the call.
        """,
    ),
    KnownMessage(
        texts=(
            "can't convert np.ndarray of type numpy.object_",
            "can't convert np.ndarray of type numpy.str_",
        ),
        meaning="""
        The array holds Python objects or texts instead of numbers. Most often rows of different lengths were
        put into one array, or a pandas frame has a text or mixed column and `.values` returned objects; a
        missing value (`None`) does the same. Look at `df.dtypes`, encode or drop the text columns, pad the
        rows, and convert with `.astype("float32")`.
        """,
        rules=(
            "string-labels",
            "ragged-batch",
            "non-finite-data",
        ),
    ),
    KnownMessage(
        texts=("Could not infer dtype of",),
        meaning="""
        `torch.tensor` got something that is no number: the message names its type. `NoneType` is a missing
        value; `str` is a label or a text that was not encoded; a dictionary, an image or a tokenizer's output
        was passed whole instead of one of its fields. Look at one row of the data set where the tensor is made.
        """,
        rules=(
            "string-labels",
            "non-finite-data",
        ),
    ),
    KnownMessage(
        texts=("new(): invalid data type 'str'",),
        meaning="""
        A tensor is made from text. Map the labels to numbers first (a dictionary, or `LabelEncoder`), and the
        texts with a tokenizer or a vocabulary.
        """,
        rules=("string-labels",),
    ),
    KnownMessage(
        texts=(
            "At least one stride in the given numpy array is negative",
            "some of the strides of a given numpy array are negative",
        ),
        meaning="""
        The array was flipped or reversed (`x[::-1]`, `np.flip`, `cv2` images from BGR to RGB), which changes
        its strides only. Copy it before it becomes a tensor: `torch.from_numpy(x.copy())`.
        """,
    ),
    KnownMessage(
        texts=(
            "\" not implemented for 'Half'",
            "\" not implemented for 'BFloat16'",
        ),
        meaning="""
        The operation named in the quotation marks has no kernel for this 16-bit type on this device, usually
        the CPU. Run the model in float32 on the CPU (`model.float()`, `dtype=torch.float32` when loading), or
        move it to the GPU. In mixed precision, keep the weights in float32 and use autocast, which chooses the
        type for each operation.
        """,
    ),
    KnownMessage(
        texts=(
            "\" not implemented for 'Long'",
            "could not infer output dtype. Input dtype must be either a floating point or complex dtype",
        ),
        meaning="""
        An operation that needs floats got integers: `mean`, `softmax`, a norm, or a loss whose input is the
        labels. Convert with `.float()`, and check that the arguments of the loss are in the right order: the
        scores first, then the targets.
        """,
        rules=("wrong-target-dtype",),
    ),
    KnownMessage(
        texts=("Only Tensors of floating point and complex dtype can require gradients",),
        meaning="""
        Integers cannot have gradients. Make the tensor a float (`torch.tensor([1.0, 2.0])`, `.float()`) before
        `requires_grad`. A quantized or integer weight must stay frozen: set `requires_grad = False` for such
        parameters.
        """,
    ),
    KnownMessage(
        texts=("one_hot is only applicable to index tensor",),
        meaning="""
        `one_hot` needs integer labels (int64); convert them with `.long()`.
        """,
    ),
    KnownMessage(
        texts=("Subtraction, the `-` operator, with two bool tensors is not supported",),
        meaning="""
        Boolean tensors cannot be subtracted. For `1 - mask`, write `~mask`; to count or average, convert with
        `.float()` first.
        """,
    ),
    KnownMessage(
        texts=("expected np.ndarray (got",),
        meaning="""
        `torch.from_numpy` got something else than an array; the message names the type. Use `torch.as_tensor`
        for lists and numbers, and `.to_numpy()` first for a pandas series or frame.
        """,
    ),
    KnownMessage(
        texts=(
            "could not determine the shape of object type 'DataFrame'",
            "could not determine the shape of object type 'Series'",
        ),
        meaning="""
        `torch.tensor` cannot read pandas objects. Write `torch.tensor(df.to_numpy(dtype="float32"))`; encode
        text columns before.
        """,
        rules=("string-labels",),
    ),
    KnownMessage(
        texts=("device type at start of device string",),
        meaning="""
        The device's name is not one that PyTorch knows. Use `cpu`, `cuda`, `cuda:0` or `mps`; `gpu` is not a
        name of PyTorch.
        """,
    ),
)
