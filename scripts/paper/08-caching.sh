# shellcheck shell=bash
# 8: caching. Throughput of distmind by size of the host cache and time between shifts.

plan() {
  local machine cache shift
  for machine in $machines; do
    for shift in 1 2 5 10 20 40; do
      # shellcheck disable=SC2046 # words
      set -- experiments/paper/08-caching.ini $(machine_options "$machine") --set workload.shift_period_s="$(calc "$shift / 1000")"
      for cache in 0 4.096 8.192 16.384 32.768; do
        job "machine=$machine shift_ms=$shift cache=$cache" "$@" --system distmind --set cluster.host_cache_gb=$cache
      done
    done
    # shellcheck disable=SC2046
    job "machine=$machine shift_ms=1 cache=bound" experiments/paper/08-caching.ini $(machine_options "$machine") --system ideal
  done
}

data() {
  csv 08-caching "SELECT machine, cache AS host_cache_gb, shift_ms, printf('%.3f', throughput_rps) AS throughput_rps, printf('%.3f', latency_ms_mean) AS mean_ms,
    found_resident, found_host, found_remote, printf('%.4f', gpu_utilization) AS gpu_utilization, printf('%.3f', net_bytes / 1e9) AS net_gb FROM e08 ORDER BY job"
}

figure() {
  local cache
  {
    echo '$data << EOD'
    ask "SELECT shift_ms, $(for cache in 0 4.096 8.192 16.384 32.768; do printf 'max(throughput_rps) FILTER (WHERE cache = %s), ' $cache; done)
      (SELECT throughput_rps FROM e08 WHERE machine = 'p3dn' AND cache = 'bound') FROM e08 WHERE machine = 'p3dn' AND cache <> 'bound' GROUP BY shift_ms ORDER BY shift_ms"
    echo EOD
    cat <<G
set logscale x 10
set xtics (1, 2, 5, 10, 20, 40)
set xrange [0.9:44]
set yrange [0:*]
set ylabel 'requests/s'
set xlabel 'time between shifts, ms'
plot \$data using 1:7 with lines lw 2 dt 2 lc rgb '$(colour ideal)' title 'GPU bound', \
  \$data using 1:2 with linespoints lw 2 lc rgb '#c6dbef' title 'no cache', \$data using 1:3 with linespoints lw 2 lc rgb '#9ecae1' title '4.096 GB', \
  \$data using 1:4 with linespoints lw 2 lc rgb '#6baed6' title '8.192 GB', \$data using 1:5 with linespoints lw 2 lc rgb '#2171b5' title '16.384 GB', \
  \$data using 1:6 with linespoints lw 2 lc rgb '#08306b' title '32.768 GB'
G
  } | draw 08-caching 800 450
}

text() {
  cat <<M
## 8. Caching

*Claim.* A host cache of a few gigabytes a server is enough while demand shifts slowly; the faster it shifts, the more a larger cache
helps.

*Ours.* Requests a second on p3dn by host cache of a server (all 128 variants take 30.9 GB) and milliseconds between shifts:

M
  table "ms between shifts | no cache | 4.096 GB | 8.192 GB | 16.384 GB | 32.768 GB | bound" "
    SELECT shift_ms, $(for cache in 0 4.096 8.192 16.384 32.768; do printf "printf('%%.1f', max(throughput_rps) FILTER (WHERE cache = %s)), " $cache; done)
      (SELECT printf('%.1f', throughput_rps) FROM e08 WHERE machine = 'p3dn' AND cache = 'bound') FROM e08 WHERE machine = 'p3dn' AND cache <> 'bound' GROUP BY shift_ms ORDER BY shift_ms"
  echo
  picture 08-caching "throughput by host cache and time between shifts"
  cat <<M
*Verdict.* With 40 ms between shifts 4.096 GB a server give $(share 4.096 40) of the bound and no cache $(share 0 40); with 1 ms they give $(share 4.096 1), no cache $(share 0 1) and a cache
of all models $(share 32.768 1): $(holds "$(rps 32.768 1) - $(rps 0 1) > $(rps 32.768 40) - $(rps 0 40)" && echo "agrees, a larger cache helps the more, the faster demand shifts" || echo "does not agree"). What stays missing with everything
cached is PCIe: $(percent "$(ask "SELECT 1.0 * found_host / completed FROM e08 WHERE machine = 'p3dn' AND cache = 32.768 AND shift_ms = 1")") of the requests upload their model over links that two GPUs share ($(percent "$(ask "SELECT gpu_held - gpu_utilization FROM e08 WHERE machine = 'p3dn' AND cache = 32.768 AND shift_ms = 1")") of GPU time is spent waiting for groups).

*Today's machines*, share of the bound with no cache, 4.096 and 32.768 GB:

M
  table "machine | 1 ms: no cache | 4.096 GB | 32.768 GB | 5 ms: no cache | 4.096 GB | 32.768 GB | 40 ms: no cache | 4.096 GB | 32.768 GB" "
    SELECT machine$(for shift in 1 5 40; do for cache in 0 4.096 32.768; do
      printf ", printf('%%.1f%%%%', 100 * max(throughput_rps) FILTER (WHERE cache = %s AND shift_ms = %s) / max(throughput_rps) FILTER (WHERE cache = 'bound'))" $cache $shift; done; done)
    FROM e08 WHERE machine <> 'p3dn' GROUP BY machine ORDER BY min(job)"
}

rps() { ask "SELECT throughput_rps FROM e08 WHERE machine = 'p3dn' AND cache = $1 AND shift_ms = $2"; } # CACHE SHIFT_MS
share() { percent "$(calc "$(rps "$1" "$2") / $(ask "SELECT throughput_rps FROM e08 WHERE machine = 'p3dn' AND cache = 'bound'")")"; }
