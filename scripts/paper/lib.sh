# shellcheck shell=bash
# What the parts of `make paper` share; scripts/paper/paper.sh sources it, then each part NN-NAME.sh in a subshell of its own.
#
# A part defines: plan (its runs, by `job`), extra (if it has to run more than that), data (CSV files out of the database, by `csv`), figure (by `draw`) and text (its
# paragraph of results/PAPER.md). Numbers and verdicts in a paragraph come from `ask` and the functions under it, never from the
# author. All runs end up in one database, $work/paper.db: table run (results/README.md, with the number of its job), and a view
# eNN a part whose columns are those of run and the labels that the part gave its jobs.

# The machines of the evaluation: the paper's, then today's.
machines="p3dn g6 h200"

# machine_options NAME: what makes an experiment file run on them; the files themselves say p3dn.
machine_options() {
  case $1 in
    p3dn) ;;
    g6) echo --set cluster.hardware=g6 --set cluster.memory_hardware=c6in ;;
    h200) echo --set cluster.hardware=h200 --set cluster.nic_gbit_s=400 --set cluster.memory_nic_gbit_s=400 ;;
  esac
}

machine_title() {
  case $1 in
    p3dn) echo "p3dn (V100), c5n, 100 Gbit/s" ;;
    g6) echo "g6 (L4, estimated profiles), c6in, 40 and 200 Gbit/s" ;;
    h200) echo "H200, 400 Gbit/s" ;;
  esac
}

# hardware_key MACHINE KEY: its value in the machine's hardware file.
hardware_key() { sed -n "s/^$2 = \([^ #]*\).*/\1/p" "experiments/hardware/$1.ini"; }

# Bytes of a model's parameters.
model_bytes() { awk -F , '!/^#/ && $3 ~ /^[0-9]+$/ { bytes += $3 } END { printf "%.0f", bytes }' "experiments/profiles/v100/$1.csv"; }

models="resnet152 inception_v3 densenet201 bert_base gpt2"

model_title() {
  case $1 in
    resnet152) echo "ResNet-152" ;;
    inception_v3) echo "Inception v3" ;;
    densenet201) echo "DenseNet-201" ;;
    bert_base) echo "BERT" ;;
    gpt2) echo "GPT-2" ;;
  esac
}

# ------------------------------------------------------------------------------------------------------------------
# Plan.

# job "KEY=VALUE ..." EXPERIMENT [ARGUMENT]...: one run of the simulator; no label or argument holds a blank.
job() {
  local labels=$1
  shift
  printf '%s\t%s\t%s\n' "$part" "$labels" "$*" >>"$work/plan"
}

# with_model EXPERIMENT MODEL VARIANTS: the same experiment of another model than ResNet-152, as a file of its own; prints its name.
with_model() {
  local file
  file=$work/experiments/$(basename "$1" .ini)-$2-$3.ini
  mkdir -p "$work/experiments"
  sed "s/^resnet152 = .*/$2 = $3/" "$1" >"$file"
  echo "$file"
}

# ------------------------------------------------------------------------------------------------------------------
# Data.

# ask SQL: its rows, columns separated by |.
ask() {
  sqlite3 -batch -bail -init /dev/null "$work/paper.db" "$1"
}

# csv NAME SQL: results/paper/NAME.csv, with a header line.
csv() {
  sqlite3 -batch -bail -init /dev/null -csv -header -newline $'\n' "$work/paper.db" "$2" >"$out/$1.csv"
}

# ------------------------------------------------------------------------------------------------------------------
# Numbers in text.

calc() { awk -v OFMT=%.10g "BEGIN { print ($1) }"; }
fixed() { awk -v d="$1" -v x="$2" 'BEGIN { printf "%.*f", d, x }'; } # DIGITS X
percent() { awk -v x="$1" -v d="${2:-1}" 'BEGIN { printf "%.*f%%", d, 100 * x }'; } # SHARE [DIGITS]
holds() { awk "BEGIN { exit !($1) }"; }                                             # "1.2 > 1"

# less_or_more OURS PAPERS TOLERANCE: the verdict in words.
less_or_more() {
  awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN {
    if (a > b + t) print "more than the paper says"; else if (a < b - t) print "less than the paper says"; else print "as the paper says" }'
}

# near_all SHARE: is it near 100%?
near_all() {
  awk -v x="$1" 'BEGIN { if (x >= 0.97) print "near 100%, as the paper says"; else if (x >= 0.9) print "a little less than the paper says (near 100%)"; else print "less than the paper says (near 100%)" }'
}

# table HEADER SQL: a Markdown table; HEADER is "a | b | c".
table() {
  echo "| $1 |"
  echo "|$(sed 's/[^|]//g; s/|/---|/g' <<<"$1")---|"
  ask "$2" | sed 's/|/ | /g; s/^/| /; s/$/ |/'
}

# ------------------------------------------------------------------------------------------------------------------
# Figures.

# Colours that mean the same in every figure.
colour() {
  case $1 in
    ideal) echo '#808080' ;;
    distmind) echo '#1f77b4' ;;
    distmind-cache) echo '#1f77b4' ;;
    distmind-remote) echo '#6baed6' ;;
    distmind-unlimited) echo '#08306b' ;;
    mps) echo '#ff7f0e' ;;
    mps-cold) echo '#fdae6b' ;;
    ray | ray-pinned) echo '#2ca02c' ;;
    ray-multiplexed) echo '#98df8a' ;;
    pipeswitch) echo '#9467bd' ;;
    training) echo '#d62728' ;;
    *) echo '#000000' ;;
  esac
}

# draw NAME WIDTH HEIGHT: results/paper/NAME.svg and .png of the gnuplot commands on standard input.
draw() {
  local commands
  commands=$(cat)
  { echo "set terminal svg size $2,$3 dynamic font 'Helvetica,14' background '#ffffff' name 'figure'
set output '$out/$1.svg'"; preamble; echo "$commands"; } | gnuplot
  { echo "set terminal pngcairo size $2,$3 font 'Helvetica,11'
set output '$out/$1.png'"; preamble; echo "$commands"; } | gnuplot
}

preamble() {
  cat <<'G'
set border 3 back
set tics nomirror
set grid ytics lc rgb '#dddddd' lt 1
set key outside top center horizontal samplen 2 font ',12'
set style fill solid border -1
set boxwidth 0.9 relative
set datafile separator '|'
G
}

# plot_bars SHADE NAME...: clustered bars of $data, whose columns from the second on are those names; SHADE prints the colour of one.
plot_bars() {
  local shade=$1 name column=2 separator=
  shift
  echo 'set style data histogram'
  echo 'set style histogram clustered gap 1'
  echo 'set xtics scale 0'
  printf 'plot '
  for name in "$@"; do
    printf "%s\$data using %d:xtic(1) title '%s' lc rgb '%s'" "$separator" $column "$name" "$("$shade" "$name")"
    column=$((column + 1)) separator=', '
  done
  echo
}

# picture NAME CAPTION: the figure in results/PAPER.md.
picture() {
  echo "![$2](paper/$1.svg)"
  echo
}
