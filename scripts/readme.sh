#!/bin/bash
# Renews the outputs that README.md shows: `scripts/readme.sh DISTMIND_SIM`; `make readme` builds the program and calls this.
# Each stands between the lines `<!-- output of: COMMAND -->` and `<!-- end of output -->`. A command that fails leaves the file
# as it was. tests/e2e/test_readme.c holds the table of `make demo` to what the program prints.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1
outputs=$(mktemp -d "${TMPDIR:-/tmp}/distmind-readme-XXXXXX")
trap 'rm -rf "$outputs"' EXIT

# The table, without what stands under it.
"$program" run experiments/quickstart.ini --out "$outputs/quickstart.db" | sed '/^\* /q' >"$outputs/make demo"

# What the paper's evaluation ended with when it was run last.
cp results/paper/00-headline.txt "$outputs/make paper"

# The last line.
if ! make --no-print-directory check >"$outputs/log" 2>&1; then
  tail -n 50 "$outputs/log" >&2
  exit 1
fi
cp build/check/summary "$outputs/make check"

awk -v folder="$outputs" '
  /^<!-- end of output -->$/ { skipping = 0 }
  !skipping { print }
  /^<!-- output of: .* -->$/ {
    file = folder "/" substr($0, 17, length($0) - 20)
    while ((got = (getline line < file)) > 0) print line == "" ? "" : "    " line
    if (got < 0) { print "no output of: " file > "/dev/stderr"; exit 1 }
    skipping = 1
  }' README.md >"$outputs/README.md"
cat "$outputs/README.md" >README.md
git --no-pager diff --stat README.md
