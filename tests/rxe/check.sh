#!/bin/bash
# The tests that need RDMA devices, all in one virtual machine: `tests/rxe/check.sh [SUITE...]`; `make check-verbs` builds
# the programs and calls this. SUITE: as of tests/run.sh, which runs in the machine; by default all that are listed here.
#
# One line a suite; ends with `N passed, N failed, N skipped`. Logs, and that line in `summary`, go to BUILD/check-verbs.
# When no machine can be had, that is one failure: nothing passes for want of one.
#
# BUILD=build, SANITIZE=1: the folder of the programs, and that they are sanitized. VERBS_LIMIT_S: for the machine's whole
# life; 900.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

BUILD=${BUILD:-build}
SANITIZE=${SANITIZE:-0}
limit_s=${VERBS_LIMIT_S:-900}

# Suites of the transport that need no whole cluster, and of whole clusters.
suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(
  "$BUILD/tests/backend_real=transport/!(paced)" # over TCP and verbs alike; what is paced must keep to a time
  "$BUILD/tests/backend_real=transport_verbs*"
  "$BUILD/tests/rxe=verbs_doctor"
  "$BUILD/tests/rxe=verbs_run"
  "$BUILD/tests/rxe=verbs_faults"
  "$BUILD/tests/rxe=verbs_limits"
)

share=$PWD/$BUILD/check-verbs
options=(--share "$share" --timeout "$limit_s" --console "$share/console" --file tests/run.sh --file experiments)
for program in distmind-real tests/rxe tests/backend_real tests/canary; do
  [ ! -e "$BUILD/$program" ] || options+=(--file "$BUILD/$program")
done
printf -v command 'LOGS=/share/logs BUILD=%q SANITIZE=%q TRACES=/share TMPDIR=/tmp tests/run.sh' "$BUILD" "$SANITIZE"
printf -v words ' %q' "${suites[@]}"

rm -rf "$share"
mkdir -p "$share"
status=0
tests/rxe/vm.sh "${options[@]}" -- "$command$words" || status=$?
if [ ! -s "$share/logs/summary" ]; then
  echo "the tests over verbs did not come to an end (status $status)"
  echo "0 passed, 1 failed, 0 skipped" | tee "$share/summary"
  exit 1
fi
cp "$share/logs/summary" "$share/summary"
[ ! -e "$share/logs/failures" ] || cp "$share/logs/failures" "$share/failures"
exit $status
