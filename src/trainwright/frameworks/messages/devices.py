"""What CUDA and other accelerators say."""

from __future__ import annotations

from trainwright.frameworks.messages.known import KnownMessage

MESSAGES = (
    KnownMessage(
        texts=(
            "srcIndex < srcSelectDimSize",
            "Assertion `srcIndex < srcSelectDimSize` failed",
            "vectorized gather kernel index out of bounds",
            '&& "index out of bounds"',
        ),
        meaning="""
        An index is too large for the table that it selects from, on the GPU. It is nearly always an embedding:
        a token id at or above the model's vocabulary size (a tokenizer of another model, or tokens that were
        added without `model.resize_token_embeddings(len(tokenizer))`), or a sequence that is longer than the
        model's table of positions (`truncation=True, max_length=...`). Later messages of CUDA or cuBLAS in the
        same process are consequences. Run one batch on the CPU: the error there names the line.
        """,
        rules=(
            "tokens-beyond-vocabulary",
            "index-beyond-embedding",
            "foreign-tokenizer",
            "label-out-of-range",
        ),
    ),
    KnownMessage(
        texts=(
            "t >= 0 && t < n_classes",
            "Assertion `t >= 0 && t < n_classes` failed",
            "cur_target >= 0 && cur_target < n_classes",
        ),
        meaning="""
        A label is below 0 or at least the number of the model's outputs, so the class loss stopped on the GPU.
        Labels must run from 0 to C - 1: check `labels.min()`, `labels.max()` and the size of the last layer
        (`num_labels`). Labels that start at 1 and rows marked by -1 or 255 are the usual cases; pass
        `ignore_index` for the latter. All later CUDA errors are consequences; restart the process.
        """,
        rules=(
            "label-out-of-range",
            "misnumbered-labels",
            "unignored-labels",
        ),
    ),
    KnownMessage(
        texts=(
            "input_val >= zero && input_val <= one",
            "Assertion `input_val >= zero && input_val <= one` failed",
        ),
        meaning="""
        A binary cross-entropy got a value outside 0 to 1, or NaN, on the GPU. `BCELoss` needs probabilities:
        use `BCEWithLogitsLoss` on the raw scores instead. If there is a sigmoid, the scores are NaN: look for a
        learning rate that is too high, or NaN in the data. The targets must lie between 0 and 1, too.
        """,
        rules=(
            "missing-activation",
            "non-finite-activation",
        ),
    ),
    KnownMessage(
        texts=("device-side assert triggered",),
        meaning="""
        A check inside a GPU kernel failed. It is nearly always an index out of range: a class label at or above
        the number of outputs (or below 0), or a token id or position that the embedding does not have. The
        Python line in the traceback can be too late, because kernels run asynchronously; the line above the
        traceback that says `Assertion ... failed` names the check. Run one batch on the CPU, or with
        `CUDA_LAUNCH_BLOCKING=1`, to get the real line. The process must be restarted afterwards.
        """,
        rules=(
            "tokens-beyond-vocabulary",
            "label-out-of-range",
            "misnumbered-labels",
        ),
    ),
    KnownMessage(
        texts=(
            "CUBLAS_STATUS_NOT_INITIALIZED",
            "CUBLAS_STATUS_ALLOC_FAILED",
        ),
        meaning="""
        cuBLAS could not start. Either the GPU's memory is full, so that no workspace is left (look at
        `nvidia-smi`; reduce the batch size, end other processes), or an earlier kernel failed with an index out
        of range and this is the first call that notices: look for `Assertion ... failed` above, and run one
        batch on the CPU. A CUDA build that does not fit the driver is the third cause.
        """,
        rules=(
            "out-of-memory",
            "tokens-beyond-vocabulary",
            "accelerator-held-by-others",
        ),
    ),
    KnownMessage(
        texts=(
            "CUBLAS_STATUS_EXECUTION_FAILED",
            "CUBLAS_STATUS_INVALID_VALUE",
            "CUBLAS_STATUS_INTERNAL_ERROR",
        ),
        meaning="""
        A matrix product on the GPU failed. Often an earlier kernel failed with an index out of range, and this
        is only the first call that notices: run one batch on the CPU or with `CUDA_LAUNCH_BLOCKING=1`.
        Otherwise factors with shapes that do not fit, memory that is nearly full, or mismatched versions of
        CUDA libraries: check that `LD_LIBRARY_PATH` does not point to another CUDA.
        """,
        rules=(
            "tokens-beyond-vocabulary",
            "label-out-of-range",
        ),
    ),
    KnownMessage(
        texts=(
            "CUDNN_STATUS_NOT_INITIALIZED",
            "CUDNN_STATUS_EXECUTION_FAILED",
            "CUDNN_STATUS_INTERNAL_ERROR",
            "Unable to find a valid cuDNN algorithm to run convolution",
            "unable to find an engine to execute this computation",
        ),
        meaning="""
        cuDNN could not run. Most often the GPU's memory is nearly full: reduce the batch size, and look in
        `nvidia-smi` for other processes. Otherwise the installed CUDA, cuDNN and driver do not fit each other
        (`LD_LIBRARY_PATH` points to another cuDNN), or an earlier kernel failed. A batch on the CPU shows
        whether shapes and dtypes are right.
        """,
        rules=(
            "out-of-memory",
            "accelerator-held-by-others",
        ),
    ),
    KnownMessage(
        texts=(
            "CUDA out of memory. Tried to allocate",
            "CUDA error: out of memory",
            "HIP out of memory",
        ),
        meaning="""
        The GPU's memory is full. Halve the batch size and double the accumulation steps; shorten the sequences;
        use bf16 or fp16, gradient checkpointing, or an optimizer with smaller state. If memory grows from step
        to step, something keeps graphs alive: `total += loss` instead of `loss.item()`, or outputs collected in
        a list. If it fails in evaluation, run under `torch.no_grad()` and do not keep all logits. If it fails
        at once, look in `nvidia-smi` for other processes. Much "reserved but unallocated" memory is
        fragmentation: set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`.
        """,
        rules=(
            "out-of-memory",
            "retained-logits",
            "accelerator-held-by-others",
        ),
    ),
    KnownMessage(
        texts=("CUDA error: an illegal memory access was encountered",),
        meaning="""
        A kernel read or wrote outside its memory; the Python line in the traceback is often too late. Run with
        `CUDA_LAUNCH_BLOCKING=1`, and one batch on the CPU, which reports indices out of range. Otherwise
        suspect custom CUDA kernels (flash attention, quantization, Triton) and their versions, tensors of
        different GPUs in one such kernel, and sizes above 2^31 elements.
        """,
        rules=(
            "tokens-beyond-vocabulary",
            "label-out-of-range",
        ),
    ),
    KnownMessage(
        texts=(
            "no kernel image is available for execution on the device",
            "is not compatible with the current PyTorch installation",
        ),
        meaning="""
        This build of PyTorch, or of a CUDA extension, was not compiled for this GPU's architecture: the GPU is
        newer or older than the build supports. Install the PyTorch build for a CUDA version that supports the
        GPU (the selector on pytorch.org), and rebuild extensions such as flash-attn for it.
        """,
    ),
    KnownMessage(
        texts=("Torch not compiled with CUDA enabled",),
        meaning="""
        The CPU build of PyTorch is installed, and the script asks for the GPU. Install the CUDA build (the
        selector on pytorch.org gives the command), in the environment that runs the script. On macOS, use
        `mps`. To run on the CPU, choose the device by `torch.cuda.is_available()`.
        """,
    ),
    KnownMessage(
        texts=(
            "Found no NVIDIA driver on your system",
            "No CUDA GPUs are available",
            "The NVIDIA driver on your system is too old",
        ),
        meaning="""
        PyTorch was built with CUDA but finds no usable GPU. Check `nvidia-smi` on the same machine and in the
        same container (`docker run --gpus all`), whether the scheduler gave the job a GPU, and
        `CUDA_VISIBLE_DEVICES`: empty or with a wrong number, it hides all of them. A driver that is too old
        must be updated, or an older CUDA build installed.
        """,
    ),
    KnownMessage(
        texts=("CUDA error: invalid device ordinal",),
        meaning="""
        The script asks for a GPU with a number that does not exist. Numbers start at 0, and
        `CUDA_VISIBLE_DEVICES` renumbers the visible ones from 0. With `torchrun`, use `LOCAL_RANK`, not the
        global rank, and do not start more processes than GPUs.
        """,
    ),
    KnownMessage(
        texts=(
            "CUDA error: uncorrectable ECC error encountered",
            "CUDA error: unspecified launch failure",
            "Unable to determine the device handle for GPU",
        ),
        meaning="""
        The GPU or its driver failed, most likely; the script cannot fix it. Look at `nvidia-smi -q` and the
        system's log (`dmesg | grep Xid`), restart the machine or reset the GPU, and try another GPU. If it
        happens at the same batch on another GPU too, look for an index out of range with a run on the CPU.
        """,
    ),
    KnownMessage(
        texts=("MPS backend out of memory",),
        meaning="""
        The memory that the Mac's GPU may use is full. Reduce the batch size or the image size, or use gradient
        accumulation. `PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0` removes the limit, at the risk of making the system
        unresponsive.
        """,
        rules=("out-of-memory",),
    ),
    KnownMessage(
        texts=("is not currently implemented for the MPS device",),
        meaning="""
        The Mac's GPU lacks this operation in the installed version. Set `PYTORCH_ENABLE_MPS_FALLBACK=1` before
        Python starts, so that the operation runs on the CPU, update PyTorch, or move that part to the CPU.
        """,
    ),
    KnownMessage(
        texts=("Cannot convert a MPS Tensor to float64 dtype",),
        meaning="""
        The Mac's GPU has no float64. Convert to float32 before moving: NumPy and pandas give float64, so write
        `torch.as_tensor(x, dtype=torch.float32)`.
        """,
    ),
    KnownMessage(
        texts=("Placeholder storage has not been allocated on MPS device",),
        meaning="""
        One tensor is on the CPU and another on the Mac's GPU. Move the batch and everything made inside forward
        to `mps`, too.
        """,
        rules=("mixed-devices",),
    ),
    KnownMessage(
        texts=(
            "FlashAttention only supports … GPUs",
            "FlashAttention only support fp16 and bf16 data type",
        ),
        meaning="""
        Flash attention needs an Ampere or newer GPU, and tensors in fp16 or bf16. Load the model with
        `dtype=torch.bfloat16`, or choose `attn_implementation="sdpa"`.
        """,
    ),
    KnownMessage(
        texts=(
            "DefaultCPUAllocator: can't allocate memory",
            "DefaultCPUAllocator: not enough memory",
            "std::bad_alloc",
        ),
        meaning="""
        The machine's main memory is full (not the GPU's). A tensor may be much larger than meant: a broadcast
        of (N,) with (N, 1) gives N x N. Otherwise reduce the batch size and the number of workers, and do not
        load the whole data set at once or collect all outputs in a list.
        """,
        rules=(
            "out-of-memory",
            "retained-logits",
        ),
    ),
)
