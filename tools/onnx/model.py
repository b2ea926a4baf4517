"""One ONNX model, loaded only from a reviewed file and run without hogging the device.

Threads spin by default in ONNX Runtime (a fifth of a core while idle); here they never do, and one thread is the
default because small models gain nothing from more.
"""

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.models.pinned import PinnedModels, committed_models
from tools.onnx.header import OnnxHeader, OnnxHeaderError, read_header

MAX_IR_VERSION = 13
"""Newest model format the oldest supported runtime reads."""

# Running one session from many threads is safe; making two sessions at the same moment is not.
_creation = threading.Lock()


class OnnxError(Exception):
    """An ONNX model did not load or run; `code` names the reason and `next_step` says what to do about it."""

    code = "onnx_error"

    def __init__(self, message: str, next_step: str) -> None:
        super().__init__(f"{message}. {next_step}.")
        self.message = message
        self.next_step = next_step


class OnnxLoadError(OnnxError):
    """The runtime cannot load the model (too new, truncated, an unknown operator)."""

    code = "onnx_load_failed"


class OnnxRunError(OnnxError):
    """The runtime failed on this input (wrong name, type or shape)."""

    code = "onnx_run_failed"


class NonFinite(OnnxError):
    """NaN or infinity in an input or output: it would spread silently, so it stops here."""

    code = "onnx_non_finite"


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
        path = (models or committed_models()).verified_path(name)
        self.name = name
        try:
            self.header: OnnxHeader = read_header(path)
        except OnnxHeaderError as error:
            raise OnnxLoadError(f"model {name}: {error}", "reinstall the package that carries it") from error
        if self.header.ir_version > MAX_IR_VERSION:
            raise OnnxLoadError(
                f"model {name} has IR version {self.header.ir_version}, newest supported is {MAX_IR_VERSION}",
                "update onnxruntime on this device, or use an older export of the model",
            )
        import onnxruntime as ort  # 45 MB: only a process that runs a model pays for it

        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        # The arena keeps the largest page it ever saw; without it memory goes back after each run.
        options.enable_cpu_mem_arena = False
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_session_config_entry("session.inter_op.allow_spinning", "0")
        with _creation:
            try:
                self._session: Any = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            except _runtime_errors() as error:
                raise OnnxLoadError(
                    f"model {name} does not load: {error}", "update onnxruntime, or reinstall the package"
                ) from error
        self.input_names: tuple[str, ...] = tuple(item.name for item in self._session.get_inputs())
        self.output_names: tuple[str, ...] = tuple(item.name for item in self._session.get_outputs())
        self.metadata: Mapping[str, str] = dict(self._session.get_modelmeta().custom_metadata_map)

    def run(self, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Run the model once; safe from several threads.

        Raises:
            NonFinite: an input or output holds NaN or infinity.
            OnnxRunError: the runtime refused the input.
        """
        for key, value in inputs.items():
            _require_finite(value, f"input {key!r} of {self.name}")
        try:
            outputs = self._session.run(None, dict(inputs))
        except _runtime_errors() as error:
            raise OnnxRunError(
                f"model {self.name} failed: {error}", "check the input's name, type and shape"
            ) from error
        named = dict(zip(self.output_names, outputs, strict=True))
        for key, value in named.items():
            _require_finite(value, f"output {key!r} of {self.name}")
        return named


def _require_finite(value: NDArray[Any], what: str) -> None:
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and not np.isfinite(value).all():
        raise NonFinite(f"{what} is not finite", "check the picture or record that was fed in")


def _runtime_errors() -> tuple[type[Exception], ...]:
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
