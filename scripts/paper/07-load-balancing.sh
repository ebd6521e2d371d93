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
      printf('%+.1f%%', 100 * (max(throughput_rps) FILTER (WHERE policy = 'cache_aware') / max(throughput_rps) FILTER (WHERE policy = 'least_loaded') - 1)),
      printf('%.1f%%', 100.0 * max(CASE WHEN policy = 'cache_aware' THEN 1.0 * found_resident / completed END)),
      printf('%.1f%%', 100.0 * max(CASE WHEN policy = 'least_loaded' THEN 1.0 * found_resident / completed END))
    FROM e07 GROUP BY machine, zipf ORDER BY min(job)"
  echo
  picture 07-load-balancing "throughput by balancing policy"
  local near
  near=$(ask "SELECT min(c.throughput_rps / b.throughput_rps) FROM e07 c JOIN e07 b USING (machine, zipf) WHERE c.policy = 'cache_aware' AND b.policy = 'bound'")
  cat <<M
*Verdict.* Cache-aware balancing has at least $(percent "$near") of the bound on every machine: $(near_all "$near"). $(where_less)
M
}

# Machines where least-loaded balancing is more than 1% under cache-aware, with why, and those where it is not.
where_less() {
  local behind level
  behind=$(ask "SELECT group_concat(DISTINCT c.machine) FROM e07 c JOIN e07 l USING (machine, zipf) WHERE c.policy = 'cache_aware' AND l.policy = 'least_loaded' AND l.throughput_rps < 0.99 * c.throughput_rps")
  level=$(ask "SELECT group_concat(machine, ' and ') FROM (SELECT c.machine AS machine FROM e07 c JOIN e07 l USING (machine, zipf) WHERE c.policy = 'cache_aware' AND l.policy = 'least_loaded'
    GROUP BY 1 HAVING min(l.throughput_rps / c.throughput_rps) >= 0.99 ORDER BY min(c.job))")
  if [[ $behind == *p3dn* ]]; then
    echo "Least-loaded balancing falls behind on p3dn: at Zipf 0.9 its GPUs are held $(percent "$(of gpu_held)") of the time and compute $(percent "$(of gpu_utilization)"); the rest"
    echo "they wait for groups, from memory servers that send $(fixed 0 "$(of 'net_bytes * 8 / 1e9 / duration_s')") of $(calc "4 * $(hardware_key c5n memory_nic_gbit_s)") Gbit/s on average and over PCIe links that two GPUs share."
  fi
  if [ -n "$level" ]; then
    echo "On $level it is level: one client a GPU hides the difference, as the GPU that has just become free, the least loaded, is the one that served this client before. Where loads"
    echo "delay one another that order is lost."
  fi
}

of() { ask "SELECT $1 FROM e07 WHERE machine = 'p3dn' AND zipf = 0.9 AND policy = 'least_loaded'"; }
