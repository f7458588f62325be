"""What pandas and scikit-learn say in training scripts and metrics."""

from __future__ import annotations

from trainwright.frameworks.messages.known import KnownMessage

MESSAGES = (
    KnownMessage(
        texts=(
            "not in index",
            "not found in axis",
            "None of [… are in the [columns]",
        ),
        type="KeyError",
        meaning="""
        The data frame has no such column or row label. Print `df.columns`: names can have spaces or another
        case, and the target may already have been dropped. After filtering or splitting, labels are no longer 0
        to N - 1.
        """,
    ),
    KnownMessage(
        texts=(
            "KeyError: 0",
            "KeyError: 1",
        ),
        type="KeyError",
        meaning="""
        Usually a pandas series or frame was indexed by position, but `s[i]` looks for the label i, which a
        split or a filter removed; otherwise a dictionary, such as a map of labels, lacks this number. In a data
        set's `__getitem__`, use `.iloc[i]`, or convert with `.to_numpy()`, or call `reset_index(drop=True)`
        after the split.
        """,
        rules=("misaligned-labels",),
    ),
    KnownMessage(
        texts=("Length of values (…) does not match length of index",),
        meaning="""
        A column of another length is assigned to a frame: predictions of a subset, or of whole batches with
        `drop_last=True`. Make one value for each row, in the frame's order.
        """,
        rules=("misaligned-labels",),
    ),
    KnownMessage(
        texts=(
            "cannot convert float NaN to integer",
            "Cannot convert non-finite values (NA or inf) to integer",
        ),
        meaning="""
        A column that should hold whole numbers has missing values. Fill or drop them first (`dropna`,
        `fillna`); a label column with missing values usually means that a join or a `map` of names to numbers
        did not find every name.
        """,
        rules=("non-finite-data",),
    ),
    KnownMessage(
        texts=(
            "single positional indexer is out-of-bounds",
            "positional indexers are out-of-bounds",
        ),
        meaning="""
        `iloc` got a position beyond the end. `__len__` of the data set is larger than the frame, or the
        positions belong to the frame before a filter or split.
        """,
    ),
    KnownMessage(
        texts=(
            "Error tokenizing data. C error",
            "No columns to parse from file",
        ),
        meaning="""
        The CSV file is not what `read_csv` expects: another separator (`sep=";"`), unquoted commas in a text,
        extra lines at the top (`skiprows`), or an HTML page or an empty file instead of data. Look at the line
        in the message; `on_bad_lines="skip"` drops such rows.
        """,
    ),
    KnownMessage(
        texts=("codec can't decode byte",),
        meaning="""
        The file is not in the encoding that is assumed. Find out which it is (`encoding="latin-1"` or
        `"cp1252"` are common), or it is no text at all: compressed or binary files and images give this, too.
        """,
        rules=("garbled-text",),
    ),
    KnownMessage(
        texts=(
            "'DataFrame' object has no attribute 'append'",
            "'DataFrame' object has no attribute 'ix'",
            "'Series' object has no attribute 'append'",
        ),
        meaning="""
        Pandas removed this method. Use `pd.concat([df, other], ignore_index=True)` instead of `append`, and
        `.loc` or `.iloc` instead of `.ix`.
        """,
        rules=("removed-api",),
    ),
    KnownMessage(
        texts=("Found input variables with inconsistent numbers of samples",),
        meaning="""
        The arrays have different numbers of rows; the message lists them. One was filtered, split or collected
        without the other: predictions of a loader with `drop_last=True`, labels of another split, or an array
        that is transposed.
        """,
        rules=("misaligned-labels",),
    ),
    KnownMessage(
        texts=("The least populated class… in y ha… only 1 member",),
        meaning="""
        A stratified split needs at least two rows of every class. Merge or drop rare classes, or split without
        `stratify`; check that the column is the label and not an id or a real number.
        """,
        rules=(
            "imbalanced-classes",
            "missing-classes",
        ),
    ),
    KnownMessage(
        texts=(
            "Input X contains NaN",
            "Input contains NaN",
            "Input contains infinity or a value too large for dtype",
        ),
        meaning="""
        scikit-learn rejects missing or infinite values. In the data: `dropna`, `SimpleImputer`, and look for
        divisions by 0. In predictions: the model's output became NaN in training; look for a learning rate that
        is too high.
        """,
        rules=(
            "non-finite-data",
            "non-finite-activation",
        ),
    ),
    KnownMessage(
        texts=(
            "Expected 2D array, got 1D array instead",
            "Expected 2D array, got scalar array instead",
        ),
        meaning="""
        scikit-learn expects (rows, features). For one feature, `x.reshape(-1, 1)` or `df[["column"]]`; for one
        row, `x.reshape(1, -1)`.
        """,
    ),
    KnownMessage(
        texts=("features, but … is expecting … features as input",),
        meaning="""
        The data has another number of columns than the object was fitted with. One-hot encoding train and test
        separately is the usual cause: fit the encoder on the training rows only, and transform both with it.
        """,
        rules=("differently-scaled-sets",),
    ),
    KnownMessage(
        texts=("is not fitted yet",),
        type="NotFittedError",
        meaning="""
        Call `fit` (or `fit_transform`) on the training rows before `transform` or `predict`. In a separate
        script, load the fitted object with `joblib` instead of building a new one.
        """,
        rules=("differently-scaled-sets",),
    ),
    KnownMessage(
        texts=(
            "y contains previously unseen labels",
            "Found unknown categories",
        ),
        meaning="""
        The evaluation rows have a class or category that the encoder did not see. Fit it on all class names, or
        use `OneHotEncoder(handle_unknown="ignore")`; check spaces and upper and lower case.
        """,
        rules=("missing-classes",),
    ),
    KnownMessage(
        texts=(
            "Only one class present in y_true",
            "The number of classes in labels is different from that in y_pred",
            "y_true contains only one label",
        ),
        meaning="""
        The metric needs at least two classes in the true labels of this batch or split. Compute it over the
        whole evaluation set instead of per batch, split with `stratify`, and pass `labels=` where it is
        accepted.
        """,
        rules=(
            "missing-classes",
            "imbalanced-classes",
        ),
    ),
    KnownMessage(
        texts=(
            "multi_class must be in ('ovo', 'ovr')",
            "Target scores need to be probabilities for multiclass roc_auc",
        ),
        meaning="""
        For more than two classes, `roc_auc_score` needs `multi_class="ovr"` or `"ovo"`, and one probability per
        class that sums to 1: apply a softmax to the scores.
        """,
        rules=("metrics-on-logits",),
    ),
    KnownMessage(
        texts=("Target is multiclass but average='binary'",),
        meaning="""
        Precision, recall and F1 of more than two classes need `average="macro"`, `"weighted"` or `"micro"`. If
        the task has two classes, labels such as -1 or 2 are among them.
        """,
        rules=("crashing-metrics",),
    ),
    KnownMessage(
        texts=("Classification metrics can't handle a mix of",),
        meaning="""
        The metric got scores where it expects classes. Take the argmax (or a threshold of 0.5 on probabilities)
        first; `continuous` in the message are the scores, `multilabel-indicator` are one-hot rows.
        """,
        rules=(
            "metrics-on-logits",
            "mismatched-metric",
        ),
    ),
    KnownMessage(
        texts=("is not a valid label. It should be one of",),
        type="ValueError",
        meaning="""
        The positive class is 1 by default, and these labels have other names. Pass `pos_label="yes"`, or encode
        the labels as 0 and 1.
        """,
    ),
    KnownMessage(
        texts=(
            "Cannot have number of splits n_splits=… greater than the number of samples",
            "cannot be greater than the number of members in each class",
        ),
        meaning="""
        There are fewer rows, or rows of one class, than folds. Use fewer folds, merge rare classes, and check
        that the data was loaded completely.
        """,
        rules=(
            "empty-dataset",
            "imbalanced-classes",
        ),
    ),
    KnownMessage(
        texts=("This solver needs samples of at least 2 classes in the data",),
        meaning="""
        All training labels are the same. Check how they were made: a failed mapping of names to numbers, a
        filter, or a sorted file that was split without shuffling.
        """,
        rules=(
            "destroyed-labels",
            "missing-classes",
        ),
    ),
    KnownMessage(
        texts=("does not match size of target_names",),
        meaning="""
        `classification_report` found another number of classes in the labels and predictions than there are
        names. Pass `labels=range(n_classes)`, so that classes without rows are listed, too.
        """,
        rules=("missing-classes",),
    ),
)
