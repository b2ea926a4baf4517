"""The one place where an ONNX session is made; the trial process and the serving one make it alike.

It imports nothing else of Podium, so that a trial process stays small.
"""

from typing import Any

from tools.onnx.runtime import runtime


def open_session(data: bytes, *, threads: int) -> Any:
    """A session for the CPU whose threads never spin; errors are the runtime's own.

    Args:
        data: the model.
        threads: threads for one run.
    """
    ort = runtime()
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # The arena keeps the largest page it ever saw; without it memory goes back after each run.
    options.enable_cpu_mem_arena = False
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    # It keeps the file to make itself again with other providers, which never happens here.
    session._model_bytes = None
    return session
