"""The root of what goes wrong with ONNX models."""

from podium.errors import PodiumError


class OnnxError(PodiumError):
    """An ONNX model did not load or run."""

    code = "ONNX_ERROR"
