# shellcheck shell=bash
# 5: pipelining. Load-and-infer latency by grouping, from the memory servers and from the host cache; the bound is the longest stage.

groupings="per-layer fixed:1024000 fixed:2048000 fixed:32768000 fixed:131072000 fixed:262144000 per-app optimal"

plan() {
  local machine model grouping file
  for machine in $machines; do
    for model in $models; do
      file=$(with_model experiments/paper/05-pipelining.ini "$model" 3)
      for grouping in $groupings; do
        # shellcheck disable=SC2046 # words
        set -- "$file" $(machine_options "$machine") --set pipeline.grouping="$grouping"
        job "machine=$machine model=$model grouping=$grouping source=remote" "$@"
        job "machine=$machine model=$model grouping=$grouping source=host" "$@" --set cluster.host_cache_gb=4.096
      done
    done
  done
}

# The rates of machine_options, for `model show`, which reads hardware files.
hardware() {
  case $1 in
    p3dn) echo --hardware p3dn --memory-hardware c5n ;;
    g6) echo --hardware g6 --memory-hardware c6in ;;
    h200)
      mkdir -p "$work/hardware"
      sed 's/^\(memory_\)\{0,1\}nic_gbit_s = [0-9]*/\1nic_gbit_s = 400/' experiments/hardware/h200.ini >"$work/hardware/h200.ini"
      echo --hardware "$work/hardware/h200.ini"
      ;;
  esac
}

# Rows MACHINE|MODEL|SOURCE|BOUND_MS: the longest stage, without control latency.
bounds() {
  local machine model
  for machine in $machines; do
    for model in $models; do
      # shellcheck disable=SC2046 # words
      "$program" model show "$model" $(hardware "$machine") --json |
        awk -v m="$machine|$model" '/"source":/ { gsub(/[",]/, ""); source = $2 } /"bound_ms":/ { gsub(/,/, ""); print m "|" source "|" $2 }'
    done
  done
}

data() {
  bounds >"$work/bounds.txt"
  ask "CREATE TABLE bound(machine, model, source, ms REAL)"
  sqlite3 -batch -bail -init /dev/null -separator '|' "$work/paper.db" ".import '$work/bounds.txt' bound"
  ask "CREATE VIEW pipelining AS SELECT e05.machine AS machine, e05.model AS model, e05.source AS source, e05.grouping AS grouping,
    latency_ms_mean AS ms, bound.ms AS bound_ms, e05.job AS job FROM e05 JOIN bound USING (machine, model, source)"
  csv 05-pipelining "SELECT machine, model, source, grouping, printf('%.3f', ms) AS load_and_infer_ms, printf('%.3f', bound_ms) AS bound_ms,
    printf('%.4f', ms / bound_ms) AS ratio FROM pipelining ORDER BY job"
}

grouping_title() {
  case $1 in
    fixed:1024000) echo "1.024 MB" ;;
    fixed:2048000) echo "2.048 MB" ;;
    fixed:32768000) echo "32.8 MB" ;;
    fixed:131072000) echo "131 MB" ;;
    fixed:262144000) echo "262 MB" ;;
    *) echo "$1" ;;
  esac
}

figure() {
  local source model grouping
  {
    for source in remote host; do
      echo "\$$source << EOD"
      for model in $models; do
        printf '%s' "$(model_title "$model")"
        for grouping in $groupings; do
          printf '|%s' "$(ask "SELECT ms FROM pipelining WHERE machine = 'p3dn' AND model = '$model' AND source = '$source' AND grouping = '$grouping'")"
        done
        printf '|%s\n' "$(ask "SELECT ms FROM bound WHERE machine = 'p3dn' AND model = '$model' AND source = '$source'")"
      done
      echo EOD
    done
    cat <<'G'
set style data histogram
set style histogram clustered gap 1
set yrange [0:*]
set ylabel 'load and infer, ms'
set multiplot layout 2,1
set title 'from the memory servers'
G
    columns remote title
    echo "unset key; set title 'from the host cache'"
    columns host notitle
    echo 'unset multiplot'
  } | draw 05-pipelining 1000 800
}

