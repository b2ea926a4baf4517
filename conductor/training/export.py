"""One ONNX file out of the parts of the trained planner.

`python -m conductor.training.export --selector FILE --filler FILE --out FILE` writes it and says how large it is.
`--check --data DIR` plans the requests of the select parts with torch and with the file, and compares.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import onnx
import torch

from conductor.policy.confidence import METADATA_KEY as CONFIDENCE
from conductor.policy.model import METADATA, PARTS
from conductor.training.export_graph import Merged
from conductor.training.parts import Part

MOST_BYTES = 40_000_000
"""The file is shipped with the source and must stay below."""


class ExportFailed(ValueError):
    """The parts do not make a file that can be shipped."""


def export(parts: Sequence[Part], path: Path, metadata: Mapping[str, Any]) -> int:
    """Write `parts` as one ONNX file.

    Args:
        parts: All parts; each tensor is called `part.name` in the file.
        path: Where to; replaced as a whole.
        metadata: JSON: version, seeds, data, date, parameters of the confidence.

    Returns:
        The size of the file in bytes.

    Raises:
        ExportFailed: the file is too large, or a part does not keep to its description.
    """
    merged = Merged()
    for part in parts:
        merged.add(part, exported(part))
    described = {
        part.name: {"inputs": list(part.inputs), "outputs": list(part.outputs), "weights": part.weights}
        for part in parts
    }
    told = {name: value for name, value in metadata.items() if name != CONFIDENCE}
    properties = {METADATA: json.dumps(told), PARTS: json.dumps(described)}
    if CONFIDENCE in metadata:
        properties[CONFIDENCE] = json.dumps(metadata[CONFIDENCE])
    model = merged.model(properties)
    onnx.checker.check_model(model)
    data = model.SerializeToString()
    if len(data) >= MOST_BYTES:
        raise ExportFailed(f"{len(data)} bytes, fewer than {MOST_BYTES} may be shipped")
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".partial")
    scratch.write_bytes(data)
    scratch.replace(path)
    return len(data)


def exported(part: Part) -> onnx.ModelProto:
    """The graph of one part, traced with its example inputs."""
    module = part.module.eval()
    names = [*part.inputs, *part.outputs]
    if len(set(names)) != len(names):
        raise ExportFailed(f"part {part.name}: an input and an output have the same name")
    with (
        torch.no_grad(),
        warnings.catch_warnings(),
        tempfile.TemporaryDirectory(prefix="podium-export-") as folder,
    ):
        # The tracer warns about what it cannot follow in the library; `--check` compares the results.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            tuple(part.inputs.values()),
            Path(folder) / "part.onnx",
            input_names=list(part.inputs),
            output_names=list(part.outputs),
            # Lengths of one name are taken to be equal in the whole file: each part gets names of its own.
            dynamic_axes={
                name: {axis: f"{part.name}.{length}" for axis, length in axes.items()}
                for name, axes in part.dynamic.items()
            },
            opset_version=17,
            dynamo=False,
        )
        return onnx.load(Path(folder) / "part.onnx")


def planner_parts(selector: Path, filler: Path | None) -> list[Part]:
    """Every part of the planner out of the trained weights."""
    from conductor.training.encoder import Bottom
    from conductor.training.selector_parts import bottom_part, selector_parts

    parts = [bottom_part(Bottom()), *selector_parts(selector)]
    if filler is not None:
        from conductor.training.filler_parts import filler_parts

        parts += filler_parts(filler)
    return parts


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m conductor.training.export", description=__doc__)
    parser.add_argument("--selector", type=Path, required=True, help="weights of train_selector")
    parser.add_argument("--filler", type=Path, help="weights of train_filler")
    parser.add_argument("--out", type=Path, required=True, help="the ONNX file")
    parser.add_argument("--metadata", type=Path, help="JSON with seeds and data")
    parser.add_argument("--confidence", type=Path, help="JSON of conductor.training.calibrate")
    parser.add_argument("--version", default="1.0.0")
    parser.add_argument("--check", action="store_true", help="compare plans with torch instead of writing")
    parser.add_argument("--data", type=Path, help="folder of planning data, for --check")
    parser.add_argument("--limit", type=int, default=0, help="compare so many requests; 0 is all")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    parts = planner_parts(given.selector, given.filler)
    if given.check:
        from conductor.training.export_check import compare

        report = compare(parts, given.out, given.data, limit=given.limit)
        _say(json.dumps(report) if given.json else "\n".join(f"{key}: {value}" for key, value in report.items()))
        return 0 if report["same"] >= 0.99 else 1
    told = json.loads(given.metadata.read_text(encoding="utf-8")) if given.metadata else {}
    if given.confidence:
        told[CONFIDENCE] = json.loads(given.confidence.read_text(encoding="utf-8"))
    metadata = {
        "version": given.version,
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _commit(),
        **told,
    }
    size = export(parts, given.out, metadata)
    _say(json.dumps({"file": str(given.out), "bytes": size, "parts": [part.name for part in parts]}))
    return 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


def _commit() -> str:
    found = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
