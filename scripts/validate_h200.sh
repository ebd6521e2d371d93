#!/bin/bash
# The calibrated simulator beside real runs on a machine with an H200: `scripts/validate_h200.sh [BUNDLE]`, with BUNDLE what
# `make device-bundle` made (default build/device). Prints Markdown for results/real-h200.md; takes about 6 minutes. What
# scripts/validate.sh takes from the environment may be given, as REPEATS=1 for a try.
set -euo pipefail
bundle=${1:-build/device}
export DEVICE=${DEVICE:-cuda} PACE=${PACE:-100} SYSTEMS=${SYSTEMS:-distmind,pipeswitch} DURATION_S=${DURATION_S:-8}
export EXPERIMENT=${EXPERIMENT:-$bundle/experiments/real-h200.ini} BASE=${BASE:-$bundle/experiments/hardware/h200.ini}

echo "## The calibrated simulator beside the real run"
echo
echo "Written by \`scripts/validate_h200.sh\`."
"$(dirname "$0")/validate.sh" "$bundle"
