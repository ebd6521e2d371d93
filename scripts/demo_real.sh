#!/bin/bash
# One experiment in both worlds: `scripts/demo_real.sh DISTMIND_SIM DISTMIND_REAL`. First on real processes of this machine,
# with the processor in the GPUs' place and TCP over loopback, then in the simulator. `make demo-real` builds both and calls this.
set -euo pipefail
cd "$(dirname "$0")/.."
sim=$1 real=$2
experiment=experiments/real-quickstart.ini
measured=results/real-quickstart.db simulated=results/real-quickstart-simulated.db

mkdir -p results
echo "real: a controller, two memory servers and two GPU servers, each a process; about 20 s"
"$real" run "$experiment" --local --device host --transport tcp --out "$measured" --force
echo
echo "simulated: the same experiment file"
"$sim" run "$experiment" --out "$simulated" --force
echo
echo "Both tables have the same columns and mean the same. They differ as far as experiments/hardware/loopback.ini differs from"
echo "this machine, and where fewer than six processors are there for the six processes (here: $(nproc))."
echo "try: $real report $measured --json; $real run $experiment --local --pace 10 --metrics 9400"
