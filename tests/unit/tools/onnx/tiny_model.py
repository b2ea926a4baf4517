"""An ONNX model of one division, written byte by byte: y = a / b for float vectors of any length."""


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def chunk(field: int, data: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(data)) + data


def vector(name: bytes) -> bytes:
    # ValueInfoProto: name, type.tensor_type(elem_type=FLOAT, shape=[symbolic "n"])
    tensor = number(1, 1) + chunk(2, chunk(1, chunk(2, b"n")))
    return chunk(1, name) + chunk(2, chunk(1, tensor))


def division(*, ir_version: int = 8, opset: int = 13) -> bytes:
    node = chunk(1, b"a") + chunk(1, b"b") + chunk(2, b"y") + chunk(4, b"Div")
    graph = chunk(1, node) + chunk(2, b"g") + chunk(11, vector(b"a")) + chunk(11, vector(b"b"))
    graph += chunk(12, vector(b"y"))
    return number(1, ir_version) + chunk(7, graph) + chunk(8, chunk(1, b"") + number(2, opset))
