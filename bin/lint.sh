#!/usr/bin/env bash
# Everything that is checked without running the product: style, types, layers, the wire, generated code.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=.venv/bin
"$bin/ruff" check --quiet .
"$bin/ruff" format --quiet --check .
"$bin/mypy" --no-error-summary
"$bin/lint-imports" --no-logo >/dev/null || "$bin/lint-imports" --no-logo
"$bin/buf" lint
# The wire only grows: compared with the last released image of the contract.
"$bin/buf" breaking --against protos/released.binpb
fresh="$(mktemp -d)"
trap 'rm -rf "$fresh"' EXIT
bash bin/protos.sh "$fresh"
for file in "$fresh"/podium/v1/*; do
  cmp --silent "$file" "protos/podium/v1/$(basename "$file")" || {
    echo "protos/podium/v1/$(basename "$file") is not what its .proto generates; run: make protos" >&2; exit 1; }
done
