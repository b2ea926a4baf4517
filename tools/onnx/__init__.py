"""ONNX models on a small device: `tools.onnx.model` runs them, `tools.onnx.header` looks at a file without loading it."""
