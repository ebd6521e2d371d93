# shellcheck shell=bash
# 10: beyond the paper: the comparison of 2 on real request traces, overlaid to 70% of ideal's capacity, 128 variants.
#
# The traces lie outside the project: TRACES, by default ../shared/traces. Without them the part is kept from the committed CSV
# file, and results/PAPER.md says so.

request_traces="azure-llm-2023/AzureLLMInferenceTrace_conv.csv azure-llm-2023/AzureLLMInferenceTrace_code.csv
azure-functions-2021-excerpt/Azure2021_200.csv mooncake/conversation_trace.jsonl"

trace_name() {
  case $1 in
    *_conv.csv) echo azure-llm-conversation ;;
    *_code.csv) echo azure-llm-code ;;
    azure-functions-2021*) echo azure-functions-2021 ;;
    mooncake*) echo mooncake ;;
  esac
}

all_there() {
  local trace
  for trace in $request_traces; do
    [ -e "$traces/$trace" ] || return 1
  done
}

plan() {
  local trace file=experiments/paper/10-traces.ini
  if ! all_there; then
    echo "10: no traces in $traces (set TRACES): kept from results/paper/10-traces.csv" >&2
    return
  fi
  for trace in $request_traces; do
    set -- $file --trace "$traces/$trace"
    job "trace=$(trace_name "$trace") capped=1" "$@"
    job "trace=$(trace_name "$trace") capped=0" "$@" --system distmind,ray --set cluster.gpu_models_max=0
  done
}

data() {
  if all_there; then
    csv 10-traces "SELECT trace, CASE system WHEN 'distmind' THEN CASE capped WHEN 1 THEN 'distmind' ELSE 'distmind-unlimited' END
        WHEN 'ray' THEN CASE capped WHEN 1 THEN 'ray-multiplexed' ELSE 'ray-multiplexed-unlimited' END ELSE system END AS system,
      requests, printf('%.3f', throughput_rps) AS throughput_rps, printf('%.3f', latency_ms_mean) AS mean_ms, printf('%.3f', latency_ms_p50) AS p50_ms,
      printf('%.3f', latency_ms_p99) AS p99_ms, printf('%.4f', slo_attainment) AS slo_attainment, printf('%.4f', gpu_utilization) AS gpu_utilization,
      printf('%.4f', gpu_held) AS gpu_held, loads_host + loads_remote + loads_process_start AS loads, printf('%.3f', net_bytes / 1e9 / duration_s) AS net_gbyte_s FROM e10 ORDER BY job, id"
  fi
  ask "CREATE TABLE traces(trace, system, requests, throughput_rps REAL, mean_ms REAL, p50_ms REAL, p99_ms REAL, slo_attainment REAL, gpu_utilization REAL, gpu_held REAL, loads INTEGER, net_gbyte_s REAL)"
  tail -n +2 results/paper/10-traces.csv >"$work/traces.csv"
  sqlite3 -batch -bail -init /dev/null -separator , "$work/paper.db" ".import '$work/traces.csv' traces"
}

figure() {
  local system column=2 list="ideal distmind distmind-unlimited mps ray-multiplexed ray-multiplexed-unlimited"
  {
    echo '$data << EOD'
    ask "SELECT trace, $(for system in $list; do printf "100 * max(slo_attainment) FILTER (WHERE system = '%s'), " "$system"; done) 0 FROM traces GROUP BY trace ORDER BY min(rowid)"
    cat <<'G'
EOD
set style data histogram
set style histogram clustered gap 1
set yrange [0:100]
set ylabel 'SLO attainment, %'
G
    printf 'plot '
    for system in $list; do
      printf "%s\$data using %d:xtic(1) title '%s' lc rgb '%s'" "$([ $column = 2 ] || echo ', ')" $column "$system" "$(colour "${system%-multiplexed-unlimited}")"
      column=$((column + 1))
    done
    echo
  } | draw 10-traces 1000 420
}

text() {
  cat <<M
## 10. Real traces (beyond the paper)

The cluster of 2 under the arrivals of real request traces, overlaid in copies to 70% of ideal's capacity and drawn over 128 variants of
ResNet-152 by Zipf 0.9; 5 minutes of figures. \`unlimited\` is without the limit of one model a GPU. The service-level objective is five times the
warm latency.$(all_there || echo " **The traces were not at hand: this part is as committed in \`results/paper/10-traces.csv\`.**")

M
  table "trace | system | requests | req/s | mean ms | p50 ms | p99 ms | SLO | GPU busy | loads" "
    SELECT trace, system, requests, printf('%.1f', throughput_rps), printf('%.1f', mean_ms), printf('%.1f', p50_ms), printf('%.1f', p99_ms), printf('%.1f%%', 100 * slo_attainment), printf('%.1f%%', 100 * gpu_utilization), loads
    FROM traces ORDER BY rowid"
  echo
  picture 10-traces "SLO attainment on real traces"
}
