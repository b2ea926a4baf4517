"""What agents and pipelines use: ONNX, OCR, images, embeddings, rules, SQL, text, search."""
