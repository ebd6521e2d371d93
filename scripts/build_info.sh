#!/bin/bash
# Writes the header that defines DM_VERSION and DM_DATA_DIR: `scripts/build_info.sh DATA_DIR HEADER`.
# The version is VERSION's, with the commit where this is a git checkout; the file is left alone when nothing changed.
set -euo pipefail
data_dir=$1 header=$2

version=$(tr -d '[:space:]' <VERSION)
# `sudo make install` reads a checkout that belongs to another user; one that merely lies within another is not meant.
git_here() { git -c safe.directory='*' "$@" 2>/dev/null; }
if [ "$(git_here rev-parse --show-toplevel || true)" = "$(pwd -P)" ]; then
  version+="+$(git_here describe --always --dirty --exclude '*' || echo unknown)"
fi

text="#define DM_VERSION \"$version\"
#define DM_DATA_DIR \"$data_dir\""
mkdir -p "$(dirname "$header")"
if [ "$text" != "$(cat "$header" 2>/dev/null || true)" ]; then
  printf '%s\n' "$text" >"$header"
fi
