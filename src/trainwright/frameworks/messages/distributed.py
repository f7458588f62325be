"""What is said when a training runs in several processes."""

from __future__ import annotations

from trainwright.frameworks.messages.known import KnownMessage

MESSAGES = (
    KnownMessage(
        texts=("Expected to have finished reduction in the prior iteration before starting a new one",),
        meaning="""
        Under DistributedDataParallel, some parameters got no gradient in the step before. A branch of the model
        is unused (a head, an expert, a layer skipped at random), an output is not part of the loss, or
        `.detach()` cuts it off; a call around DDP's forward (`model.module(x)`) does it, too. Remove or freeze
        the unused parameters, or pass `find_unused_parameters=True` (`ddp_find_unused_parameters` in the
        Trainer, `strategy="ddp_find_unused_parameters_true"` in Lightning). `TORCH_DISTRIBUTED_DEBUG=DETAIL`
        lists their names.
        """,
        rules=(
            "severed-graph",
            "unregistered-parameters",
        ),
    ),
    KnownMessage(
        texts=("Expected to mark a variable ready only once",),
        meaning="""
        A parameter received two gradients in one step under DistributedDataParallel. Gradient checkpointing in
        its reentrant form together with shared or unused parameters is the usual cause: pass
        `gradient_checkpointing_kwargs={"use_reentrant": False}`, and set `find_unused_parameters=False`.
        Calling the wrapped model several times per step, or two backward passes, does it, too:
        `_set_static_graph()` or one combined forward pass helps.
        """,
    ),
    KnownMessage(
        texts=(
            "Watchdog caught collective operation timeout",
            "Timed out waiting … for send operation to complete",
            "Timed out waiting … for recv operation to complete",
        ),
        meaning="""
        One process waited for the others until the time limit. The others crashed (look for the first traceback
        in the log), are busy (tokenizing or downloading on rank 0 only, saving, evaluating), or make another
        number of calls: loaders of unequal length, a `continue` or an `if rank == 0` around a collective call
        such as `gather`, `backward` or `save`. Give all ranks the same number of batches, and raise the timeout
        only for work that is really slow (`ddp_timeout`, `InitProcessGroupKwargs`).
        """,
        rules=("ranks-see-different-data",),
    ),
    KnownMessage(
        texts=(
            "NCCL error:",
            "NCCL error in:",
            "ncclUnhandledCudaError",
            "ncclSystemError",
            "ncclInternalError",
            "ncclInvalidUsage",
        ),
        meaning="""
        The GPUs' communication library failed. Set `NCCL_DEBUG=INFO` and read its first warning. Usual causes:
        two processes on the same GPU (use `LOCAL_RANK`), too little shared memory in Docker (`--shm-size` or
        `--ipc=host`), the wrong network interface (`NCCL_SOCKET_IFNAME`), broken peer-to-peer access
        (`NCCL_P2P_DISABLE=1` as a test), memory that is full, or another process that crashed first.
        """,
    ),
    KnownMessage(
        texts=("Duplicate GPU detected",),
        meaning="""
        Two processes use the same GPU. Call `torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))` before the
        process group is created, do not write `cuda:0` or `.cuda()` before that, and do not start more
        processes than there are GPUs.
        """,
    ),
    KnownMessage(
        texts=(
            "ChildFailedError",
            "torch.distributed.elastic.multiprocessing.api:failed (exitcode:",
        ),
        wraps=True,
        meaning="""
        The launcher only reports that one of its processes failed. The cause is in that process's own
        traceback, above in the log: the first one, of the rank that the report calls root cause. Exit code -9
        is a kill for lack of main memory, and -11 a crash in native code. `torchrun --redirects 3 --log-dir
        logs` writes one file for each process.
        """,
    ),
    KnownMessage(
        texts=("CalledProcessError: Command … returned non-zero exit status",),
        wraps=True,
        meaning="""
        A command failed that another program started; `accelerate launch` reports a failed script this way. The
        cause is in the command's own output or traceback, above this one.
        """,
    ),
    KnownMessage(
        texts=(
            "ProcessExitedException:",
            "ProcessRaisedException:",
            "process … terminated with signal SIGKILL",
        ),
        wraps=True,
        meaning="""
        A spawned process ended. If a traceback of that process follows or precedes, it holds the cause. SIGKILL
        without a traceback means that the system ran out of memory: use fewer processes or workers; SIGSEGV is
        a crash in native code.
        """,
    ),
    KnownMessage(
        texts=(
            "EADDRINUSE",
            "The server socket has failed to bind to",
            "errno: 98 - Address already in use",
        ),
        meaning="""
        The port for the processes' meeting is taken, by another training or by one that did not end. End the
        old processes (look in `nvidia-smi` and `ps`), or choose another port: `--master_port` (torchrun),
        `--main_process_port` (accelerate), `MASTER_PORT`; `torchrun --standalone` picks a free one.
        """,
    ),
    KnownMessage(
        texts=("Default process group has not been initialized",),
        meaning="""
        A distributed call runs before `torch.distributed.init_process_group`, or in a process that was started
        without a launcher. Start the script with `torchrun` or `accelerate launch`, or make the call only if
        `torch.distributed.is_initialized()`. A `DistributedSampler` in a single-process run raises it, too.
        """,
    ),
    KnownMessage(
        texts=("Error initializing torch.distributed using env:// rendezvous: environment variable",),
        meaning="""
        The script expects a launcher's variables. Start it with `torchrun --nproc_per_node N script.py`, or set
        RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT yourself. In a notebook, use
        `accelerate.notebook_launcher`.
        """,
    ),
    KnownMessage(
        texts=("trying to initialize the default process group twice",),
        meaning="""
        `init_process_group` ran twice: by the script and by the library (Accelerate, the Trainer and Lightning
        do it themselves), or a notebook cell ran again. Remove your own call, or guard it with
        `is_initialized()`.
        """,
    ),
    KnownMessage(
        texts=(
            "The server socket has failed to listen on any local network address",
            "gloo/transport/tcp/pair.cc…Connection closed by peer",
        ),
        meaning="""
        One of the processes is gone, or the port is taken. If the first traceback in the log is another one, it
        is the cause, and this message only follows from it. Otherwise end old processes of earlier runs, choose
        another port, and check that the machines can reach each other.
        """,
    ),
    KnownMessage(
        texts=(
            "Socket Timeout",
            "client socket has timed out after",
        ),
        meaning="""
        The processes did not find each other in time. Check the address and port of rank 0, firewalls, that the
        number of started processes equals the world size, and that no process crashed or is still downloading
        or tokenizing. Let rank 0 prepare the data before the others start (`with
        accelerator.main_process_first():`).
        """,
        rules=("ranks-see-different-data",),
    ),
    KnownMessage(
        texts=(
            "DistributedDataParallel is not needed when a module doesn't have any parameters that require a gradient",
        ),
        meaning="""
        The wrapped module has no trainable parameter. Wrap only the modules that are trained, and check that
        freezing did not catch everything, as it does with a PEFT model loaded without `is_trainable=True`.
        """,
        rules=("frozen-model",),
    ),
    KnownMessage(
        texts=("module must have its parameters and buffers on device cuda:",),
        meaning="""
        The model must be on the first GPU before `nn.DataParallel` is called: `model.to("cuda:0")`. Parameters
        left elsewhere are layers kept in a plain list, or a model loaded with `device_map`.
        """,
        rules=("mixed-devices",),
    ),
    KnownMessage(
        texts=("Was asked to gather along dimension 0, but all input tensors were scalars",),
        meaning="""
        This is a warning: `DataParallel` gathers one loss from each GPU into a vector. Call `loss.mean()`
        before `backward()`. DistributedDataParallel (`torchrun`) avoids it and is faster.
        """,
    ),
    KnownMessage(
        texts=(
            "DDP expects same model across all ranks",
            "appears not to match sizes of the same param in process 0",
        ),
        meaning="""
        The processes built different models: another number, order or size of parameters. Something that
        differs by rank decides about layers: a vocabulary or number of classes computed from each rank's own
        data, a random choice, a file that only one rank has, or freezing before DDP on one rank only. Compute
        it on rank 0 and broadcast it, or from the whole data.
        """,
        rules=("ranks-see-different-data",),
    ),
    KnownMessage(
        texts=("Caught … in replica … on device",),
        wraps=True,
        meaning="""
        `DataParallel` passes on an error of one of its GPUs. The original traceback is below this line: its
        last line is the error. Run on one GPU (`CUDA_VISIBLE_DEVICES=0`) to get a plain traceback.
        """,
    ),
    KnownMessage(
        texts=("chunk expects at least a 1-dimensional tensor",),
        meaning="""
        `DataParallel` splits every tensor argument of the model along its first dimension, and one of them is a
        single number. The Trainer uses it by itself when it sees several GPUs: use one
        (`CUDA_VISIBLE_DEVICES=0`), or start one process for each with `torchrun` or `accelerate launch`, and
        upgrade the libraries.
        """,
    ),
)
