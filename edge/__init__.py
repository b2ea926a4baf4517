"""The device: a source, an ONNX pipeline and a link to the cloud."""
