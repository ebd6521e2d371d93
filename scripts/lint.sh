#!/bin/bash
# Checks the sources without running them; `make lint` calls it. Fails on: code that clang-format would change, a finding of
# cppcheck, something that src/core may not use, a word that marks unfinished work. Functions past 60 lines and files past
# 400 are listed as warnings.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

function_lines_max=60 file_lines_max=400
failed=0
mapfile -t sources < <(find src tests -name '*.[ch]' | sort)

# verdict WHAT STATUS
verdict() {
  if [ "$2" -eq 0 ]; then
    echo "ok      $1"
  else
    echo "FAILED  $1"
    failed=1
  fi
}

check_format() {
  local changed
  mapfile -t changed < <(clang-format --dry-run -Werror "${sources[@]}" 2>&1 | sed -nE 's/^([^:]+):[0-9]+:.*/\1/p' | sort -u)
  [ ${#changed[@]} -eq 0 ] || printf '%s: would be formatted otherwise (make format)\n' "${changed[@]}"
  [ ${#changed[@]} -eq 0 ]
}

check_cppcheck() {
  mkdir -p build/cppcheck
  cppcheck --quiet --enable=warning,performance,portability --inline-suppr --suppressions-list=.cppcheck \
    --library=gtk --library=sqlite3 --library=scripts/cppcheck.cfg --std=c11 --error-exitcode=1 -j "$(nproc)" --cppcheck-build-dir=build/cppcheck \
    -Isrc -D_GNU_SOURCE -D__GNUC__ -D__linux__ -DDM_SOURCE_DIR='""' -DDM_DATA_DIR='""' -DDM_VERSION='""' src tests
}

# The core has no thread, clock, file, socket, stdio, CUDA or verbs.
check_core() {
  local headers='pthread|threads|time|sys/[a-z_]*|unistd|fcntl|stdio|sqlite3|yajl/[a-z_]*|gio/[a-z]*|glib/gstdio|cuda[a-z_]*|infiniband/[a-z]*|rdma/[a-z_]*'
  local calls='g_get_real_time|g_get_monotonic_time|g_date_time_new_now\w*|g_timer_\w+|g_thread_\w+|g_mutex_\w+|g_file_(get|set)_contents|g_(print|printerr|spawn\w*|getenv|random_\w+|usleep)|f?open|fopen|f?printf|getenv|time|clock|clock_gettime|gettimeofday|rand|random|exit|abort'
  ! grep -nE "#include *[<\"]($headers)(\.h)[>\"]|\b($calls) ?\(" src/core/*.[ch]
}

# No variable at file level that can change: every static in the core is a constant or a function.
check_core_state() {
  ! grep -nE '^(static )?(unsigned |struct |enum )*[A-Za-z_0-9]+ \**[a-z_0-9]+(\[[^]]*\])* *(=.*)?;$' src/core/*.c |
    grep -vE 'typedef|const |G_DEFINE|: *(return|goto) |^[^:]*:[0-9]*:(struct|enum) [a-z_]+;$'
}

check_finished() {
  # The words are spelled so that this line does not find itself.
  ! grep -rnwE 'TO[D]O|FIX[M]E|X[X]X|HA[C]K|W[I]P|unimplement[e]d|not (yet )?implement[e]d' \
    --include='*' Makefile README.md .ci scripts src tests/*.* tests/[a-eg-z]* tests/fuzz/*.[ch] experiments traces 2>/dev/null
}

# With another program in place of ours, which need not be installed here.
check_units() {
  command -v systemd-analyze >/dev/null || { echo 'no systemd-analyze: the units are not looked at'; return 0; }
  local folder found
  folder=$(mktemp -d "${TMPDIR:-/tmp}/distmind-units-XXXXXX")
  for unit in scripts/systemd/*.service; do
    sed 's,/usr/local/bin/distmind-real,/bin/true,' "$unit" >"$folder/$(basename "${unit/@/@0}")"
  done
  found=$(SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no "$folder"/*.service 2>&1 | grep -F "$folder" | grep -v 'has no Documentation')
  rm -rf "$folder"
  [ -z "$found" ] || echo "$found"
  [ -z "$found" ]
}

warn_sizes() {
  local file lines
  for file in "${sources[@]}"; do
    lines=$(wc -l <"$file")
    [ "$lines" -le $file_lines_max ] || echo "warning: $file has $lines lines"
  done
  if ! ctags --version 2>/dev/null | grep -q Universal; then
    echo "no universal-ctags: lengths of functions are not looked at"
    return
  fi
  # Criterion's Test(…) is a function too, to the eye and to ctags when told.
  ctags -f - --languages=C --langmap=C:.c --kinds-C=f --fields=ne -I 'Test+,ParameterizedTest+' "${sources[@]}" |
    awk -F '\t' -v max=$function_lines_max '
      { line = end = 0
        for (i = 4; i <= NF; i++) { split($i, kv, ":"); if (kv[1] == "line") line = kv[2]; if (kv[1] == "end") end = kv[2] }
        if (end - line + 1 > max) printf "warning: %s:%d: %s has %d lines\n", $2, line, $1, end - line + 1 }'
}

check_format
verdict 'clang-format' $?
check_cppcheck
verdict 'cppcheck' $?
check_core
verdict 'src/core uses no thread, clock, file, socket, stdio' $?
check_core_state
verdict 'src/core has no variable of its own' $?
check_units
verdict 'systemd units' $?
check_finished
verdict 'no unfinished work' $?
warn_sizes
exit $failed
