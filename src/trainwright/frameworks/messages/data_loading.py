"""What is said by data sets, loaders and their worker processes."""

from __future__ import annotations

from trainwright.frameworks.messages.known import KnownMessage

MESSAGES = (
    KnownMessage(
        texts=("stack expects each tensor to be equal size",),
        meaning="""
        The rows of a batch have different shapes, and the loader can only stack equal ones. Images: resize or
        crop them all to one size, and convert them to the same number of channels (`.convert("RGB")`). Texts
        and sequences: pad them in a `collate_fn` (`torch.nn.utils.rnn.pad_sequence`,
        `DataCollatorWithPadding`). The message gives the shapes of the two rows.
        """,
        rules=("ragged-batch",),
    ),
    KnownMessage(
        texts=("each element in list of batch should be of equal size",),
        meaning="""
        The data set returns lists of different lengths, and the loader joins lists element by element. Return
        tensors, and pad them in a `collate_fn`. Rows from the tokenizer need padding to a common length
        (`DataCollatorWithPadding`).
        """,
        rules=("ragged-batch",),
    ),
    KnownMessage(
        texts=("batch must contain tensors, numpy arrays, numbers, dicts or lists; found",),
        meaning="""
        The data set returns something that the loader cannot batch; the message names the type. `NoneType`:
        `__getitem__` has no `return`, or returns `None` for a row that failed. `PIL.Image`: a transform such as
        `ToTensor` is missing. For your own classes and data frames, return tensors, or write a `collate_fn`.
        """,
    ),
    KnownMessage(
        texts=("Caught … in DataLoader worker process",),
        wraps=True,
        meaning="""
        An exception inside a worker process, passed on to the main process. The original traceback is below
        this line: its last line is the error, and your data set's or `collate_fn`'s line is in it. With
        `num_workers=0` it is raised in the main process, where a debugger can stop.
        """,
    ),
    KnownMessage(
        texts=(
            "DataLoader worker (pid(s) …) exited unexpectedly",
            "exited unexpectedly with exit code",
        ),
        meaning="""
        A worker process ended without a Python error. On Linux it was usually killed for lack of memory
        (`dmesg` shows it): use fewer workers, smaller batches or `prefetch_factor`, and do not keep large
        Python lists in the data set. On Windows and macOS, the script lacks `if __name__ == "__main__":`. Run
        once with `num_workers=0`: if a Python error is the reason, it is shown.
        """,
    ),
    KnownMessage(
        texts=("DataLoader worker (pid …) is killed by signal",),
        meaning="""
        A worker process was killed. `Killed` means that the system ran out of memory: use fewer workers or
        smaller batches. `Bus error` means that shared memory is full. `Segmentation fault` or `Aborted` comes
        from a native library, often OpenCV: call `cv2.setNumThreads(0)`, and open files such as HDF5 inside the
        worker, not in `__init__`.
        """,
    ),
    KnownMessage(
        texts=(
            "insufficient shared memory (shm)",
            "workers are out of shared memory",
            "unable to open shared memory object",
            "unable to write to file </torch_",
        ),
        meaning="""
        The workers pass batches through shared memory, and it is full. In Docker its default is 64 MB: start
        the container with `--shm-size=8g` or `--ipc=host`. Otherwise use fewer workers, a smaller
        `prefetch_factor`, or `torch.multiprocessing.set_sharing_strategy("file_system")`.
        """,
    ),
    KnownMessage(
        texts=(
            "received 0 items of ancdata",
            "Too many open files",
        ),
        meaning="""
        The process holds too many open files: the workers share each tensor through a file descriptor. Call
        `torch.multiprocessing.set_sharing_strategy("file_system")` at the start, or raise the limit with
        `ulimit -n 65535`. Check, too, that the data set closes its files and that batches are not collected in
        a list.
        """,
    ),
    KnownMessage(
        texts=("DataLoader timed out after",),
        meaning="""
        The workers delivered nothing within `timeout` seconds. Reading is slow (a network disk, a large file
        per row), or a worker hangs in a lock: libraries with threads, such as OpenCV or HDF5, hang after a
        fork. Run with `num_workers=0` to see whether a single batch arrives.
        """,
    ),
    KnownMessage(
        texts=(
            "An attempt has been made to start a new process before the current process has finished its bootstrapping phase",
        ),
        meaning="""
        On Windows and macOS, a worker process imports the script again, and the script starts workers while it
        is imported. Put everything that runs into `if __name__ == "__main__":`.
        """,
        rules=("unpicklable-workers",),
    ),
    KnownMessage(
        texts=(
            "Can't pickle local object",
            "cannot pickle '…' object",
            "Can't pickle <function",
        ),
        meaning="""
        Something that must be sent to another process cannot be: the message names it. Lambdas and functions
        inside functions must move to the top level of a module; locks, open files, database connections and
        generators must be opened inside the worker. Worker processes that are spawned (Windows, macOS,
        `ddp_spawn`) pickle the data set with its transforms and the `collate_fn`. `num_workers=0` avoids it.
        """,
        rules=("unpicklable-workers",),
    ),
    KnownMessage(
        texts=("Cannot re-initialize CUDA in forked subprocess",),
        meaning="""
        A worker uses the GPU although the main process has already initialized it. Return CPU tensors from the
        data set and the `collate_fn`, and move the batch to the GPU in the training loop. If a worker must use
        CUDA, pass `multiprocessing_context="spawn"`.
        """,
    ),
    KnownMessage(
        texts=("cannot pin 'torch.cuda.… only dense CPU tensors can be pinned",),
        meaning="""
        `pin_memory=True` is for batches on the CPU, but the data set returns tensors on the GPU. Return CPU
        tensors and move the batch in the loop, or turn `pin_memory` off.
        """,
    ),
    KnownMessage(
        texts=(
            "sampler option is mutually exclusive with shuffle",
            "batch_sampler option is mutually exclusive with",
        ),
        meaning="""
        A sampler already decides the order, so `shuffle=True` must go; a batch sampler also decides
        `batch_size` and `drop_last`. For a `DistributedSampler`, pass `shuffle` to the sampler, and call its
        `set_epoch` each epoch.
        """,
        rules=("ranks-see-different-data",),
    ),
    KnownMessage(
        texts=("DataLoader with IterableDataset: expected unspecified shuffle option",),
        meaning="""
        An iterable data set has no index to shuffle. Remove `shuffle=True`, and shuffle in the data set itself
        (`.shuffle(buffer_size=...)` of streamed Hugging Face data).
        """,
    ),
    KnownMessage(
        texts=("has no len()",),
        meaning="""
        The object has no length, because it is an iterable or streamed data set, a generator, or a plain
        iterator. Where a length is needed, give the number of steps instead (`max_steps`, `steps_per_epoch`,
        `limit_train_batches`), or define `__len__`. If it is your own data set class, `__len__` is missing or
        misspelled.
        """,
        rules=("endless-epoch",),
    ),
    KnownMessage(
        texts=(
            "prefetch_factor option could only be specified in multiprocessing",
            "persistent_workers option needs num_workers > 0",
        ),
        meaning="""
        The option only makes sense with worker processes: set `num_workers` to at least 1, or remove it.
        """,
    ),
    KnownMessage(
        texts=("Sum of input lengths does not equal the length of the input dataset",),
        meaning="""
        `random_split` got lengths whose sum is not the size of the set, usually because of rounding. Compute
        the last one as the rest (`n - train_size`), or pass shares that add up to 1: `[0.8, 0.2]`.
        """,
    ),
    KnownMessage(
        texts=("Size mismatch between tensors",),
        type="AssertionError",
        meaning="""
        `TensorDataset` got tensors with different numbers of rows: inputs and labels do not belong together, or
        one of them was filtered, split or transposed without the other.
        """,
        rules=("misaligned-labels",),
    ),
    KnownMessage(
        texts=("num_samples should be a positive integer value",),
        meaning="""
        The data set is empty, so there is nothing to shuffle. Check the path and the pattern of the files
        (print `len(dataset)`), the working directory, upper and lower case of the extension (`.JPG`), and
        filters that drop every row.
        """,
        rules=("empty-dataset",),
    ),
    KnownMessage(
        texts=(
            "image file is truncated",
            "cannot identify image file",
            "UnidentifiedImageError",
        ),
        meaning="""
        An image file is damaged or is no image; the traceback or the message names it. Check the files once
        before training (`Image.open(path).verify()`), remove the bad ones and hidden files such as `.DS_Store`,
        and download again if many are affected. `ImageFile.LOAD_TRUNCATED_IMAGES = True` reads incomplete files
        with gray areas.
        """,
    ),
    KnownMessage(
        texts=(
            "Found no valid file for the classes",
            "Couldn't find any class folder in",
        ),
        meaning="""
        `ImageFolder` expects one folder for each class, with images inside: `root/class/image.png`. The path
        points one level too high or too low, a class folder is empty, or the extensions are not known. In
        notebooks, remove `.ipynb_checkpoints`.
        """,
        rules=("empty-dataset",),
    ),
    KnownMessage(
        texts=(
            "KeyError: 'labels'",
            "KeyError: 'label'",
        ),
        type="KeyError",
        meaning="""
        A batch, a row or a metric's input has no such key. Print `batch.keys()`: collators of transformers
        rename `label` to `labels`, the Trainer removes columns that forward does not take, and a tokenized set
        may have lost the column in `map(remove_columns=...)`.
        """,
        rules=(
            "missing-labels",
            "discarded-columns",
        ),
    ),
    KnownMessage(
        texts=("KeyError: '…'",),
        meaning="""
        A dictionary, a row, a batch or a data frame has no such key. Print its keys right before the line:
        spelling, spaces, upper and lower case and invisible characters count (a file with a byte order mark
        adds `\\ufeff`: read it with `encoding="utf-8-sig"`). A mapping of labels or words to numbers lacks
        those that only occur in other data: build it from all of them, or use a default such as `[UNK]`.
        """,
        rules=(
            "discarded-columns",
            "missing-labels",
        ),
    ),
)
