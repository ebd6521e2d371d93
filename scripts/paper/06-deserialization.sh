# shellcheck shell=bash
# 6: zero-copy deserialization, measured: unpickling a module, unpickling it without parameters, opening our image.
#
# The figures are those of results/paper/06-measured.csv, which scripts/paper/measure_06.sh prints on a machine with PyTorch, so
# that every run of `make paper` says the same. Opening images is measured again here where the bench is built; that is printed.

measured=results/paper/06-measured.csv

plan() { :; }

data() {
  ask "CREATE TABLE deserialization(model, pickle_bytes REAL, unpickle_ms REAL, stripped_bytes REAL, stripped_ms REAL, image_bytes REAL, tensors, open_us REAL)"
  grep -v '^#' $measured | tail -n +2 >"$work/deserialization.csv"
  sqlite3 -batch -bail -init /dev/null -separator , "$work/paper.db" ".import '$work/deserialization.csv' deserialization"
  if [ -x build/bench/real_image ]; then
    echo "    opening images as large as these, here, now (stored: $(ask "SELECT min(open_us) || ' to ' || max(open_us) || ' us' FROM deserialization")):"
    build/bench/real_image | sed 's/^/    /'
  else
    echo "    build/bench/real_image is not built: the figures are the stored ones of $measured"
  fi
}

figure() {
  {
    echo '$data << EOD'
    for model in $models; do
      ask "SELECT '$(model_title "$model")', unpickle_ms, stripped_ms, open_us / 1000 FROM deserialization WHERE model = '$model'"
    done
    cat <<G
EOD
set style data histogram
set style histogram clustered gap 1
set logscale y 10
set format y '10^{%L}'
set yrange [0.01:2000]
set ylabel 'ms'
plot \$data using 2:xtic(1) title 'unpickle the module' lc rgb '#ff7f0e', \$data using 3 title 'unpickle it without parameters' lc rgb '#fdae6b', \
  \$data using 4 title 'open our image' lc rgb '$(colour distmind)'
G
  } | draw 06-deserialization 800 420
}

text() {
  cat <<M
## 6. Zero-copy deserialization

*Claim.* Unpickling a model takes hundreds of milliseconds, and much of that even without its parameters; an image whose parameters
are used where they lie opens in no time that counts.

*Ours*, measured ($(sed -n 's/^# machine: //p' $measured); written by \`$(sed -n 's/^# command: //p' $measured)\`, stored in
\`$measured\`, not renewed by \`make paper\`):

M
  table "model | tensors | unpickle, ms | without parameters, ms | open our image, ms | unpickle over open" "
    SELECT model, tensors, printf('%.0f', unpickle_ms), printf('%.0f', stripped_ms), printf('%.3f', open_us / 1000), printf('%.0f x', unpickle_ms / (open_us / 1000))
    FROM deserialization ORDER BY rowid"
  echo
  picture 06-deserialization "deserialization of five models"
  local most share
  most=$(ask "SELECT max(open_us) FROM deserialization")
  share=$(ask "SELECT printf('%.0f%% to %.0f%%', 100 * min(stripped_ms / unpickle_ms), 100 * max(stripped_ms / unpickle_ms)) FROM deserialization")
  echo "*Verdict.* $(if holds "$most < 1000"; then echo "Agrees: at most"; else echo "Differs: up to"; fi) $(fixed 0 "$most") us, with every table of the file checked."
  echo "What is left without parameters is building Python objects: $share of the whole, most where modules are many and small."
  echo "Opening grows with the number of tensors, not with bytes. It builds no Python module: that is made once a profile, not once a variant."
}
