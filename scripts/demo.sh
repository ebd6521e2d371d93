#!/bin/bash
# The main job on a synthetic trace that ships: `scripts/demo.sh DISTMIND_SIM`. Shows the table of the systems compared and
# draws one figure. `make demo` builds the program and calls this.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1
database=results/quickstart.db figure=results/quickstart-latency.png

mkdir -p results
"$program" run experiments/quickstart.ini --out "$database" --force
"$program" plot "$database" latency-cdf -o "$figure"
echo
echo "database: $database (try: $program report $database; sqlite3 $database .schema)"
echo "figure:   $figure"
