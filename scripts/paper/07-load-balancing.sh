# shellcheck shell=bash
# 7: load balancing. Throughput of distmind by policy and popularity, beside the GPU bound.

plan() {
  local machine policy zipf
  for machine in $machines; do
    for zipf in 0 0.9 0.99; do
      # shellcheck disable=SC2046 # words
      set -- experiments/paper/07-load-balancing.ini $(machine_options "$machine") --set workload.zipf=$zipf
      job "machine=$machine zipf=$zipf policy=bound" "$@" --system ideal
      for policy in cache_aware least_loaded; do
        job "machine=$machine zipf=$zipf policy=$policy" "$@" --system distmind --set balancing.policy=$policy
      done
    done
  done
}

data() {
  csv 07-load-balancing "SELECT machine, zipf, policy, printf('%.3f', throughput_rps) AS throughput_rps, printf('%.3f', latency_ms_mean) AS mean_ms,
    found_resident, found_host, found_remote, printf('%.4f', gpu_utilization) AS gpu_utilization, printf('%.4f', gpu_held) AS gpu_held,
    printf('%.3f', net_bytes / 1e9) AS net_gb FROM e07 ORDER BY job"
}

figure() {
  {
    echo '$data << EOD'
    ask "SELECT 'Zipf ' || zipf, max(throughput_rps) FILTER (WHERE policy = 'bound'), max(throughput_rps) FILTER (WHERE policy = 'cache_aware'),
      max(throughput_rps) FILTER (WHERE policy = 'least_loaded') FROM e07 WHERE machine = 'p3dn' GROUP BY zipf ORDER BY zipf"
    echo EOD
    cat <<G
set style data histogram
set style histogram clustered gap 1
set yrange [0:*]
set ylabel 'requests/s'
set xlabel 'popularity'
plot \$data using 2:xtic(1) title 'GPU bound' lc rgb '$(colour ideal)', \$data using 3 title 'cache-aware' lc rgb '$(colour distmind)', \
  \$data using 4 title 'least loaded' lc rgb '#fdae6b'
G
  } | draw 07-load-balancing 700 420
}

text() {
  cat <<M
## 7. Load balancing

*Claim.* Cache-aware balancing keeps throughput near the GPU bound; least-loaded balancing, which ignores where models are, does not.

*Ours.* Requests a second under the demand of 2, a shift each second:

M
  table "machine | Zipf | bound | cache-aware | least loaded | cache-aware over least loaded | found resident: cache-aware | least loaded" "
    SELECT machine, zipf, printf('%.1f', max(throughput_rps) FILTER (WHERE policy = 'bound')), printf('%.1f', max(throughput_rps) FILTER (WHERE policy = 'cache_aware')),
      printf('%.1f', max(throughput_rps) FILTER (WHERE policy = 'least_loaded')),
      printf('%+.0f%%', 100 * (max(throughput_rps) FILTER (WHERE policy = 'cache_aware') / max(throughput_rps) FILTER (WHERE policy = 'least_loaded') - 1)),
      printf('%.1f%%', 100.0 * max(CASE WHEN policy = 'cache_aware' THEN 1.0 * found_resident / completed END)),
      printf('%.1f%%', 100.0 * max(CASE WHEN policy = 'least_loaded' THEN 1.0 * found_resident / completed END))
    FROM e07 GROUP BY machine, zipf ORDER BY min(job)"
  echo
  picture 07-load-balancing "throughput by balancing policy"
  local held busy net
  busy=$(ask "SELECT gpu_utilization FROM e07 WHERE machine = 'p3dn' AND zipf = 0.9 AND policy = 'least_loaded'")
  held=$(ask "SELECT gpu_held FROM e07 WHERE machine = 'p3dn' AND zipf = 0.9 AND policy = 'least_loaded'")
  net=$(ask "SELECT net_bytes * 8 / 1e9 / duration_s FROM e07 WHERE machine = 'p3dn' AND zipf = 0.9 AND policy = 'least_loaded'")
  echo "Why: at Zipf 0.9 under least-loaded balancing p3dn's GPUs are held $(percent "$held") of the time and compute $(percent "$busy"): the rest they wait"
  echo "for groups, over memory servers that give $(fixed 0 "$net") of 400 Gbit/s on average and PCIe switches that two GPUs share."
}
