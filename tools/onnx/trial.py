"""Load a model and run it once in a process of its own, before the serving process touches it.

A model can crash its loader, hang in it, or take all memory; there it takes only the trial process along. The
trial gets the very bytes that will be loaded, has limits on time and memory, and feeds zeros unless told
otherwise.
"""

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from grpc import StatusCode

from tools.models.verified import VerifiedContent
from tools.onnx.errors import OnnxError
from tools.onnx.interface import Interface, TensorSpec, mismatches, shape_from_json

_OPEN_LENGTHS = (1, 32)
_COPIES = 4
"""How often a model may be in memory while it is loaded: as read, as parsed, as optimised."""
_CHILD = "tools.onnx.trial_child"
_KEPT_VARIABLES = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "HOME", "TMPDIR", "LANG", "LC_ALL")


class TrialFailed(OnnxError):
    """A model crashed, hung, ate memory, failed or gave something that is not finite when it was tried."""

    code = "ONNX_TRIAL_FAILED"
    status = StatusCode.FAILED_PRECONDITION
    advice = "Do not promote this version; what served before goes on. Export the model again or mend it."


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialLimits:
    """What a trial may use."""

    time: timedelta = timedelta(seconds=30)
    """From the start of the process; on a busy machine it needs some seconds to begin."""
    memory_bytes: int = 2 * 2**30
    """Address space of the process, besides what the model's own bytes ask for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialInput:
    """What is fed into one input when zeros of the declared shape will not do."""

    shape: tuple[int, ...] | None = None
    """The declared one when None; lengths left open are 1, and 32 if the model cannot do with 1."""
    value: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """`{"shape", "value"}`."""
        return {"shape": None if self.shape is None else list(self.shape), "value": self.value}


def trial_inputs(value: Any) -> dict[str, TrialInput]:
    """Read `{input: {"shape", "value"}}`, both optional.

    Raises:
        ValueError: another form; the message names the place.
    """
    if not isinstance(value, Mapping):
        raise ValueError("the trial's inputs are not an object by input name")
    return {str(name): _trial_input(str(name), item) for name, item in value.items()}


def _trial_input(name: str, item: Any) -> TrialInput:
    if not isinstance(item, Mapping) or set(item) - {"shape", "value"}:
        raise ValueError(f"{name} is not {{shape, value}}")
    shape, fill = item.get("shape"), item.get("value", 0.0)
    if isinstance(fill, bool) or not isinstance(fill, int | float) or not math.isfinite(fill):
        raise ValueError(f"{name}.value is not a finite number")
    if shape is None:
        return TrialInput(value=fill)
    lengths = shape_from_json(shape, f"{name}.shape")
    known = tuple(length for length in lengths if length is not None)
    if len(known) != len(lengths):
        raise ValueError(f"{name}.shape leaves a length open")
    return TrialInput(shape=known, value=fill)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialReport:
    """What a model was found to be when it ran."""

    interface: Interface
    """As the runtime sees it."""
    results: tuple[TensorSpec, ...]
    """The outputs of the run, with their actual shapes."""
    peak_bytes: int
    """Largest resident memory of the trial process, its Python and runtime (about 60 MB) included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How models are tried."""

    limits: TrialLimits = TrialLimits()
    inputs: Mapping[str, TrialInput] = field(default_factory=lambda: MappingProxyType({}))

    def run(self, content: VerifiedContent, *, expected: Interface | None = None) -> TrialReport:
        """Try a model; blocks for about as long as loading it takes, plus half a second.

        Args:
            content: the sealed bytes that will be loaded afterwards.
            expected: what it is asked to take and give; anything when None.

        Raises:
            TrialFailed: the message says in which stage it failed and how.
        """
        reports, outcome = self._process(content)
        stage = next((report["stage"] for report in reversed(reports) if "stage" in report), "start")
        doing = {"start": "before it was read", "load": "while it was loaded", "run": "while it ran"}.get(
            stage, ""
        )
        failed = next((report["failed"] for report in reports if "failed" in report), "")
        if failed or outcome or stage != "done":
            raise TrialFailed(f"model {content.name}: {failed or outcome or 'it ended'} {doing}".rstrip())
        return _checked(content.name, reports, expected)

    def _process(self, content: VerifiedContent) -> tuple[list[dict[str, Any]], str]:
        """The reports of the trial process, and how it ended when it did not end well."""
        limit_s = self.limits.time.total_seconds()
        order = {
            "memory_bytes": self.limits.memory_bytes + _COPIES * len(content.data),
            "cpu_s": math.ceil(limit_s),
            "open_lengths": _OPEN_LENGTHS,
            "feeds": {name: item.to_json() for name, item in self.inputs.items()},
        }
        message = json.dumps(order).encode() + b"\n" + content.data
        # Not the folder the server happens to run in: a module there must not stand in for one of ours.
        command = [sys.executable, "-P", "-m", _CHILD]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(os.environ),
        )
        with process:
            try:
                output, _ = process.communicate(message, timeout=limit_s)
                outcome = _ending(process.returncode)
            except subprocess.TimeoutExpired:
                process.kill()
                output, _ = process.communicate()
                outcome = f"it was not done within {limit_s:g} s"
            except BaseException:
                process.kill()
                raise
        return _reports(output), outcome


def _reports(output: bytes) -> list[dict[str, Any]]:
    """What the trial process said; a line that it died over is no report."""
    reports = []
    for line in output.splitlines():
        try:
            report = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(report, dict):
            reports.append(report)
    return reports


def _environment(ours: Mapping[str, str]) -> dict[str, str]:
    """What the trial process sees: where libraries are, and none of the server's secrets."""
    kept = {name: ours[name] for name in _KEPT_VARIABLES if name in ours}
    # Each thread of a mathematics library reserves address space, which is what is limited.
    return kept | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def _ending(status: int) -> str:
    if status == 0:
        return ""
    if status > 0:
        return f"its process ended with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"its process was ended by {name}"


def _checked(name: str, reports: Sequence[Mapping[str, Any]], expected: Interface | None) -> TrialReport:
    loaded = next(report for report in reports if report.get("stage") == "run")
    done = next(report for report in reports if report.get("stage") == "done")
    interface = Interface(inputs=_specs(loaded["inputs"]), outputs=_specs(loaded["outputs"]))
    wrong = [f"output {item['name']!r} is not finite" for item in done["results"] if not item["finite"]]
    if expected is not None:
        wrong += mismatches(expected, interface)
        wrong += _shapes_besides(expected, _specs(done["results"]))
    if wrong:
        raise TrialFailed(f"model {name} was tried and refused: {'; '.join(wrong)}", evidence=wrong)
    return TrialReport(interface=interface, results=_specs(done["results"]), peak_bytes=int(done["peak_bytes"]))


def _shapes_besides(expected: Interface, results: Sequence[TensorSpec]) -> list[str]:
    """Outputs whose actual shape is another than the expected one."""
    wanted = {spec.name: spec for spec in expected.outputs}
    return [
        f"output {item.name!r} came as {item}, expected {wanted[item.name]}"
        for item in results
        if item.name in wanted and not _came_as(wanted[item.name], item)
    ]


def _came_as(expected: TensorSpec, result: TensorSpec) -> bool:
    return len(expected.shape) == len(result.shape) and all(
        want is None or want == have for want, have in zip(expected.shape, result.shape, strict=True)
    )


def _specs(items: Sequence[Mapping[str, Any]]) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(name=item["name"], dtype=item["dtype"], shape=tuple(item["shape"])) for item in items)
