"""One ONNX model, loaded only from a reviewed file and run without hogging the device.

Threads spin by default in ONNX Runtime (a fifth of a core while idle); here they never do, and one thread is the
default because small models gain nothing from more.
"""

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from grpc import StatusCode
from numpy.typing import NDArray

from tools.models.pinned import PinnedModels, committed_models
from tools.models.verified import VerifiedContent
from tools.onnx.errors import OnnxError
from tools.onnx.header import OnnxHeader, OnnxHeaderError, read_header
from tools.onnx.inspection import MAX_IR_VERSION
from tools.onnx.runtime import runtime
from tools.onnx.session import open_session
from tools.onnx.subgraph import subgraph

__all__ = ["NonFinite", "OnnxError", "OnnxLoadError", "OnnxModel", "OnnxRunError", "RunStop"]

# Running one session from many threads is safe; making two sessions at the same moment is not.
_creation = threading.Lock()


class OnnxLoadError(OnnxError):
    """The runtime cannot load the model (too new, truncated, an unknown operator)."""

    code = "ONNX_LOAD_FAILED"


class OnnxRunError(OnnxError):
    """The runtime failed on this input (wrong name, type or shape)."""

    code = "ONNX_RUN_FAILED"


class NonFinite(OnnxError):
    """NaN or infinity in an input or output: it would spread silently, so it stops here."""

    code = "ONNX_NON_FINITE"
    status = StatusCode.INVALID_ARGUMENT


class RunStop:
    """Ends a run from another thread: `stop()` makes it fail between two nodes of the graph."""

    def __init__(self) -> None:
        self.options: Any = runtime().RunOptions()

    def stop(self) -> None:
        """End the run this was given to, now or as soon as it begins."""
        self.options.terminate = True


class OnnxModel:
    """A loaded model: `run({input: array})` gives every output by name."""

    def __init__(self, name: str, *, models: PinnedModels | None = None, threads: int = 1) -> None:
        """Verify and load the model `name` of the list of reviewed models.

        Args:
            name: the model's name in the list.
            models: the list; the committed one unless given.
            threads: threads for one run (they never spin).

        Raises:
            ModelError: not in the list, not installed, or other bytes than reviewed.
            OnnxLoadError: the runtime cannot load it.
        """
        self._open((models or committed_models()).verified(name), threads)

    @classmethod
    def of(cls, content: VerifiedContent, *, threads: int = 1) -> "OnnxModel":
        """Load a model that a committed list or a signature answers for.

        Args:
            content: its sealed bytes.
            threads: threads for one run (they never spin).

        Raises:
            OnnxLoadError: the runtime cannot load it.
        """
        model = cls.__new__(cls)
        model._open(content, threads)
        return model

    @classmethod
    def part_of(cls, content: VerifiedContent, outputs: Sequence[str], *, threads: int = 1) -> "OnnxModel":
        """Load what leads to some outputs of a file that holds several functions.

        Args:
            content: its sealed bytes.
            outputs: names of the outputs.
            threads: threads for one run (they never spin).

        Raises:
            OnnxLoadError: the file has no such output, or the runtime cannot load it.
        """
        try:
            data = subgraph(content.data, outputs, name=content.name)
        except OnnxHeaderError as error:
            raise OnnxLoadError(f"model {error}") from error
        model = cls.__new__(cls)
        model._open(content, threads, data)
        return model

    def _open(self, content: VerifiedContent, threads: int, part: bytes | None = None) -> None:
        data = content.data if part is None else part
        self.name = content.name
        self.header: OnnxHeader = _supported_header(content.name, data)
        self._session = _session(content.name, data, threads)
        self.input_names: tuple[str, ...] = tuple(item.name for item in self._session.get_inputs())
        self.output_names: tuple[str, ...] = tuple(item.name for item in self._session.get_outputs())
        self.metadata: Mapping[str, str] = dict(self._session.get_modelmeta().custom_metadata_map)

    def run(self, inputs: Mapping[str, NDArray[Any]], *, stop: RunStop | None = None) -> dict[str, NDArray[Any]]:
        """Run the model once; safe from several threads.

        Args:
            inputs: every input by its name.
            stop: ends this run early when asked to; made for one run.

        Raises:
            NonFinite: an input or output holds NaN or infinity.
            OnnxRunError: the runtime refused the input.
        """
        for key, value in inputs.items():
            _require_finite(value, f"input {key!r} of {self.name}", field="input")
        try:
            outputs = self._session.run(None, dict(inputs), stop.options if stop is not None else None)
        except _runtime_errors() as error:
            step = "Check the input's name, type and shape."
            raise OnnxRunError(f"model {self.name} failed: {error}", next_step=step) from error
        named = dict(zip(self.output_names, outputs, strict=True))
        for key, value in named.items():
            _require_finite(value, f"output {key!r} of {self.name}", field="output")
        return named


def _supported_header(name: str, data: bytes) -> OnnxHeader:
    try:
        header = read_header(data, name=name)
    except OnnxHeaderError as error:
        step = "Reinstall the package that carries it."
        raise OnnxLoadError(f"model {name}: {error}", next_step=step) from error
    if header.ir_version > MAX_IR_VERSION:
        raise OnnxLoadError(
            f"model {name} has IR version {header.ir_version}, newest supported is {MAX_IR_VERSION}",
            next_step="Update onnxruntime on this device, or use an older export of the model.",
        )
    return header


def _session(name: str, data: bytes, threads: int) -> Any:
    with _creation:
        try:
            return open_session(data, threads=threads)
        except _runtime_errors() as error:
            step = "Update onnxruntime, or reinstall the package that carries the model."
            raise OnnxLoadError(f"model {name} does not load: {error}", next_step=step) from error


def _require_finite(value: NDArray[Any], what: str, *, field: str) -> None:
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and not np.isfinite(value).all():
        step = "Check the picture or record that was fed in."
        raise NonFinite(f"{what} is not finite", next_step=step, field=field)


def _runtime_errors() -> tuple[type[Exception], ...]:
    runtime()
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    return (
        state.Fail,
        state.InvalidArgument,
        state.InvalidGraph,
        state.InvalidProtobuf,
        state.NoModel,
        state.NoSuchFile,
        state.NotImplemented,
        state.RuntimeException,
        state.EPFail,
        ValueError,
    )
