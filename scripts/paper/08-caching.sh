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
}
