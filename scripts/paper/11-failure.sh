# shellcheck shell=bash
# 11: beyond the paper: a memory server fails in mid-run, with 1 and 2 replicas.

plan() {
  job "replicas=1" experiments/paper/11-failure.ini --set pipeline.replicas=1
  job "replicas=2" experiments/paper/11-failure.ini --set pipeline.replicas=2
}

data() {
  ask "CREATE TABLE failure AS SELECT replicas, (u.time_ns - 1) / 1000000000 AS second, sum(u.completed) AS completed, sum(u.failed) AS failed, max(u.queue) AS queue,
    avg(u.net_bytes_s) * 8 / 1e9 AS net_gbit_s FROM e11 e JOIN usage u ON u.job = e.job AND u.run = e.id GROUP BY 1, 2"
  csv 11-failure "SELECT replicas, second, completed, failed, queue, printf('%.2f', net_gbit_s) AS net_gbit_s FROM failure WHERE second BETWEEN 30 AND 89 ORDER BY 1, 2"
}

figure() {
  local replicas
  {
    for replicas in 1 2; do
      echo "\$r$replicas << EOD"
      ask "SELECT second, completed, failed, queue FROM failure WHERE replicas = $replicas AND second BETWEEN 30 AND 89 ORDER BY second"
      echo EOD
    done
    cat <<G
set yrange [0:*]
set xrange [30:90]
set ylabel 'requests/s'
set xlabel 'time, s; at 60 s one of four memory servers is lost'
set arrow from 60, graph 0 to 60, graph 1 nohead dt 2 lc rgb '#d62728'
plot \$r2 using 1:2 with lines lw 2 lc rgb '$(colour distmind)' title 'completed, 2 replicas', \$r1 using 1:2 with lines lw 2 lc rgb '$(colour distmind-remote)' title 'completed, 1 replica', \
  \$r1 using 1:3 with lines lw 2 lc rgb '#d62728' title 'failed, 1 replica', \$r2 using 1:3 with lines lw 2 lc rgb '#000000' title 'failed, 2 replicas'
G
  } | draw 11-failure 900 420
}

text() {
  cat <<M
## 11. A memory server fails (beyond the paper)

Poisson arrivals on the cluster of 2, one model a GPU; at 60 s one of four memory servers is lost.

M
  table "replicas | requests | completed | failed | completed/s before | after | p99 ms | SLO | pool at the end, GB" "
    SELECT e.replicas, requests, e.completed, e.failed, printf('%.1f', (SELECT avg(completed) FROM failure f WHERE f.replicas = e.replicas AND second BETWEEN 30 AND 59)),
      printf('%.1f', (SELECT avg(completed) FROM failure f WHERE f.replicas = e.replicas AND second BETWEEN 61 AND 89)), printf('%.1f', latency_ms_p99),
      printf('%.1f%%', 100 * slo_attainment), printf('%.1f', memory_pool_bytes / 1e9) FROM e11 e ORDER BY e.replicas"
  echo
  picture 11-failure "requests completed and failed around the loss of a memory server"
  local one two worst
  one=$(ask "SELECT failed FROM e11 WHERE replicas = 1")
  two=$(ask "SELECT failed FROM e11 WHERE replicas = 2")
  worst=$(ask "SELECT max(queue) FROM failure WHERE replicas = 2 AND second BETWEEN 60 AND 65")
  echo "With one replica every model has a shard on the lost server, so what is in no host cache cannot be loaded any more: $one requests fail at once, with that"
  echo "reason. With two, $(if [ "$two" = 0 ]; then echo "none fails"; else echo "$two fail"; fi): up to $worst requests wait while the loss is noticed (three heartbeats of 100 ms) and loads go on from the copies."
}
