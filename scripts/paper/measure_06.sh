#!/bin/bash
# Measures experiment 6, zero-copy deserialization, on a machine with PyTorch, and prints results/paper/06-measured.csv:
#
#     scripts/paper/measure_06.sh >results/paper/06-measured.csv
#
# Five models: unpickling the module, unpickling it without parameters (scripts/paper/unpickle.py), and opening the same parameters
# as an image (`distmind-real model pack`, then build/bench/real_image). Runs in the source tree after `make` and
# `make build/bench/real_image`, or in a device bundle that holds real_image. The models and their images take 3 GB of TMPDIR.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=build image=build/bench/real_image
if [ ! -x $bin/distmind-real ]; then # a bundle
  bin=bin image=bin/real_image
  export LD_LIBRARY_PATH=$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 scripts/paper/unpickle.py --save "$work" >"$work/unpickle.csv"
images=()
for model in $(tail -n +2 "$work/unpickle.csv" | cut -d, -f1); do
  "$bin/distmind-real" model pack "$work/$model.safetensors" -o "$work/$model.dmi" --quiet >&2
  rm "$work/$model.safetensors"
  images+=("$work/$model.dmi")
done
"$image" --csv "${images[@]}" >"$work/open.csv"
machine=$(python3 -c "
import platform, torch
cpu = next((l.split(':')[1].strip() for l in open('/proc/cpuinfo') if l.startswith('model name')), platform.machine())
gpu = torch.cuda.get_device_name(0) if torch.cuda.is_available() else 'no GPU'
print(f'host of one {gpu}, {cpu}, PyTorch {torch.__version__.split(\"+\")[0]}, Python {platform.python_version()}')")
echo "# machine: $machine, $(nproc) processors"
echo "# command: scripts/paper/measure_06.sh"
echo "model,pickle_bytes,unpickle_ms,stripped_bytes,unpickle_stripped_ms,image_bytes,tensors,open_us"
paste -d, "$work/unpickle.csv" <(cut -d, -f2- "$work/open.csv") | tail -n +2
