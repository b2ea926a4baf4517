"""ONNX models on a small device: `model` runs them, `header` looks at a file without loading it."""
