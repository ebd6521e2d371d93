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
  local trace capped file=experiments/paper/10-traces.ini
  if ! all_there; then
    echo "10: no traces in $traces (set TRACES): kept from results/paper/10-traces.csv" >&2
    return
  fi
  for trace in $request_traces; do
    set -- $file --trace "$traces/$trace"
    job "trace=$(trace_name "$trace") capped=1" "$@"
    for capped in 4 0; do
      job "trace=$(trace_name "$trace") capped=$capped" "$@" --system distmind,ray --set cluster.gpu_models_max=$capped
    done
  done
}

data() {
  if all_there; then
    csv 10-traces "SELECT trace, system || CASE WHEN system = 'ray' THEN '-multiplexed' ELSE '' END || CASE capped WHEN 1 THEN '' WHEN 0 THEN '-unlimited' ELSE '-' || capped END AS system,
      requests, printf('%.3f', throughput_rps) AS throughput_rps, printf('%.3f', latency_ms_mean) AS mean_ms, printf('%.3f', latency_ms_p50) AS p50_ms,
      printf('%.3f', latency_ms_p99) AS p99_ms, printf('%.4f', slo_attainment) AS slo_attainment, printf('%.4f', gpu_utilization) AS gpu_utilization,
      printf('%.4f', gpu_held) AS gpu_held, loads_host + loads_remote + loads_process_start AS loads, printf('%.3f', net_bytes / 1e9 / duration_s) AS net_gbyte_s FROM e10 ORDER BY job, id"
  fi
  ask "CREATE TABLE traces(trace, system, requests, throughput_rps REAL, mean_ms REAL, p50_ms REAL, p99_ms REAL, slo_attainment REAL, gpu_utilization REAL, gpu_held REAL, loads INTEGER, net_gbyte_s REAL)"
  tail -n +2 results/paper/10-traces.csv >"$work/traces.csv"
  sqlite3 -batch -bail -init /dev/null -separator , "$work/paper.db" ".import '$work/traces.csv' traces"
}

shade() {
  case $1 in
    distmind-4) colour distmind-remote ;;
    ray-multiplexed-4) colour ray-multiplexed ;;
    ray-multiplexed) colour ray ;;
    *) colour "$1" ;;
  esac
}

figure() {
  local system list="ideal distmind distmind-4 distmind-unlimited mps ray-multiplexed ray-multiplexed-4"
  {
    echo '$data << EOD'
    ask "SELECT trace, $(for system in $list; do printf "100 * max(slo_attainment) FILTER (WHERE system = '%s'), " "$system"; done) 0 FROM traces GROUP BY trace ORDER BY min(rowid)"
    cat <<'G'
EOD
set yrange [0:100]
set ylabel 'SLO attainment, %'
G
    # shellcheck disable=SC2086 # words
    plot_bars shade $list
  } | draw 10-traces 1000 420
}

text() {
  cat <<M
## 10. Real traces (beyond the paper)

The cluster of 2 under the arrivals of real request traces, overlaid in copies to 70% of ideal's capacity and drawn over 128 variants of
ResNet-152 by Zipf 0.9; 5 minutes of figures. \`-4\` is with four models a GPU, \`-unlimited\` with as many as its memory holds (all of them). The
service-level objective is five times the warm latency. Samples of layouts that are not real traces (BurstGPT's, Azure Functions 2019's) are left out.$(all_there ||
    echo " **The traces were not at hand when this was written: the figures are those committed in \`results/paper/10-traces.csv\`.**")

M
  table "trace | system | requests | req/s | mean ms | p50 ms | p99 ms | SLO | GPU busy | loads" "
    SELECT trace, system, requests, printf('%.1f', throughput_rps), printf('%.1f', mean_ms), printf('%.1f', p50_ms), printf('%.1f', p99_ms), printf('%.1f%%', 100 * slo_attainment), printf('%.1f%%', 100 * gpu_utilization), loads
    FROM traces ORDER BY rowid"
  echo
  picture 10-traces "SLO attainment on real traces"
  echo "Unlike the demand of 2, where a client keeps to its slot's model, each request here draws anew. $(with_one)"
  echo "With four models a GPU distmind holds at least $(least distmind-4) of the objectives, ray $(least ray-multiplexed-4); mps, which has every model in some process of its GPUs'"
  echo "$(calc "32 * $(hardware_key p3dn gpu_memory_gb)") GB, at least $(least mps)."
}

least() { ask "SELECT printf('%.1f%%', 100 * min(slo_attainment)) FROM traces WHERE system = '$1'"; }

with_one() {
  ask "SELECT CASE WHEN max(d.throughput_rps / i.throughput_rps) < 0.95
    THEN printf('With one model a GPU distmind does not keep up: it loads for %.0f%% to %.0f%% of the requests and moves %.0f GB/s on average of the $(calc "4 * $(hardware_key c5n memory_nic_gbit_s) / 8") that four memory servers have, so queues grow as long as the trace lasts; ray, whose swaps stop and go, does worse.',
      100 * min(1.0 * d.loads / d.requests), 100 * max(1.0 * d.loads / d.requests), avg(d.net_gbyte_s))
    ELSE 'With one model a GPU distmind keeps up.' END
    FROM traces d JOIN traces i USING (trace) WHERE d.system = 'distmind' AND i.system = 'ideal'"
}
