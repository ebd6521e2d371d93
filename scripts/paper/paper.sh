#!/bin/bash
# The paper's evaluation: `scripts/paper/paper.sh DISTMIND_SIM [--jobs N] [--keep]`; `make paper` builds the program and calls this.
# --keep takes the runs of the last time, if the plan is the same: for work on figures and text.
#
# Runs every part scripts/paper/NN-NAME.sh in the simulator and writes, for each, results/paper/NN-*.csv, figures (SVG, PNG) and a
# paragraph; together they are results/PAPER.md. What is written is a function of the sources alone: the same bytes every time.
# Parts that need what is not there (traces) say so here and in PAPER.md.
set -euo pipefail
cd "$(dirname "$0")/../.."
program=$1
shift
jobs=$(nproc) keep=0
while [ $# -gt 0 ]; do
  case $1 in
    --jobs) jobs=$2; shift ;;
    --keep) keep=1 ;;
    *) echo "paper.sh: unknown argument $1" >&2; exit 2 ;;
  esac
  shift
done
export LC_ALL=C program
export work=$PWD/build/paper out=results/paper
traces=${TRACES:-../shared/traces}
. scripts/paper/lib.sh

# run_job NUMBER: line NUMBER of the plan, into $work/runs/NUMBER.db.
run_job() {
  local arguments
  arguments=$(sed -n "$1p" "$work/plan" | cut -f 3)
  # shellcheck disable=SC2086 # words of the plan
  if ! "$program" run $arguments --quiet --force --out "$work/runs/$1.db" >"$work/runs/$1.log" 2>&1; then
    echo "failed: $program run $arguments" >&2
    cat "$work/runs/$1.log" >&2
    return 255 # xargs ends
  fi
}
export -f run_job

# One database of all runs: the table run with each row's job, labels, usage series, arrivals of groups, counts of reasons.
gather() {
  local count=$1 number
  rm -f "$work/paper.db"
  {
    echo "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
    echo "ATTACH '$work/runs/1.db' AS s;"
    echo "CREATE TABLE run AS SELECT 0 AS job, * FROM s.run WHERE 0;"
    echo "CREATE TABLE usage AS SELECT 0 AS job, * FROM s.usage WHERE 0;"
    echo "CREATE TABLE decision AS SELECT 0 AS job, * FROM s.decision WHERE 0;"
    echo "DETACH s;"
    echo "CREATE TABLE label(job INTEGER, part TEXT, key TEXT, value NUMERIC, PRIMARY KEY(job, key)) WITHOUT ROWID;"
    for ((number = 1; number <= count; number++)); do
      echo "ATTACH '$work/runs/$number.db' AS s;"
      for name in run usage decision; do
        echo "INSERT INTO $name SELECT $number, * FROM s.$name;"
      done
      echo "DETACH s;"
    done
    awk -F '\t' '{ n = split($2, pair, " "); print "INSERT INTO label VALUES (" NR ", \"" $1 "\", \"part\", \"" $1 "\");"
      for (i = 1; i <= n; i++) { at = index(pair[i], "=")
        printf "INSERT INTO label VALUES (%d, \"%s\", \"%s\", \"%s\");\n", NR, $1, substr(pair[i], 1, at - 1), substr(pair[i], at + 1) } }' "$work/plan" | sed "s/\"/'/g"
    echo "CREATE INDEX run_job ON run(job); CREATE INDEX usage_job ON usage(job, run); CREATE INDEX decision_job ON decision(job, run);"
  } | sqlite3 -batch -bail -init /dev/null "$work/paper.db" >/dev/null
  # A view a part, with its labels as columns.
  sqlite3 -batch -init /dev/null "$work/paper.db" \
    "SELECT DISTINCT part, key FROM label WHERE key <> 'part' ORDER BY part, key" |
    awk -F '|' '{ if ($1 "" != part) { if (part != "") print tail; part = $1; tail = " FROM run WHERE job IN (SELECT job FROM label WHERE part = \x27" part "\x27);"
        printf "CREATE VIEW e%s AS SELECT run.*", part }
      printf ", (SELECT value FROM label WHERE label.job = run.job AND key = \x27%s\x27) AS %s", $2, $2 } END { print tail }' |
    sqlite3 -batch -bail -init /dev/null "$work/paper.db"
}

# with_part FILE FUNCTION: one function of a part, in a shell of its own.
with_part() (
  part=$(basename "$1" | sed 's/-.*//')
  extra() { :; } # what few parts have: runs that are no plain `run`
  . "$1"
  "$2"
)

mkdir -p "$work" "$out"
[ ! -e "$work/plan" ] || mv "$work/plan" "$work/plan.before"
rm -rf "$work/text" "$work/profiles" "$work/experiments" "$work/hardware" # made anew: the sources may have changed
mkdir -p "$work/text"
: >"$work/plan"
touch -d '1 second ago' "$work/plan.begun"
parts=(scripts/paper/[0-9]*-*.sh)
for file in "${parts[@]}"; do
  with_part "$file" plan
done
count=$(wc -l <"$work/plan")
if [ $keep = 1 ] && [ -e "$work/runs/done" ] && cmp -s "$work/plan" "$work/plan.before"; then
  echo "$count runs of the simulator, kept from the last time"
else
  echo "$count runs of the simulator, $jobs at a time"
  rm -rf "$work/runs"
  mkdir -p "$work/runs"
  seq "$count" | xargs -P "$jobs" -I '{}' bash -c 'run_job {}'
  touch "$work/runs/done"
fi
gather "$count"
for file in "${parts[@]}"; do
  with_part "$file" extra
done
# The headline is of what the others found: its data comes last, its text first.
for file in "${parts[@]:1}" "${parts[0]}"; do
  with_part "$file" data
done
for file in "${parts[@]}"; do
  with_part "$file" figure
  with_part "$file" text >"$work/text/$(basename "$file" .sh).md"
  echo >>"$work/text/$(basename "$file" .sh).md"
done
cat "$work"/text/*.md >results/PAPER.md
with_part "${parts[0]}" summary >"$out/00-headline.txt"
# A part that was renamed or lost its trace leaves files behind.
find "$out" -type f ! -newer "$work/plan.begun" ! -name 06-measured.csv | sort | sed 's/^/not written this time: /'
echo
cat "$out/00-headline.txt"
echo
echo "results/PAPER.md, with data and figures in $out"
