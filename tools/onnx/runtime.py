"""The way to ONNX Runtime, which otherwise reports to its vendor.

It imports nothing of Podium, so that a trial process stays small.
"""

import os
from typing import Any


def runtime() -> Any:
    """The module `onnxruntime`, told to be silent before it is loaded.

    Its official builds send what models are loaded and on which machine to their vendor, and keep a database in
    the user's cache folder for that. Only this variable prevents it: its own function comes too late, after the
    first event. Imported here and not above: only a process that runs a model pays 45 MB for it.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    return onnxruntime
