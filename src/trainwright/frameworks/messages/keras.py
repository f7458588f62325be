"""What Keras says of models, data, losses and files."""

from __future__ import annotations

from trainwright.frameworks.messages.known import KnownMessage

MESSAGES = (
    KnownMessage(
        texts=("Data cardinality is ambiguous",),
        meaning="""
        The arrays passed to `fit` have different numbers of rows; the message lists them. One of them was
        filtered, split or reshaped without the other, or is transposed. A list of rows is taken as several
        inputs: convert it with `np.array(x)`. A tuple of validation data must be `(x_val, y_val)`.
        """,
        rules=("misaligned-labels",),
    ),
    KnownMessage(
        texts=(
            "You must call `compile()` before",
            "You must compile your model before training/testing",
        ),
        meaning="""
        `fit` or `evaluate` was called on a model without an optimizer and a loss. Call
        `model.compile(optimizer=..., loss=...)` after the model is built, and again after changing `trainable`.
        A model loaded with `compile=False` needs it, too.
        """,
    ),
    KnownMessage(
        texts=(
            "Unknown loss function:",
            "Unknown metric function:",
            "Unknown optimizer:",
            "Could not interpret optimizer identifier:",
            "Could not interpret metric identifier:",
            "Could not interpret activation function identifier:",
            "Could not interpret initializer identifier:",
            "Could not interpret loss identifier",
        ),
        meaning="""
        Keras does not know this name. Check the spelling (`sparse_categorical_crossentropy`, `adam`), and pass
        your own function or object itself instead of its name. When a model is loaded, pass
        `custom_objects={"name": function}`. An optimizer object of another Keras (`tensorflow.keras` next to
        `keras`, or `keras.optimizers.legacy`) is not recognized either: import everything from one package.
        """,
        rules=("removed-api",),
    ),
    KnownMessage(
        texts=(
            "Shapes … and … are incompatible",
            "Arguments `target` and `output` must have the same shape",
            "Arguments `target` and `output` must have the same rank",
        ),
        meaning="""
        The last layer and the targets do not fit the loss. `categorical_crossentropy` needs one-hot targets
        with as many columns as the last layer has units; for class indices use
        `sparse_categorical_crossentropy`. For two classes, use one unit with `binary_crossentropy`. If the
        output has an extra dimension, a `Flatten`, a pooling layer or `return_sequences=False` is missing.
        """,
        rules=(
            "sparse-dense-mismatch",
            "outputs-per-step",
        ),
    ),
    KnownMessage(
        texts=("logits and labels must have the same first dimension",),
        meaning="""
        A sparse loss got another number of labels than of outputs. Either the labels are one-hot (use
        `categorical_crossentropy`), or the model puts out one prediction per time step or pixel and the data
        has one label per row (add `Flatten` or pooling, or set `return_sequences=False` in the last recurrent
        layer).
        """,
        rules=(
            "sparse-dense-mismatch",
            "outputs-per-step",
        ),
    ),
    KnownMessage(
        texts=("`logits` and `labels` must have the same shape",),
        meaning="""
        `binary_crossentropy` needs targets of the output's shape. With one unit, the labels must be (N,) or (N,
        1); one-hot labels need as many units as classes. For several exclusive classes, use
        `sparse_categorical_crossentropy` with a softmax.
        """,
        rules=(
            "wrong-head",
            "broadcast-loss",
        ),
    ),
    KnownMessage(
        texts=("Input … of layer … is incompatible with the layer",),
        meaning="""
        A layer got an input of another shape than it was built for; the message gives both. `expected ndim`: a
        channel dimension is missing (`x[..., None]`), the batch dimension is missing (a single row in
        `predict`: `x[None]`), or a recurrent layer follows one without `return_sequences=True`. `expected axis
        -1`: the number of features differs from training, or a `Dense` follows a `Flatten` of inputs of another
        size.
        """,
        rules=(
            "layer-size-mismatch",
            "wrong-number-of-axes",
            "unbatched-data",
        ),
    ),
    KnownMessage(
        texts=("Exception encountered when calling",),
        wraps=True,
        meaning="""
        Keras passes on an error from inside the named layer; the cause is in the lines that follow. "Arguments
        received" shows the shapes that came in.
        """,
    ),
    KnownMessage(
        texts=("Graph execution error",),
        wraps=True,
        meaning="""
        TensorFlow stopped inside a compiled step. The cause is in the last lines of the message, after the list
        of nodes: usually labels outside the range of the outputs, token ids outside the embedding, or shapes
        that do not fit. `model.compile(..., run_eagerly=True)` gives a Python traceback.
        """,
    ),
    KnownMessage(
        texts=("Unrecognized data type: x=",),
        meaning="""
        `fit` got a type that Keras cannot read, most often a list of lists or a plain iterator. Convert lists
        with `np.array(x)`; wrap a generator in a function that yields `(x, y)` pairs.
        """,
    ),
    KnownMessage(
        texts=("Failed to convert a NumPy array to a Tensor (Unsupported object type",),
        meaning="""
        The array holds Python objects; the message names their type. `list` or `numpy.ndarray`: rows of
        different lengths (pad them with `pad_sequences`). `str`: texts that were not encoded. `float` or `int`:
        a pandas frame with mixed types, whose dtype is `object`: convert with `x.astype("float32")`.
        `NoneType`: missing values.
        """,
        rules=(
            "ragged-batch",
            "string-labels",
            "labels-inside-inputs",
        ),
    ),
    KnownMessage(
        texts=(
            "Failed to convert a NumPy array to a Tensor (Unsupported object type float)",
            "Failed to convert a NumPy array to a Tensor (Unsupported object type int)",
        ),
        meaning="""
        The array has the dtype `object`, although it holds numbers: a text or mixed column in a pandas frame
        makes all of `.values` objects. Look at `df.dtypes`, encode text columns (`pd.get_dummies(...,
        dtype=float)` also keeps booleans out), and convert with `x.astype("float32")`.
        """,
        rules=(
            "string-labels",
            "non-finite-data",
        ),
    ),
    KnownMessage(
        texts=("Invalid dtype: object",),
        meaning="""
        An array of Python objects was passed to Keras: rows of different lengths, texts, or a pandas frame with
        mixed columns. Convert it with `.astype("float32")`, pad unequal rows, and encode texts.
        """,
        rules=(
            "string-labels",
            "labels-inside-inputs",
            "ragged-batch",
        ),
    ),
    KnownMessage(
        texts=("No such layer:",),
        meaning="""
        `get_layer` knows no layer of that name; the message lists the names. Names are counted through the
        whole process (`dense_14`), so give the layer a `name=` of its own.
        """,
    ),
    KnownMessage(
        texts=(
            "has never been called and thus has no defined output",
            "has never been called and thus has no defined input",
        ),
        meaning="""
        The layer's or model's `output` is asked for before it was called. A Sequential model needs an `Input`
        first, or one call on data: `model(x[:1])`, `model.build(input_shape)`. For feature extraction, build
        `keras.Model(model.inputs, model.get_layer(name).output)`.
        """,
    ),
    KnownMessage(
        texts=(
            "Computed output size would be zero or negative",
            "Negative dimension size caused by subtracting",
        ),
        meaning="""
        The image has become smaller than the next kernel or pool. Use larger inputs, `padding="same"`, or fewer
        reductions, and check the order of the dimensions: Keras expects (height, width, channels) unless
        `data_format` says otherwise.
        """,
        rules=("channels-misplaced",),
    ),
    KnownMessage(
        texts=(
            "A `Concatenate` layer requires inputs with matching shapes except for the concatenation axis",
            "Inputs have incompatible shapes. Received shapes",
        ),
        meaning="""
        The inputs of `Concatenate` must agree in all dimensions but one, those of `Add` in all. In a U-Net,
        sizes that are not divisible by the total stride come back smaller: choose a divisible input size, or
        crop or resize. Otherwise set `axis=` to the dimension that differs.
        """,
    ),
    KnownMessage(
        texts=(
            "A KerasTensor cannot be used as input to a TensorFlow function",
            "A KerasTensor is symbolic",
        ),
        meaning="""
        A TensorFlow or NumPy function was applied to a symbolic input of a functional model. Use `keras.ops`,
        or put the code into the `call` of a layer of your own or a `Lambda`.
        """,
    ),
    KnownMessage(
        texts=(
            "is not connected to `inputs`",
            "Graph disconnected: cannot obtain value for tensor",
        ),
        meaning="""
        The model's outputs depend on an input that is not listed in `inputs`. Often two variables are called
        alike, or `Input` was created twice: pass all inputs as a list, and use the tensor that the layers were
        really called on.
        """,
    ),
    KnownMessage(
        texts=(
            "The filepath provided must end in",
            "Invalid filepath extension for saving",
            "The filename must end in",
        ),
        meaning="""
        Keras 3 accepts only these endings: `.keras` (or `.h5`) for a model, `.weights.h5` for weights. Change
        the file name, also in `ModelCheckpoint`; `model.export(folder)` writes a SavedModel.
        """,
        rules=("refused-file",),
    ),
    KnownMessage(
        texts=("Keras 3 only supports V3 `.keras` files, legacy H5 format files",),
        meaning="""
        `load_model` no longer reads a SavedModel folder. Use `keras.layers.TFSMLayer(folder,
        call_endpoint="serving_default")` for inference, or load it with the Keras that saved it (`tf_keras`)
        and save it as `.keras`.
        """,
    ),
    KnownMessage(
        texts=("File not found: filepath=",),
        meaning="""
        The model file does not exist at that path, as seen from the working directory; check that the
        checkpoint was written.
        """,
    ),
    KnownMessage(
        texts=(
            "could not be deserialized properly",
            "Could not locate class",
            "Could not locate function",
        ),
        meaning="""
        The saved model contains a class or function of your own, or of another Keras version. Pass
        `custom_objects={"Name": Name}`, or decorate it with `@keras.saving.register_keras_serializable()`, and
        give the class a `get_config`.
        """,
    ),
    KnownMessage(
        texts=("Requested the deserialization of a `Lambda` layer",),
        meaning="""
        A `Lambda` layer holds Python code, which Keras does not run without asking. If you trust the file, pass
        `safe_mode=False`; better, replace it by a layer class.
        """,
    ),
    KnownMessage(
        texts=(
            "objects could not be loaded. Example error message for object",
            "with a weight list of length … but the layer was expecting",
            "Layer count mismatch when loading weights from file",
        ),
        meaning="""
        The weights belong to a model of another structure: another number of units, layers or classes. Build
        the model with the same code and options; load only fitting layers with `skip_mismatch=True`. Call the
        model once before loading, so that its layers exist.
        """,
    ),
    KnownMessage(
        texts=("Argument `validation_split` is only supported for tensors or NumPy arrays",),
        meaning="""
        Keras cannot split a data set or a generator. Split it yourself (`dataset.take(n)`, `dataset.skip(n)`),
        and pass `validation_data`.
        """,
    ),
    KnownMessage(
        texts=("which is not sufficient to split it into a validation and training set",),
        meaning="""
        There are too few rows for this `validation_split`. Check that the data was loaded (a first dimension of
        1 often means that the array is transposed or wrapped in a list).
        """,
        rules=("empty-dataset",),
    ),
    KnownMessage(
        texts=(
            "When providing `x` as a tf.data.Dataset, `y` should not be passed",
            "`y` argument is not supported when using",
        ),
        meaning="""
        A data set or generator yields pairs `(x, y)` itself; pass it alone.
        """,
    ),
    KnownMessage(
        texts=(
            "Early stopping conditioned on metric `…` which is not available. Available metrics are:",
            "Can save best model only with … available, skipping",
        ),
        meaning="""
        This warning means that the callback does nothing: its metric is not computed. The message lists those
        that are. `val_…` needs `validation_data`; an accuracy needs `metrics=["accuracy"]`, and its name
        depends on the name given there (`acc` or `accuracy`); a second metric of one class gets a number
        (`auc_1`): pass `name=`.
        """,
        rules=("unknown-best-metric",),
    ),
    KnownMessage(
        texts=("When passing a Python generator to a Keras model, the generator must return a tuple",),
        meaning="""
        The generator must yield `(inputs, targets)`, or `(inputs,)` for prediction; a list is not a tuple.
        """,
        rules=("missing-targets",),
    ),
    KnownMessage(
        texts=("Shapes used to initialize variables must be fully-defined",),
        meaning="""
        A layer creates weights from a dimension that is unknown (`None`). Give the `Input` a fixed size in that
        dimension, or pool it away (`GlobalAveragePooling`) before a `Dense`.
        """,
    ),
    KnownMessage(
        texts=(
            "Only instances of `keras.Layer` can be added to a Sequential model",
            "The added layer must be an instance of class Layer",
        ),
        meaning="""
        A class instead of an object (`Dense` instead of `Dense(8)`), or a layer of another Keras:
        `tensorflow.keras`, `keras` and `tf_keras` have separate classes. Import all from one.
        """,
    ),
    KnownMessage(
        texts=("No images found in directory",),
        meaning="""
        The folder holds no image of the known formats. `image_dataset_from_directory` expects one folder for
        each class inside the given one; check the path.
        """,
        rules=("empty-dataset",),
    ),
)
