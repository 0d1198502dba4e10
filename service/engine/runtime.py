"""Where a model runs: the execution provider, the settings of its arithmetic, and its sessions."""

import logging
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
import onnxruntime as ort

from service.artifact import Artifact, ArtifactError, NotGiven
from service.settings import Settings

log = logging.getLogger(__name__)

Provider = Literal["cpu", "cuda"]
# Of equal numbers ArgMax of the CUDA provider takes the first since this version. Before it took
# any, and the sampler's cumulative sums are full of equal numbers.
_FIRST_OF_EQUALS = (1, 31)
# What a session may take for what it computes, on CUDA beside its weights. Exported graphs take
# some MB; one whose values grow from node to node would take all there is.
_MOST_BYTES = 1 << 30
_FIRST_OF_MANY_ARENAS = (1, 23)  # that a process may have, one after the other
_REGISTERING = threading.Lock()
_NO_THREAD = "pthread_create failed"  # what onnxruntime says where the system gives it none


@dataclass(frozen=True, slots=True)
class Runtime:
    """The execution provider in use and the settings that decide its arithmetic. A model may turn
    out faster with `other_threads` while it serves; 0 says that it may not."""

    provider: Provider
    runner: Literal["scan", "slots"]
    threads: int
    slots: int
    other_threads: int = 0

    @property
    def fingerprint(self) -> str:
        """Names what decides the bits of a result; state tokens of another one are refused.

        On the CPU the bits do not depend on the runner, the threads or the slots. On CUDA the
        kernels chosen depend on the number of rows, which is that of the slots.
        """
        base = f"{self.provider}-ort{ort.__version__}-{platform.machine()}"
        return f"{base}-{_simd()}" if self.provider == "cpu" else f"{base}-{self.slots}"

    def session(self, artifact: Artifact, name: str) -> ort.InferenceSession:
        """A session for one graph of an artifact. Raises `ArtifactError` if its files have changed,
        onnxruntime refuses it, or is too old for the provider; `NotGiven` where it gets no thread.
        """
        if self.provider == "cuda" and _version() < _FIRST_OF_EQUALS:
            raise ArtifactError(
                f"onnxruntime {ort.__version__} on CUDA may take any of equal numbers for the "
                "largest; it must be 1.31 or later, or EVENKEEL_PROVIDER=cpu"
            )
        graph, weights = artifact.read(name), artifact.weights()
        options = ort.SessionOptions()
        # By name onnxruntime would map the file: overwritten in place, it would change what serves.
        options.add_external_initializers_from_files_in_memory(
            list(weights), list(weights.values()), [len(content) for content in weights.values()]
        )
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        providers: list[str | tuple[str, dict[str, str]]] = ["CPUExecutionProvider"]
        if self.provider == "cuda":
            # TensorFloat-32 rounds weights to 10 bits; it is on unless told otherwise.
            cuda = {"use_tf32": "0", "enable_cuda_graph": "1"}
            # Weights are copied to the device, and room for them may be twice as large.
            held = 2 * sum(len(content) for content in weights.values())
            cuda["gpu_mem_limit"] = str(_MOST_BYTES + held)
            providers = [("CUDAExecutionProvider", cuda)]
        limited = self.provider == "cpu" and _version() >= _FIRST_OF_MANY_ARENAS
        try:
            with _in_an_arena(options, _MOST_BYTES) if limited else nullcontext():
                # What it would fall back to has the settings of none of them.
                return ort.InferenceSession(
                    graph, options, providers=providers, enable_fallback=False
                )
        except Exception as error:  # onnxruntime raises a type of its own for each failure
            if _NO_THREAD in str(error):
                told = f"{artifact.folder / name}: the system has no thread for onnxruntime"
                raise NotGiven(told) from error
            raise ArtifactError(f"onnxruntime refuses {artifact.folder / name}: {error}") from error


@contextmanager
def _in_an_arena(options: ort.SessionOptions, most_bytes: int) -> Iterator[None]:
    """The session made meanwhile has an arena of its own on the CPU, with a limit: a run that wants
    more ends with an error.

    Only one that the process offers to all can have a limit; a session keeps what is offered when
    it is made.
    """
    options.add_session_config_entry("session.use_env_allocators", "1")
    with _REGISTERING:
        _offer(most_bytes)
        try:
            yield
        finally:
            _offer(0)  # one that holds nothing: the other goes with its session


def _offer(most_bytes: int) -> None:
    where = ort.OrtMemoryInfo(
        "Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT
    )
    ort.create_and_register_allocator(where, ort.OrtArenaCfg({"max_mem": most_bytes}))


def choose_runtime(settings: Settings) -> Runtime:
    """The provider and runner the settings ask for, or the best this machine has. Raises
    `ArtifactError` for one that is not here, or a runner that its provider cannot have."""
    provider: Provider = "cpu"
    if settings.provider != "cpu" and _cuda_works():
        provider = "cuda"
    if settings.provider == "cuda" and provider != "cuda":
        raise ArtifactError("EVENKEEL_PROVIDER is cuda, but onnxruntime finds no CUDA device")
    runner = settings.runner
    if provider == "cuda" and runner == "scan":
        raise ArtifactError("EVENKEEL_RUNNER is scan, which CUDA graphs cannot run; use slots")
    if runner == "auto":
        runner = "slots" if provider == "cuda" else "scan"
    # What a GPU computes is not divided among threads of the host.
    threads = settings.threads or (1 if provider == "cuda" else 0)
    runtime = Runtime(provider, runner, threads, settings.slots)
    log.info("runtime: %s, runner %s, %d slots", runtime.fingerprint, runner, settings.slots)
    return runtime


def _version() -> tuple[int, ...]:
    return tuple(int(part) for part in ort.__version__.split(".")[:2])


def _cuda_works() -> bool:
    if "CUDAExecutionProvider" not in ort.get_available_providers():
        return False
    if hasattr(ort, "preload_dlls"):
        ort.preload_dlls()  # the CUDA and cuDNN libraries that came as wheels
    try:
        ort.OrtValue.ortvalue_from_numpy(np.zeros(1, np.float32), "cuda", 0)
    except Exception as error:  # no driver, no device or no library: each its own type
        log.warning("CUDA is not usable, serving on the CPU: %s", error)
        return False
    return True


@cache
def _simd() -> str:
    """The vector units that onnxruntime picks its kernels by: of x86 the widest, of ARM all, for
    SVE has its own kernels of exponentials and SME of products."""
    try:
        flags = set(Path("/proc/cpuinfo").read_text("utf-8").split())
    except OSError:
        return "generic"
    if "asimd" in flags:  # asked first: "sme" encrypts memory on x86
        return "-".join(unit for unit in ("asimd", "sve", "sme", "sme2") if unit in flags)
    if "avx512f" in flags:
        return "avx512f"
    # The kernels of AVX2 multiply and add at once.
    return "avx2" if {"avx2", "fma"} <= flags else "generic"
