"""What PyTorch's modules and losses say of how they are called and built."""

from __future__ import annotations

from trainwright.frameworks.messages.known import KnownMessage

MESSAGES = (
    KnownMessage(
        texts=(
            "Expected … (unbatched) or … (batched) input to conv",
            "Expected 4-dimensional input for 4-dimensional weight",
        ),
        meaning="""
        A convolution got an input with the wrong number of dimensions. `Conv2d` needs (batch, channels, height,
        width) and `Conv1d` (batch, channels, length). Gray images often lack the channel dimension: add it with
        `x.unsqueeze(1)`. A single image lacks the batch dimension: `x.unsqueeze(0)`. Flattened pixels must be
        reshaped first.
        """,
        rules=(
            "wrong-number-of-axes",
            "channels-misplaced",
        ),
    ),
    KnownMessage(
        texts=("Kernel size can't be greater than actual input size",),
        meaning="""
        The image or sequence has become smaller than the kernel: the input is too small for the number of
        pooling and strided layers, or its dimensions are in the wrong order, such as (batch, length, channels)
        for `Conv1d`. Print the shape after each layer; use larger inputs, padding, or fewer reductions.
        """,
        rules=("channels-misplaced",),
    ),
    KnownMessage(
        texts=("Calculated output size: … Output size is too small",),
        meaning="""
        The image or sequence has become too small for a pooling layer. Use larger inputs (`Resize`), padding,
        or fewer pooling layers, and check that the dimensions are (batch, channels, height, width).
        """,
        rules=("channels-misplaced",),
    ),
    KnownMessage(
        texts=(
            "expected 2D or 3D input (got",
            "expected 4D input (got",
            "expected 3D input (got",
        ),
        meaning="""
        A batch norm layer got another number of dimensions than it is made for: `BatchNorm1d` takes (N, C) or
        (N, C, L), `BatchNorm2d` (N, C, H, W). Use the layer that fits the data, or restore the dimension that
        `flatten` or `squeeze` removed.
        """,
        rules=("wrong-number-of-axes",),
    ),
    KnownMessage(
        texts=("Expected hidden[…] size",),
        meaning="""
        A recurrent layer got a hidden state that was made for another batch size, number of layers or
        direction. It often works until the last, smaller batch: create the state from the input's own batch
        size, or do not pass it at all. Check `batch_first`, too: without it the first dimension is the time.
        The state's shape is (layers x directions, batch, hidden) in both cases.
        """,
        rules=("fixed-batch-size",),
    ),
    KnownMessage(
        texts=(
            "LSTM: Expected input to be 2D or 3D",
            "GRU: Expected input to be 2D or 3D",
            "RNN: Expected input to be 2D or 3D",
        ),
        meaning="""
        A recurrent layer takes (batch, time, features) with `batch_first=True`, or (time, batch, features)
        without it. Images and sequences of vectors must be flattened to one feature dimension first:
        `x.flatten(2)`.
        """,
        rules=("wrong-number-of-axes",),
    ),
    KnownMessage(
        texts=("argument 'input' (position 1) must be Tensor, not tuple",),
        meaning="""
        A layer got the tuple that another layer returned. `nn.LSTM`, `nn.GRU` and `nn.MultiheadAttention`
        return several things, so they do not fit into `nn.Sequential` as they are: write `out, _ =
        self.lstm(x)` in forward, and pass `out` on. A loss with this message got a model's whole output: pick
        the scores out of it.
        """,
    ),
    KnownMessage(
        texts=("argument 'input' (position 1) must be Tensor, not",),
        meaning="""
        The message names the type that arrived instead of a tensor. A list or an array was not converted
        (`torch.as_tensor`), or a model's output object was passed to a loss instead of its scores
        (`outputs.logits`). For `list`, stack the rows first.
        """,
    ),
    KnownMessage(
        texts=("argument 'target' (position 2) must be Tensor, not",),
        meaning="""
        The loss got something else than a tensor as targets. `NoneType` means that the labels are missing from
        the batch or were removed on the way; `list` or `tuple` means that the loader returned Python values,
        for example texts: collate them into one tensor.
        """,
        rules=("missing-targets",),
    ),
    KnownMessage(
        texts=("weight tensor should be defined either for all … classes or no classes",),
        meaning="""
        The class weights of the loss do not have one entry for each output of the model. Compute them for all
        classes, in the order of the class indices; classes that do not occur in the training rows need a
        weight, too.
        """,
        rules=(
            "label-out-of-range",
            "missing-classes",
        ),
    ),
    KnownMessage(
        texts=(
            "embed_dim must be divisible by num_heads",
            "is not a multiple of the number of attention heads",
        ),
        meaning="""
        Each attention head gets an equal share of the width, so the width must be a multiple of the number of
        heads. Change one of them.
        """,
    ),
    KnownMessage(
        texts=(
            "The shape of the 2D attn_mask is",
            "The shape of the 3D attn_mask is",
        ),
        meaning="""
        The attention mask does not fit the lengths. A 2D mask must be (target length, source length) and a 3D
        mask (batch x heads, target length, source length). A mask of padding, (batch, source length), belongs
        into `key_padding_mask`. Build the mask from the batch's own length.
        """,
        rules=("mismatched-mask",),
    ),
    KnownMessage(
        texts=('is missing the required "forward" function',),
        meaning="""
        The module's class has no `forward`, or it is misspelled or indented so that it is inside another
        method. `nn.ModuleList` and `nn.ModuleDict` only hold layers: call the layers one after another, or use
        `nn.Sequential`.
        """,
    ),
    KnownMessage(
        texts=("cannot assign module before Module.__init__() call",),
        meaning="""
        The class's `__init__` sets layers before `super().__init__()` ran. Make `super().__init__()` its first
        line. The same message comes from a misspelled `__init__` of a class in between.
        """,
    ),
    KnownMessage(
        texts=("takes 1 positional argument but 2 were given",),
        meaning="""
        A method was called with one argument more than it declares. In a module, `forward(self)` lacks its
        input, or a method lacks `self`. A layer's class used in place of a layer gives similar messages:
        `nn.ReLU(x)` builds a layer, `nn.ReLU()(x)` applies it.
        """,
    ),
    KnownMessage(
        texts=(
            "missing 1 required positional argument: 'target'",
            "missing 1 required positional argument: 'input'",
        ),
        meaning="""
        A loss or a layer was called with one argument too few. If the model's class was called instead of a
        model, or the loss's class instead of a loss object, the first argument took the place of `self`: build
        the object first.
        """,
    ),
    KnownMessage(
        texts=(
            "'DataParallel' object has no attribute",
            "'DistributedDataParallel' object has no attribute",
        ),
        meaning="""
        The model does not have that attribute under that name. A model wrapped in `DataParallel` or
        `DistributedDataParallel` keeps yours in `.module`: write `model.module.name`, and unwrap it before
        saving. Otherwise check the spelling in `__init__`, and that the attribute is set before it is used.
        """,
        rules=("removed-api",),
    ),
    KnownMessage(
        texts=(
            "'str' object has no attribute 'to'",
            "'list' object has no attribute 'to'",
            "'dict' object has no attribute 'to'",
        ),
        meaning="""
        A batch, or a part of it, is no tensor and cannot be moved to a device. Move each part: `{k:
        v.to(device) for k, v in batch.items()}`. A list of texts or of unequal rows cannot be moved; tokenize
        or pad it in the `collate_fn`. A loop over a dictionary gives its keys, which are strings: loop over
        `.items()`.
        """,
    ),
    KnownMessage(
        texts=(
            "'tuple' object has no attribute 'to'",
            "'tuple' object has no attribute 'size'",
            "'tuple' object has no attribute 'shape'",
        ),
        meaning="""
        A function returned several values and the whole tuple was used as one tensor. Unpack it: loaders yield
        `(inputs, labels)`, recurrent and attention layers return `(output, state)`, and models with
        `return_dict=False` return `(loss, logits)`.
        """,
    ),
    KnownMessage(
        texts=("'NoneType' object has no attribute",),
        meaning="""
        Something that should hold an object is `None`: the line in the traceback shows which. Frequent causes
        in training scripts are a function without `return`, an in-place method whose result was assigned (`x =
        list.append(...)`), `.grad` before `backward()` or of a frozen parameter, `cv2.imread` of a file that
        does not exist, and a model output without `loss` because no labels were passed.
        """,
        rules=(
            "missing-labels",
            "frozen-model",
        ),
    ),
    KnownMessage(
        texts=(
            "'collections.OrderedDict' object has no attribute",
            "'collections.OrderedDict' object is not callable",
        ),
        meaning="""
        The file holds a state dict, not a model. Build the model first, then
        `model.load_state_dict(torch.load(path))`.
        """,
    ),
    KnownMessage(
        texts=("Expected state_dict to be dict-like",),
        meaning="""
        `load_state_dict` got a model or another object. Pass `other.state_dict()`, or the right key of a
        checkpoint such as `checkpoint["model"]`.
        """,
    ),
    KnownMessage(
        texts=("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol",),
        meaning="""
        `copy.deepcopy` met a tensor that was computed and belongs to a graph. The model or the object stores an
        output, a loss or a hidden state as an attribute: store `x.detach()` instead. `weight_norm` of old
        versions does this, too: use `torch.nn.utils.parametrizations.weight_norm`.
        """,
    ),
    KnownMessage(
        texts=("Length of all samples has to be greater than 0",),
        meaning="""
        `pack_padded_sequence` got a sequence of length 0: an empty text, or a row that consists of padding
        only. Drop these rows, or give them a length of at least 1.
        """,
    ),
    KnownMessage(
        texts=("`lengths` array must be sorted in decreasing order",),
        meaning="""
        Pass `enforce_sorted=False` to `pack_padded_sequence`, or sort the batch by length.
        """,
    ),
    KnownMessage(
        texts=(
            "not enough values to unpack (expected",
            "too many values to unpack (expected",
        ),
        meaning="""
        The left side of an assignment has another number of names than the right side has values. Loaders yield
        what the data set returns (`for x, y in loader` needs pairs), a dictionary yields its keys, `x.shape`
        has one value for each dimension, and models return a tuple or an output object depending on
        `return_dict`. Print the type and length of the right side.
        """,
    ),
    KnownMessage(
        texts=("tuple index out of range",),
        meaning="""
        Code reads an element that a tuple does not have. `x.shape[1]` of a one-dimensional tensor and
        `outputs[1]` of a model that returns only one value are the usual cases; indices start at 0.
        """,
    ),
    KnownMessage(
        texts=("string indices must be integers",),
        meaning="""
        A text is indexed by a key. Usually a loop runs over a dictionary, whose elements are its keys, or a row
        was already reduced to its text: with `map(..., batched=True)` each column is a list, without it a
        single value.
        """,
    ),
    KnownMessage(
        texts=("Expected input_lengths to have value at most",),
        meaning="""
        CTC loss takes the scores as (time, batch, classes), and each input length must be at most the number of
        time steps that the network puts out. Transpose (batch, time, classes), and divide the lengths by the
        network's total stride.
        """,
        rules=("channels-misplaced",),
    ),
    KnownMessage(
        texts=("list indices must be integers or slices, not",),
        meaning="""
        A list is indexed by something else than a whole number. With `str`, a list is taken for a dictionary: a
        data set or collator got a list of rows, and `batch["input_ids"]` needs one dictionary of columns. With
        `float` or `numpy.float64`, convert the index with `int`.
        """,
    ),
    KnownMessage(
        texts=("list index out of range",),
        meaning="""
        An index is at least the length of the list, or the list is empty. Compare `__len__` of the data set
        with the lists that `__getitem__` reads; after a filter they can differ. An empty list of files means
        that the path or the pattern is wrong.
        """,
        rules=("empty-dataset",),
    ),
    KnownMessage(
        texts=(
            "unsupported operand type(s) for …: 'NoneType' and",
            "and 'NoneType'",
        ),
        type="TypeError",
        meaning="""
        One side of the operation is `None`: a function without `return`, a model output without `loss` because
        no labels were passed, a missing value in the data, or an option that was never set. The line in the
        traceback shows which name it is.
        """,
        rules=("missing-labels",),
    ),
    KnownMessage(
        texts=("__init__() missing 1 required positional argument",),
        meaning="""
        An object was built with one argument too few; the message names it. If it comes from
        `load_from_checkpoint`, the checkpoint does not hold the module's arguments: call
        `self.save_hyperparameters()` in `__init__`, or pass them to `load_from_checkpoint`.
        """,
    ),
    KnownMessage(
        texts=(
            "positional arguments but … were given",
            "positional argument but … were given",
        ),
        type="TypeError",
        meaning="""
        A function or method got more arguments than it declares; the message names it. If it is a method of
        your subclass that a library calls (`compute_loss`, `training_step`, a collator), the library's newer
        version passes one more: add it to your signature, or accept `**kwargs`. If it is your own, a `self` is
        missing, or arguments meant as one tuple were passed separately.
        """,
    ),
    KnownMessage(
        texts=("object has no attribute '…'",),
        meaning="""
        The object named in the message has no such attribute. Check in order: the spelling; that it is set
        before it is used (in `__init__`, after `super().__init__()`); that it is the object you think (a
        wrapper keeps yours in `.module`, and a text or a list has none of a tensor's methods); and that the
        installed version of the library still has it.
        """,
        rules=("removed-api",),
    ),
    KnownMessage(
        texts=("name '…' is not defined",),
        type="NameError",
        meaning="""
        The name was never imported or assigned before this line. If the line is in a library, an optional
        package is missing that it imports only if it is installed: install that package (for example `peft` or
        `bitsandbytes`), and restart the process. In a notebook, the cell that defines it was not run after the
        last restart.
        """,
    ),
)
