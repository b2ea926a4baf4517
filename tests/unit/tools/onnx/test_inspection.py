"""An ONNX file is read without loading it, and what must not be loaded is refused with every reason."""

import random
from contextlib import suppress

import pytest

from tests.unit.tools.onnx.graphs import FLOAT, INT32, adding, chunk, hanging, model, nested, node, tensor, value
from tests.unit.tools.onnx.tiny_model import division
from tools.models.pinned import committed_models
from tools.onnx.inspection import InspectionLimits, ModelRefused, inspect, require
from tools.onnx.interface import Interface, TensorSpec, mismatches


def test_reads_versions_interface_nodes_and_operators() -> None:
    found = inspect(adding(), name="m")
    assert (found.header.ir_version, found.header.opsets, found.nodes) == (8, {"": 13}, 1)
    assert found.interface.inputs == (TensorSpec(name="x", dtype="float32", shape=(None, 2)),)
    assert found.operators == ("Add",)
    assert found.size_bytes == len(adding())
    require(found, name="m", expected=found.interface)


def test_nodes_of_inner_graphs_count() -> None:
    found = inspect(hanging(), name="m")
    assert (found.nodes, found.operators) == (3, ("Identity", "Loop"))


def test_an_input_with_a_constant_of_its_name_is_no_demand() -> None:
    graph = chunk(1, node(b"Add", [b"x", b"c"], [b"y"])) + chunk(5, tensor(b"c", FLOAT, (1,), bytes(4)))
    graph += chunk(11, value(b"x", FLOAT, (1,))) + chunk(11, value(b"c", FLOAT, (1,)))
    found = inspect(model(graph + chunk(12, value(b"y", FLOAT, (1,)))), name="m")
    assert [item.name for item in found.interface.inputs] == ["x"]


def test_a_graph_in_two_pieces_is_read_as_one() -> None:
    hidden = chunk(7, chunk(5, tensor(b"t", FLOAT, (1,), b"", chunk(13, chunk(1, b"location")))))
    found = inspect(adding() + hidden, name="m")
    assert found.external_data
    with pytest.raises(ModelRefused, match="other files"):
        require(found, name="m")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (adding(ir_version=99), "IR version 99, newest supported is 13"),
        (division(opset=9999), "opset 9999 of ai.onnx"),
        (adding(external=True), "other files"),
    ],
)
def test_what_the_runtime_must_not_see_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(ModelRefused, match=reason):
        require(inspect(data, name="m"), name="m")


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (adding(width=3), r"input 'x' is float32\[\?, 3\], expected float32\[\?, 2\]"),
        (adding(kind=INT32), r"input 'x' is int32"),
        (division(), "input 'x' is missing"),
    ],
)
def test_a_wrong_shape_type_or_name_is_refused(other: bytes, reason: str) -> None:
    expected = inspect(adding(), name="m").interface
    with pytest.raises(ModelRefused, match=reason):
        require(inspect(other, name="m"), name="m", expected=expected)


def test_a_model_may_take_more_lengths_than_asked_but_not_fewer() -> None:
    fixed, free = (
        Interface(inputs=(TensorSpec(name="x", dtype="float32", shape=(size,)),), outputs=()) for size in (4, None)
    )
    assert not mismatches(fixed, free)
    assert mismatches(free, fixed)


def test_a_file_of_tiny_fields_does_not_keep_a_processor() -> None:
    with pytest.raises(ModelRefused, match="more than 2000000 fields"):
        inspect(adding() + b"\x08\x01" * 2_100_000, name="m")
    with pytest.raises(ModelRefused, match="more than 2000000 fields"):
        inspect(adding() + chunk(7, chunk(11, b"\x08\x01" * 2_100_000)), name="m")


def test_limits_hold() -> None:
    with pytest.raises(ModelRefused, match="bytes"):
        inspect(adding(), name="m", limits=InspectionLimits(max_bytes=10))
    with pytest.raises(ModelRefused, match="more than 2 nodes"):
        inspect(hanging(), name="m", limits=InspectionLimits(max_nodes=2))
    with pytest.raises(ModelRefused, match="deep"):
        inspect(nested(2_000), name="m")


@pytest.mark.parametrize("data", [b"", b"no model at all, just words", adding()[:-9], b"\x08", bytes(64)])
def test_truncated_and_foreign_bytes_are_typed_errors(data: bytes) -> None:
    with pytest.raises(ModelRefused):
        inspect(data, name="m")


@pytest.mark.parametrize("seed", [11])
def test_any_damage_is_read_or_refused_and_never_crashes(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(3_000):
        data = bytearray(hanging() if chance.random() < 0.5 else adding())
        for _ in range(chance.randint(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        with suppress(ModelRefused):
            require(inspect(bytes(data), name="m"), name="m")


def test_every_shipped_model_passes() -> None:
    for name in ("ppocr-det", "ppocr-rec", "ppocr-cls", "minilm-int8"):
        require(inspect(committed_models().verified_bytes(name), name=name), name=name)


def test_an_interface_survives_json() -> None:
    interface = inspect(adding(), name="m").interface
    assert Interface.from_json(interface.to_json()) == interface


@pytest.mark.parametrize(
    "wrong",
    [
        {"in": {}},
        {"inputs": []},
        {"inputs": {"x": {"dtype": "float32"}}},
        {"inputs": {"x": {"dtype": "float", "shape": []}}},
        {"inputs": {"x": {"dtype": "float32", "shape": [1.5]}}},
        {"inputs": {"x": {"dtype": "float32", "shape": [True]}}},
        {"inputs": {"x": {"dtype": "float32", "shape": [-2]}}},
        {"inputs": {"x": {"dtype": "float32", "shape": "1"}}},
    ],
)
def test_an_interface_of_another_form_is_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match=r"input|interface"):
        Interface.from_json(wrong)
