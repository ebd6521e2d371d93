# shellcheck shell=bash
# 12: beyond the paper: how few GPUs hold 99% SLO attainment on a production trace, for each system? By `distmind-sim plan`.
#
# Without the trace (TRACES, by default ../shared/traces) the part is kept from the committed CSV files, and says so.

plan() { :; }

capacity_trace() { echo "$traces/azure-llm-2023/AzureLLMInferenceTrace_conv.csv"; }

# In a database of its own, as the plan chooses its runs itself.
extra() {
  if [ ! -e "$(capacity_trace)" ]; then
    echo "12: no trace $(capacity_trace) (set TRACES): kept from results/paper/12-capacity.csv" >&2
    return
  fi
  local again=--force
  [ "$keep" = 0 ] || again=
  # shellcheck disable=SC2086 # a word or none
  "$program" plan experiments/paper/12-capacity.ini --trace "$(capacity_trace)" --vary cluster.gpu_servers=1..64 --hold 'slo_attainment>=0.99' \
    --jobs "$jobs" --out "$work/12.db" $again --quiet --json >"$work/12.json"
}

data() {
  if [ -e "$(capacity_trace)" ]; then
    csv 12-answers "SELECT json_extract(value, '$.system') AS system, json_extract(value, '$.answer') AS gpu_servers, 8 * json_extract(value, '$.answer') AS gpus,
      printf('%.4f', json_extract(value, '$.figure')) AS slo_attainment, printf('%.4f', json_extract(value, '$.below')) AS one_server_less,
      CASE json_extract(value, '$.monotone') WHEN 1 THEN 'yes' ELSE 'no' END AS monotone FROM json_each(readfile('$work/12.json'), '$.answers')"
    ask "ATTACH '$work/12.db' AS p; CREATE TABLE capacity_run AS SELECT r.system AS system, CAST(s.value AS INTEGER) AS servers, r.slo_attainment AS slo_attainment,
      r.latency_ms_p99 AS p99_ms, r.gpu_utilization AS gpu_utilization, r.loads_host + r.loads_remote + r.loads_process_start AS loads
      FROM p.run r JOIN p.setting s ON s.run = r.id AND s.key = 'cluster.gpu_servers'"
    csv 12-capacity "SELECT system, servers AS gpu_servers, 8 * servers AS gpus, printf('%.4f', slo_attainment) AS slo_attainment, printf('%.3f', p99_ms) AS p99_ms,
      printf('%.4f', gpu_utilization) AS gpu_utilization, loads FROM capacity_run ORDER BY CASE system WHEN 'ideal' THEN 1 WHEN 'distmind' THEN 2 WHEN 'pipeswitch' THEN 3 WHEN 'mps' THEN 4 ELSE 5 END, servers"
  fi
  ask "CREATE TABLE capacity(system, servers INTEGER, gpus INTEGER, slo REAL, p99_ms REAL, gpu_utilization REAL, loads INTEGER);
    CREATE TABLE answer(system, servers INTEGER, gpus INTEGER, slo REAL, below REAL, monotone)"
  tail -n +2 results/paper/12-capacity.csv >"$work/capacity.csv"
  tail -n +2 results/paper/12-answers.csv >"$work/answers.csv"
  sqlite3 -batch -bail -init /dev/null -separator , "$work/paper.db" ".import '$work/capacity.csv' capacity" ".import '$work/answers.csv' answer"
}

figure() {
  local system separator='' plot=''
  {
    for system in ideal distmind pipeswitch mps ray; do
      echo "\$$system << EOD"
      ask "SELECT gpus, 100 * slo FROM capacity WHERE system = '$system' ORDER BY gpus"
      echo EOD
      plot+="$separator\$$system using 1:2 with linespoints lw 2 pt 7 ps 0.6 lc rgb '$(colour "$system")' title '$system'"
      separator=', '
    done
    cat <<G
set xlabel 'GPUs (8 a server)'
set ylabel 'SLO attainment, %'
set xrange [0:264]
set yrange [0:105]
plot 99 with lines dt 2 lc rgb '#000000' title '99%', $plot
G
  } | draw 12-capacity 900 420
}

text() {
  cat <<M
## 12. How few GPUs? (beyond the paper)

The Azure LLM conversation trace, its hour in a quarter of a minute, 128 variants of ResNet-152: the fewest servers of 8 V100 with which 99% of requests are answered within
five warm latencies, found by \`distmind-sim plan\` between 1 and 64. One model a GPU for distmind, pipeswitch and ray.$([ -e "$(capacity_trace)" ] ||
    echo " **The trace was not at hand when this was written: the figures are those committed in \`results/paper/12-capacity.csv\`.**")

M
  table "system | servers | GPUs | attainment | with one server less | monotone" "
    SELECT system, servers, gpus, printf('%.2f%%', 100 * slo), printf('%.2f%%', 100 * below), monotone FROM answer ORDER BY rowid"
  echo
  picture 12-capacity "SLO attainment by number of GPUs"
  ask "SELECT 'distmind needs ' || d.gpus || ' GPUs, ideal ' || i.gpus || ' and ray ' || r.gpus || '; pipeswitch, with every model in every server''s memory, ' || p.gpus || '.'
    FROM answer d, answer i, answer r, answer p WHERE d.system = 'distmind' AND i.system = 'ideal' AND r.system = 'ray' AND p.system = 'pipeswitch'"
  ask "SELECT 'mps holds it with ' || gpus || CASE monotone WHEN 'yes' THEN '.' ELSE ', but not with every greater number: how many requests wait at one process (up to $(hardware_key p3dn mps_queue_max)), and whether another has to be started, at a second and '
    || 'more, depends on how the variants fall on the GPUs.' END FROM answer WHERE system = 'mps'"
}
