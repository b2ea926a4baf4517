#!/usr/bin/env bash
# Generates protos/podium/v1/*_pb2* from the .proto files beside them. CI runs it and fails on a difference.
set -euo pipefail
cd "$(dirname "$0")/.."
out="${1:-protos}"
mkdir -p "$out"
PATH="$PWD/.venv/bin:$PATH" .venv/bin/python -m grpc_tools.protoc -I protos \
  --python_out="$out" --grpc_python_out="$out" --mypy_out="quiet:$out" --mypy_grpc_out="quiet:$out" \
  protos/podium/v1/*.proto
