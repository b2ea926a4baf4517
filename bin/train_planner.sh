#!/usr/bin/env bash
# train_planner.sh OUT: trains the planner in the folder OUT and exports OUT/planner.onnx.
# Every stage goes on where it stopped; a finished one is not done again. PODIUM_PLANNING_DATA names the data.
set -euo pipefail
out=${1:?folder of the run}
data=${PODIUM_PLANNING_DATA:?names the folder of the public planning data}
python=.venv/bin/python
export OMP_NUM_THREADS=1
mkdir -p "$out"

# stage NAME COMMAND...: unless it is done; what was interrupted goes on.
stage() {
  local name=$1
  shift
  if [ -e "$out/$name.done" ]; then
    echo "$name is done"
    return
  fi
  "$@" --data "$data" --out "$out/$name" --resume
  touch "$out/$name.done"
}

first=$out/selector/selector.safetensors
second=$out/own-tools/selector.safetensors
selector=$out/selector.safetensors
filler=$out/filler/filler.safetensors

# Which tools, and which arguments: one core each. The parts that choices are made on are trained on by neither.
{
  stage selector "$python" -m conductor.training.train_selector
  stage own-tools "$python" -m conductor.training.train_selector --start "$first" --steps 1300 --seed 2 \
    --set encoder_rate=5e-5 --set head_rate=4e-4
} &
selection=$!
stage filler "$python" -m conductor.training.train_filler
wait $selection
"$python" -m conductor.training.averaging "$first" "$second" --out "$selector"

# How plans are ranked and how sure they are is fitted on the parts that choices are made on.
if [ ! -e "$out/confidence.json" ]; then
  "$python" -m conductor.training.calibrate --data "$data" --out "$out/confidence.json" \
    --selector "$selector" --filler "$filler"
fi

echo '{"feedback": true, "data": ["ultratool", "nestools", "sealtools", "bfcl", "written"]}' > "$out/metadata.json"
"$python" -m conductor.training.export --selector "$selector" \
  --filler "$filler" --confidence "$out/confidence.json" \
  --metadata "$out/metadata.json" --out "$out/planner.onnx"
"$python" -m conductor.training.export --check --data "$data" --out "$out/planner.onnx" \
  --selector "$selector" --filler "$filler"
"$python" -m bench.planner --data "$data" --model "$out/planner.onnx"
