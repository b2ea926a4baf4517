"""Parts of a model as one ONNX file: the same results as in torch, shared weights once, every part alone."""

import hashlib
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from torch import Tensor, nn

from conductor.policy.model import PlannerModel, PlannerModelInvalid
from conductor.policy.parts import Array
from conductor.training.export import export
from conductor.training.parts import Part, TorchParts
from tools.models.verified import VerifiedContent, answered_for
from tools.onnx.model import OnnxLoadError, OnnxModel, OnnxRunError

SEED = 20


class _Reads(nn.Module):
    def __init__(self, table: nn.Embedding, layer: nn.Linear) -> None:
        super().__init__()
        self.table, self.layer = table, layer

    def forward(self, ids: Tensor) -> Tensor:
        return torch.tanh(self.layer(self.table(ids)))


class _Steps(nn.Module):
    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer
        self.cell = nn.GRUCell(96, 64)

    def forward(self, values: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        after = self.cell(self.layer(values), state)
        return after, after.sum(dim=1)


def _parts(weights: str) -> list[Part]:
    torch.manual_seed(SEED)
    table, layer = nn.Embedding(200, 64), nn.Linear(64, 96)
    length = {0: "texts", 1: "pieces"}
    return [
        Part(
            name="reads",
            module=_Reads(table, layer),
            inputs={"ids": torch.ones(2, 5, dtype=torch.int64)},
            outputs=("states",),
            dynamic={"ids": length, "states": length},
            weights=weights,  # type: ignore[arg-type]  # one of the three, from the list below
        ),
        Part(
            name="steps",
            module=_Steps(layer),
            inputs={"values": torch.randn(3, 64), "state": torch.randn(3, 64)},
            outputs=("after", "total"),
            dynamic={name: {0: "paths"} for name in ("values", "state", "after", "total")},
            weights=weights,  # type: ignore[arg-type]
        ),
    ]


def _sealed(path: Path) -> VerifiedContent:
    data = path.read_bytes()
    return answered_for("planner", data, sha256=hashlib.sha256(data).hexdigest(), answerer="a test")


def _feeds(part: str) -> dict[str, Array]:
    dice = np.random.default_rng(SEED)
    if part == "reads":
        return {"ids": dice.integers(0, 200, (1, 9))}
    return {
        "values": dice.normal(size=(7, 64)).astype(np.float32),
        "state": dice.normal(size=(7, 64)).astype(np.float32),
    }


@pytest.mark.parametrize(("weights", "most"), [("fp32", 1e-5), ("fp16", 2e-3), ("int8", 2e-2)])
def test_each_part_computes_what_torch_computes(tmp_path: Path, weights: str, most: float) -> None:
    parts = _parts(weights)
    export(parts, tmp_path / "planner.onnx", {"version": "7"})
    model, in_torch = PlannerModel(_sealed(tmp_path / "planner.onnx")), TorchParts(parts)

    assert (model.version, model.parts) == ("7", ("reads", "steps"))
    for name in ("reads", "steps"):
        expected, found = in_torch.run(name, _feeds(name)), model.run(name, _feeds(name))
        assert expected.keys() == found.keys()
        for output, value in expected.items():
            assert found[output].shape == value.shape
            assert np.abs(found[output] - value).max() <= most * np.abs(value).max()


def test_equal_weights_are_in_the_file_once_and_int8_quarters_it(tmp_path: Path) -> None:
    sizes = {weights: export(_parts(weights), tmp_path / "planner.onnx", {}) for weights in ("fp32", "int8")}
    graph = onnx.load(tmp_path / "planner.onnx").graph

    assert sizes["int8"] < sizes["fp32"] / 2
    assert sum(list(item.dims) in ([4, 16, 96], [6, 16, 64]) for item in graph.initializer) == 1


def test_the_whole_file_runs_without_inputs_as_the_trial_of_artefacts_does(tmp_path: Path) -> None:
    export(_parts("int8"), tmp_path / "planner.onnx", {})

    found = OnnxModel.of(_sealed(tmp_path / "planner.onnx")).run({})

    assert set(found) == {"reads.states", "steps.after", "steps.total"}


def test_a_part_that_is_not_there_or_is_given_other_inputs_is_a_typed_error(tmp_path: Path) -> None:
    export(_parts("int8"), tmp_path / "planner.onnx", {})
    content = _sealed(tmp_path / "planner.onnx")

    with pytest.raises(PlannerModelInvalid, match="no part 'writes'"):
        PlannerModel(content).run("writes", {})
    with pytest.raises(OnnxRunError):
        PlannerModel(content).run("reads", {"ids": np.ones((2, 3), dtype=np.float32)})
    with pytest.raises(OnnxLoadError, match="no output nothing"):
        OnnxModel.part_of(content, ["nothing"])


def test_an_onnx_file_that_is_no_planner_is_refused(tmp_path: Path) -> None:
    export(_parts("int8"), tmp_path / "planner.onnx", {})
    model = onnx.load(tmp_path / "planner.onnx")
    del model.metadata_props[:]
    onnx.save(model, tmp_path / "other.onnx")

    with pytest.raises(PlannerModelInvalid, match="no planner"):
        PlannerModel(_sealed(tmp_path / "other.onnx"))
