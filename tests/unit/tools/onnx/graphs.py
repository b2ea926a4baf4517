"""ONNX models that behave badly, and a few that do not, written byte by byte."""

from tests.unit.tools.onnx.tiny_model import chunk, number

FLOAT, INT32, INT64, BOOL = 1, 6, 7, 9


def tensor(name: bytes, kind: int, dims: tuple[int, ...], raw: bytes, extra: bytes = b"") -> bytes:
    return b"".join(number(1, size) for size in dims) + number(2, kind) + chunk(8, name) + chunk(9, raw) + extra


def value(name: bytes, kind: int, dims: tuple[int | bytes, ...]) -> bytes:
    shape = b"".join(chunk(1, number(1, size) if isinstance(size, int) else chunk(2, size)) for size in dims)
    return chunk(1, name) + chunk(2, chunk(1, number(1, kind) + chunk(2, shape)))


def node(operator: bytes, inputs: list[bytes], outputs: list[bytes], attributes: bytes = b"") -> bytes:
    names = b"".join(chunk(1, name) for name in inputs) + b"".join(chunk(2, name) for name in outputs)
    return names + chunk(4, operator) + attributes


def model(graph: bytes, *, ir_version: int = 8, opset: int = 13) -> bytes:
    return number(1, ir_version) + chunk(7, graph) + chunk(8, chunk(1, b"") + number(2, opset))


def adding(
    constant: float = 1.0,
    *,
    width: int | bytes = 2,
    kind: int = FLOAT,
    ir_version: int = 8,
    external: bool = False,
) -> bytes:
    """y = x + constant, for rows of a width."""
    import struct

    raw = struct.pack("<f", constant) if kind == FLOAT else int(constant).to_bytes(4, "little", signed=True)
    beside = chunk(13, chunk(1, b"location") + chunk(2, b"/etc/passwd")) + number(14, 1) if external else b""
    graph = chunk(1, node(b"Add", [b"x", b"c"], [b"y"])) + chunk(2, b"g")
    graph += chunk(5, tensor(b"c", kind, (1,), raw, beside))
    graph += chunk(11, value(b"x", kind, (b"n", width))) + chunk(12, value(b"y", kind, (b"n", width)))
    return model(graph, ir_version=ir_version)


def crashing() -> bytes:
    """The runtime folds the constants INT_MIN / -1 while it loads the model, and the processor traps (SIGFPE)."""
    to_float = chunk(5, chunk(1, b"to") + number(3, FLOAT) + number(20, 2))
    graph = chunk(1, node(b"Div", [b"p", b"q"], [b"i"])) + chunk(1, node(b"Cast", [b"i"], [b"r"], to_float))
    graph += chunk(5, tensor(b"p", INT32, (1,), (-(2**31)).to_bytes(4, "little", signed=True)))
    graph += chunk(5, tensor(b"q", INT32, (1,), (-1).to_bytes(4, "little", signed=True)))
    return model(graph + _plus_r())


def eating_memory() -> bytes:
    """32 GiB of zeros, and their sum."""
    graph = chunk(1, node(b"ConstantOfShape", [b"s"], [b"z"])) + chunk(1, node(b"ReduceSum", [b"z"], [b"r"]))
    graph += chunk(5, tensor(b"s", INT64, (1,), (2**33).to_bytes(8, "little")))
    return model(graph + _plus_r())


def _plus_r() -> bytes:
    graph = chunk(1, node(b"Add", [b"x", b"r"], [b"y"])) + chunk(2, b"g")
    return graph + chunk(11, value(b"x", FLOAT, (b"n", 2))) + chunk(12, value(b"y", FLOAT, (b"n", 2)))


def hanging() -> bytes:
    """y = x, when the sun has burnt out."""
    return model(chunk(5, tensor(b"m", INT64, (), (2**62).to_bytes(8, "little"))) + _loop())


def looping() -> bytes:
    """y = x, after as many rounds as the input m says; none in a trial, which feeds zeros."""
    return model(chunk(11, value(b"m", INT64, ())) + _loop())


def _loop() -> bytes:
    body = chunk(1, node(b"Identity", [b"on"], [b"on2"])) + chunk(1, node(b"Identity", [b"v"], [b"v2"]))
    body += chunk(2, b"b") + chunk(11, value(b"i", INT64, ())) + chunk(11, value(b"on", BOOL, ()))
    body += chunk(11, value(b"v", FLOAT, (b"n", 2))) + chunk(12, value(b"on2", BOOL, ()))
    body += chunk(12, value(b"v2", FLOAT, (b"n", 2)))
    loop = chunk(5, chunk(1, b"body") + chunk(6, body) + number(20, 5))
    graph = chunk(1, node(b"Loop", [b"m", b"go", b"x"], [b"y"], loop)) + chunk(2, b"g")
    graph += chunk(5, tensor(b"go", BOOL, (), b"\1"))
    return graph + chunk(11, value(b"x", FLOAT, (b"n", 2))) + chunk(12, value(b"y", FLOAT, (b"n", 2)))


def not_finite() -> bytes:
    """y = x / 0."""
    graph = chunk(1, node(b"Div", [b"x", b"z"], [b"y"])) + chunk(2, b"g")
    graph += chunk(5, tensor(b"z", FLOAT, (1,), bytes(4)))
    graph += chunk(11, value(b"x", FLOAT, (b"n", 2))) + chunk(12, value(b"y", FLOAT, (b"n", 2)))
    return model(graph)


def nested(depth: int) -> bytes:
    """Graphs in attributes of nodes of graphs."""
    graph = chunk(2, b"innermost")
    for _ in range(depth):
        graph = chunk(1, chunk(4, b"If") + chunk(5, chunk(6, graph))) + chunk(2, b"g")
    return model(graph)
