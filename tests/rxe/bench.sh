#!/bin/bash
# The verbs transport beside ib_read_bw, in one virtual machine: `tests/rxe/bench.sh PROGRAM`; `make bench-verbs` builds
# bench/real_verbs and calls this. Devices, and often the processor, are emulated: the ratio tells what the transport's own
# code costs there, and nothing about speed on an RDMA network.
#
# PAIRS=5 (runs of each, in turn), BYTES=65536 (a message), MESSAGES=2000, QUEUE_PAIRS=4 (what the transport takes by itself).
set -euo pipefail
cd "$(dirname "$0")/../.."
program=$PWD/$1
for number in "${PAIRS:=5}" "${BYTES:=65536}" "${MESSAGES:=2000}" "${QUEUE_PAIRS:=4}"; do
  [[ $number =~ ^[1-9][0-9]*$ ]] || { echo "PAIRS, BYTES, MESSAGES and QUEUE_PAIRS are whole numbers from 1, not '$number'" >&2; exit 2; }
done
[ $((BYTES % 8)) -eq 0 ] && [ "$BYTES" -le 1048576 ] || { echo "BYTES is a multiple of 8, at most 1048576, not $BYTES" >&2; exit 2; }
exec tests/rxe/vm.sh --timeout 600 --file "$program" --file tests/rxe/pairs.sh -- \
  "tests/rxe/pairs.sh $(printf '%q' "$program") $PAIRS $BYTES $MESSAGES $QUEUE_PAIRS"
