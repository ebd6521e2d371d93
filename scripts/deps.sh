#!/bin/bash
# Installs what a target needs and the machine lacks: `scripts/deps.sh GROUP...`, by default "build check".
# Groups: build (programs and the demo), check (tests), paper (its evaluation), lint, fuzz, bench (a yardstick; optional).
#
# What is missing is found by a probe (a command, a pkg-config module, a header), not by the package's name, so that no
# network is touched when all is there, and another distribution or a package built by hand will do as well.
# As root on Debian it installs by apt-get; else it prints the line to run and exits 1.
set -euo pipefail

has_command() { command -v "$1" >/dev/null; }
has_module() { pkg-config --exists "$1" 2>/dev/null; }
has_header() { echo "#include <$1>" | gcc -E -o /dev/null - 2>/dev/null; }
has_libfuzzer() {
  echo 'int LLVMFuzzerTestOneInput(void); int LLVMFuzzerTestOneInput(void) { return 0; }' |
    clang -fsanitize=fuzzer,address -x c -o /dev/null - 2>/dev/null
}

# GROUP PACKAGE PROBE ARGUMENT, in the order in which probes need one another. slurm is for check-slurm, and optional.
packages() {
  cat <<'LIST'
build make            has_command make
build gcc             has_command gcc
build libc6-dev       has_header stdio.h
build pkg-config      has_command pkg-config
build libglib2.0-dev  has_module glib-2.0
build libgsl-dev      has_module gsl
build libsqlite3-dev  has_module sqlite3
build libyajl-dev     has_module yajl
build libzmq3-dev     has_module libzmq
build gnuplot-nox     has_command gnuplot
check libcriterion-dev has_module criterion
check sqlite3         has_command sqlite3
paper sqlite3         has_command sqlite3
lint  clang-format    has_command clang-format
lint  cppcheck        has_command cppcheck
lint  universal-ctags has_command ctags
fuzz  clang           has_command clang
fuzz  libclang-rt-dev has_libfuzzer -
bench g++             has_command g++
bench libsimgrid-dev  has_module simgrid
slurm slurm-wlm       has_command slurmctld
slurm munge           has_command munged
LIST
}

find_missing() {
  local group package probe argument
  while read -r group package probe argument; do
    [[ " $groups " == *" $group "* ]] || continue
    "$probe" "$argument" || echo "$package"
  done < <(packages)
}

groups="${*:-build check}"
mapfile -t missing < <(find_missing)
if [ ${#missing[@]} -eq 0 ]; then
  exit 0
fi
if ! has_command apt-get; then
  echo "missing (by their Debian names): ${missing[*]}" >&2
  exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "missing packages; run:" >&2
  echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
  exit 1
fi
echo "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
  tail -n 20 "$log" >&2
  echo "apt-get could not install ${missing[*]}" >&2
  exit 1
fi
mapfile -t missing < <(find_missing)
if [ ${#missing[@]} -ne 0 ]; then
  echo "installed, but still not found: ${missing[*]}" >&2
  exit 1
fi
