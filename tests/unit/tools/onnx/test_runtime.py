"""ONNX Runtime tells nobody what it runs."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[4]
RUN = """
from tests.unit.tools.onnx.graphs import adding
from tools.onnx.model import RunStop
from tools.onnx.session import open_session
import numpy as np
RunStop()
open_session(adding(), threads=1).run(None, {"x": np.zeros((1, 2), dtype=np.float32)})
"""


def test_it_keeps_no_record_of_what_it_runs_to_send(tmp_path: Path) -> None:
    places = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "TMPDIR"), str(tmp_path))
    # Without the variables by which it would notice a test: they silence it too.
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}", **places}
    subprocess.run([sys.executable, "-c", RUN], check=True, cwd=ROOT, env=environment, timeout=60)
    assert sorted(path.name for path in tmp_path.rglob("*")) == []