# columns BLOCK title|notitle
columns() {
  local grouping column=2 shades=('#d62728' '#fdd0a2' '#fdae6b' '#fd8d3c' '#e6550d' '#a63603' '#9e9ac8' '#1f77b4') i=0
  printf 'plot '
  for grouping in $groupings; do
    printf "\$%s using %d:xtic(1) %s lc rgb '%s', " "$1" $column "$([ "$2" = title ] && echo "title '$(grouping_title "$grouping")'" || echo notitle)" "${shades[i]}"
    column=$((column + 1)) i=$((i + 1))
  done
  printf "\$%s using %d:xtic(1) %s lc rgb '#808080'\n" "$1" $column "$([ "$2" = title ] && echo "title 'bound'" || echo notitle)"
}

text() {
  local wins all worst
  all=$(ask "SELECT count(*) FROM pipelining WHERE grouping = 'optimal'")
  wins=$(ask "SELECT count(*) FROM pipelining o WHERE grouping = 'optimal' AND NOT EXISTS (SELECT 1 FROM pipelining p WHERE p.machine = o.machine
    AND p.model = o.model AND p.source = o.source AND p.ms < o.ms - 0.001)")
  worst=$(ask "SELECT printf('%.1f%% (%s, %s, %s)', 100 * (ms / bound_ms - 1), model, machine, source) FROM pipelining WHERE grouping = 'optimal' ORDER BY ms / bound_ms DESC LIMIT 1")
  cat <<M
## 5. Pipelining

*Claim.* Loading and computing group by group hides most of the load; groups of a good size for the model beat per-layer loading, a
fixed size and loading the whole application first, and come close to the bound, the longest of the three stages.

*Ours.* On p3dn, from the memory servers, ms:

M
  by_grouping remote
  echo "From the host cache:"
  echo
  by_grouping host
  picture 05-pipelining "load-and-infer latency by grouping"
  cat <<M
*Verdict.* \`optimal\` is the least of its row in $wins of $all cases (five models, two sources, three machines): $([ "$wins" = "$all" ] && echo "agrees" || echo "does not agree everywhere"). It is at most $worst
over the bound, which counts neither control messages nor the filling and draining of the pipeline: the longest stage must wait for its first group, and
the last group's compute overlaps with no load. On p3dn from the memory servers, per-layer loading costs most for $(most per-layer), per-app for $(most per-app); the
best fixed size is $(best_fixed).

*Today's machines*, from the memory servers, ms:

M
  table "machine | model | per-layer | best fixed size | per-app | optimal | bound" "
    SELECT machine, model, printf('%.1f', max(ms) FILTER (WHERE grouping = 'per-layer')), printf('%.1f', min(ms) FILTER (WHERE grouping LIKE 'fixed%')), printf('%.1f', max(ms) FILTER (WHERE grouping = 'per-app')),
      printf('%.1f', max(ms) FILTER (WHERE grouping = 'optimal')), printf('%.1f', max(bound_ms)) FROM pipelining WHERE machine <> 'p3dn' AND source = 'remote' GROUP BY machine, model ORDER BY min(job)"
}

# by_grouping SOURCE: a table of p3dn.
by_grouping() {
  local g
  table "model | per-layer | 1.024 MB | 2.048 MB | 32.8 MB | 131 MB | 262 MB | per-app | optimal | bound" "
    SELECT model, $(for g in $groupings; do printf "printf('%%.1f', max(ms) FILTER (WHERE grouping = '%s')), " "$g"; done) printf('%.1f', max(bound_ms))
    FROM pipelining WHERE machine = 'p3dn' AND source = '$1' GROUP BY model ORDER BY min(job)"
  echo
}

# most GROUPING: where it is farthest from optimal.
most() {
  ask "SELECT p.model || printf(' (%+.1f%%)', 100 * (p.ms / o.ms - 1)) FROM pipelining p JOIN pipelining o USING (machine, model, source)
    WHERE machine = 'p3dn' AND source = 'remote' AND p.grouping = '$1' AND o.grouping = 'optimal' ORDER BY p.ms / o.ms DESC LIMIT 1"
}

# The fixed size with the least mean loss against optimal.
best_fixed() {
  ask "SELECT printf('%g MB, %.1f%% over optimal on average', substr(p.grouping, 7) / 1e6, 100 * (avg(p.ms / o.ms) - 1)) FROM pipelining p JOIN pipelining o USING (machine, model, source)
    WHERE machine = 'p3dn' AND source = 'remote' AND p.grouping LIKE 'fixed:%' AND o.grouping = 'optimal' GROUP BY p.grouping ORDER BY avg(p.ms / o.ms) LIMIT 1"
}
