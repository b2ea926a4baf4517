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

selector=$out/selector
filler=$out/filler

# Which tools: the last fifth of the updates also sees the parts that choices were made on.
stage selector "$python" -m conductor.training.train_selector --steps 2600 &
selection=$!
# Arguments: first without those parts, then with them.
stage filler-judged "$python" -m conductor.training.train_filler --steps 3300
stage filler "$python" -m conductor.training.train_filler --final --steps 2400 --rate 0.8 \
  --start "$out/filler-judged/filler.safetensors"
wait $selection

# The confidence is fitted on the parts that choices were made on, so with weights that never saw them.
judged=$(ls -v "$selector"/selector-*.safetensors | tail -2 | head -1)
if [ ! -e "$out/confidence.json" ]; then
  "$python" -m conductor.training.calibrate --data "$data" --out "$out/confidence.json" \
    --selector "$judged" --filler "$out/filler-judged/filler.safetensors"
fi

echo '{"feedback": true, "data": ["ultratool", "nestools", "sealtools", "bfcl", "written"]}' > "$out/metadata.json"
"$python" -m conductor.training.export --selector "$selector/selector.safetensors" \
  --filler "$filler/filler.safetensors" --confidence "$out/confidence.json" \
  --metadata "$out/metadata.json" --out "$out/planner.onnx"
"$python" -m conductor.training.export --check --data "$data" --out "$out/planner.onnx" \
  --selector "$selector/selector.safetensors" --filler "$filler/filler.safetensors"
"$python" -m bench.planner --data "$data" --model "$out/planner.onnx"
