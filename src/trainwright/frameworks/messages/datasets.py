"""What the datasets library says of loading, mapping and indexing."""

from __future__ import annotations

from trainwright.frameworks.messages.known import KnownMessage

MESSAGES = (
    KnownMessage(
        texts=("Invalid key: … is out of bounds for size",),
        meaning="""
        A row beyond the end of a data set was asked for. With `size 0` under the Trainer, all columns were
        removed because none has the name of a parameter of the model's forward: tokenize the data, check the
        column names, or set `remove_unused_columns=False`. Otherwise a filter left no rows, or an index was
        computed for another set.
        """,
        rules=(
            "discarded-columns",
            "empty-dataset",
        ),
    ),
    KnownMessage(
        texts=("Invalid key: … Please first select a split",),
        meaning="""
        `load_dataset` returned a dictionary of splits. Take one: `dataset["train"][0]`, or pass `split="train"`
        to `load_dataset`.
        """,
    ),
    KnownMessage(
        texts=('Unknown split "…". Should be one of',),
        meaning="""
        The data set has no split of that name; the message lists those it has. Files loaded without `split`
        names are all `train`: make the others with `train_test_split`, or pass `data_files={"train": ...,
        "test": ...}`.
        """,
    ),
    KnownMessage(
        texts=(
            "Couldn't reach '…' on the Hub",
            "doesn't exist on the Hub or cannot be accessed",
        ),
        meaning="""
        The data set's name is wrong, it is private or gated (log in, accept its terms), or the Hub cannot be
        reached. Some old names now have an owner in front, such as `stanfordnlp/imdb`. Without a network,
        download it first, or load from disk.
        """,
    ),
    KnownMessage(
        texts=("Dataset scripts are no longer supported, but found",),
        meaning="""
        Since version 4, datasets runs no Python code of a repository. Look for a copy in Parquet (many
        repositories have a branch `refs/convert/parquet`: pass `revision="refs/convert/parquet"`), or install
        `datasets<4` if you trust the script.
        """,
    ),
    KnownMessage(
        texts=("doesn't contain any data files",),
        type="EmptyDatasetError",
        meaning="""
        The folder is empty, the pattern matches nothing, or the files are in formats that datasets does not
        know. Check the path, and name the format and files: `load_dataset("csv", data_files="data/*.csv")`.
        """,
    ),
    KnownMessage(
        texts=(
            "Unable to find '…'",
            "Couldn't find any data file at",
        ),
        meaning="""
        No file of that name or pattern exists. Paths are relative to the working directory; check upper and
        lower case and the extension.
        """,
    ),
    KnownMessage(
        texts=(
            "Column name … not in the dataset. Current columns in the dataset",
            "Original column name … not in the dataset",
            "Column to remove … not in the dataset",
            "Columns … not in the dataset",
        ),
        meaning="""
        The data set has no such column; the message lists those it has. An earlier `map` with `remove_columns`,
        or `select_columns`, may have removed it, and splits can have different columns: check each of them.
        """,
    ),
    KnownMessage(
        texts=("Column … named … expected length … but got length",),
        meaning="""
        A function passed to `map(..., batched=True)` returned columns of different lengths. If it changes the
        number of rows (chunking, filtering), remove all old columns: `remove_columns=dataset.column_names`. If
        it does not, it must return one value for each row that it got, in every column.
        """,
        rules=("misaligned-labels",),
    ),
    KnownMessage(
        texts=(
            "Provided `function` which is applied to all elements of table returns a variable of type",
            "Provided `function` which is applied to all elements of table returns a `dict` of types",
        ),
        meaning="""
        A function passed to `map` must return a dictionary of columns; with `batched=True` its values must be
        lists with one value for each row. A missing `return`, or a `return` of the text instead of `{"text":
        ...}`, is the usual cause.
        """,
    ),
    KnownMessage(
        texts=("Stratifying by column is only supported for ClassLabel column",),
        meaning="""
        Turn the label column into classes first: `dataset = dataset.class_encode_column("label")`, then split
        with `stratify_by_column="label"`.
        """,
    ),
    KnownMessage(
        texts=("Invalid string class label",),
        meaning="""
        The data holds a label that is not in the list of class names. Check spelling, spaces, and upper and
        lower case; build the list from the data, or use `class_encode_column`.
        """,
        rules=("string-labels",),
    ),
    KnownMessage(
        texts=("The features can't be aligned because",),
        meaning="""
        Two data sets that are joined have columns of different types; the message names the column. Cast one of
        them (`cast_column`, `dataset.cast(other.features)`), and give class labels the same list of names.
        """,
    ),
    KnownMessage(
        texts=("Failed to concatenate on axis=1 because tables don't have the same number of rows",),
        meaning="""
        `add_column` or a side-by-side join got another number of rows. A set that was filtered or split no
        longer fits a list made from the whole set: add the column first.
        """,
        rules=("misaligned-labels",),
    ),
    KnownMessage(
        texts=(
            "Could not convert … with type … tried to convert to",
            "tried to convert to int64",
            "cannot mix list and non-list, non-null values",
        ),
        meaning="""
        A column holds values of different types, such as numbers and texts. Convert them all to one type before
        the data set is made; empty lists and `None` in the first rows can mislead the type that is inferred:
        pass `features=`.
        """,
    ),
    KnownMessage(
        texts=("With n_samples=…, test_size=…, the resulting train set will be empty",),
        meaning="""
        There are too few rows to split. Check that the data was really loaded (path, filter, `n_samples` in the
        message), or use a smaller share.
        """,
        rules=("empty-dataset",),
    ),
    KnownMessage(
        texts=(
            "Couldn't cast array of type",
            "Couldn't cast … because column names don't match",
        ),
        meaning="""
        The files of one data set, or the output of `map`, do not have the types or columns of the first part.
        Look for rows with other fields or types (JSON files with optional fields are typical); pass
        `features=`, or load the files as separate splits. Removing the old columns in `map` helps when a column
        changes its type.
        """,
    ),
    KnownMessage(
        texts=("One of the subprocesses has abruptly died during map operation",),
        meaning="""
        A process of `map(num_proc=...)` was killed, most often because memory ran out. Use fewer processes and
        a smaller `batch_size` and `writer_batch_size`, and run once without `num_proc` to see a Python error.
        """,
        rules=("out-of-memory",),
    ),
    KnownMessage(
        texts=("Loading a dataset cached in a LocalFileSystem is not supported",),
        meaning="""
        Versions of `datasets` and `fsspec` that do not fit. Upgrade datasets (`pip install -U datasets`), and
        restart the notebook.
        """,
    ),
    KnownMessage(
        texts=(
            "KeyError: 'train'",
            "KeyError: 'validation'",
            "KeyError: 'test'",
        ),
        type="KeyError",
        meaning="""
        The data has no split of that name. Print its keys: `load_dataset` returns the splits that the
        repository has, which may be called `validation`, `valid` or `dev`; files loaded without names are all
        `train`.
        """,
    ),
    KnownMessage(
        texts=("Column '…' doesn't exist",),
        meaning="""
        The data set has no such column. Print `dataset.column_names`; an earlier `map` with `remove_columns` or
        a rename may have removed it, and splits can differ.
        """,
    ),
)
