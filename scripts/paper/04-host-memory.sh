# shellcheck shell=bash
# 4: host memory needed as servers grow from 1 to 100. Computed, not run: gigabytes a server times servers.
#
#   distmind                4 GB a server (host cache), as the paper; the memory pool apart: all variants once, whatever the servers
#   pipeswitch              32 GB (all models of the run, more or less) or 1 TB (as many as a large deployment has) a server
#
# The formula is held to the program's own accounting at 1, 2 and 4 servers: host_memory_bytes, memory_pool_bytes of real runs.

plan() {
  local servers
  for servers in 1 2 4; do
    job "servers=$servers" experiments/paper/02-end-to-end.ini --system distmind,pipeswitch --set cluster.gpu_servers=$servers \
      --set cluster.host_cache_gb=4 --set experiment.warmup_s=0 --set workload.duration_s=0.1
  done
}

data() {
  local pool
  pool=$(ask "SELECT max(memory_pool_bytes) / 1e9 FROM e04 WHERE system = 'distmind'")
  ask "CREATE TABLE host_memory AS WITH RECURSIVE n(servers) AS (SELECT 1 UNION ALL SELECT servers + 1 FROM n WHERE servers < 100)
    SELECT servers, 4.0 * servers AS distmind, 4.0 * servers + $pool AS distmind_pool, 32.0 * servers AS pipeswitch_32, 1000.0 * servers AS pipeswitch_1000 FROM n"
  csv 04-host-memory "SELECT servers, printf('%.1f', distmind) AS distmind_gb, printf('%.1f', distmind_pool) AS distmind_with_pool_gb, printf('%.1f', pipeswitch_32) AS pipeswitch_32gb_gb,
    printf('%.1f', pipeswitch_1000) AS pipeswitch_1tb_gb FROM host_memory ORDER BY servers"
}

figure() {
  {
    echo '$data << EOD'
    ask "SELECT * FROM host_memory WHERE servers IN (1, 2, 5) OR servers % 10 = 0 ORDER BY servers"
    cat <<G
EOD
set logscale y 10
set format y '10^{%L}'
set yrange [1:1000000]
set xrange [0:102]
set ylabel 'host memory, GB'
set xlabel 'GPU servers'
plot \$data using 1:5 with linespoints lw 2 pt 7 ps 0.6 lc rgb '#6a51a3' title 'pipeswitch, 1 TB a server', \
  \$data using 1:4 with linespoints lw 2 pt 7 ps 0.6 lc rgb '#9e9ac8' title 'pipeswitch, 32 GB', \
  \$data using 1:3 with linespoints lw 2 pt 7 ps 0.6 lc rgb '$(colour distmind-remote)' title 'distmind, pool counted', \
  \$data using 1:2 with linespoints lw 2 pt 7 ps 0.6 lc rgb '$(colour distmind)' title 'distmind, 4 GB'
G
  } | draw 04-host-memory 800 420
}

text() {
  cat <<M
## 4. Host memory

*Claim.* Every PipeSwitch server holds all models in its own memory; distmind's hold a small cache, and the models are in the pool once.

*Computed*, GB: 4 GB a server for distmind, and with the memory pool (128 variants of ResNet-152, once); 32 GB and 1 TB a server for pipeswitch.

M
  table "servers | distmind | with the pool | pipeswitch, 32 GB | pipeswitch, 1 TB | pipeswitch 32 GB over distmind with the pool" "
    SELECT servers, printf('%.0f', distmind), printf('%.1f', distmind_pool), printf('%.0f', pipeswitch_32), printf('%.0f', pipeswitch_1000), printf('%.1f x', pipeswitch_32 / distmind_pool)
    FROM host_memory WHERE servers IN (1, 2, 4, 10, 32, 100) ORDER BY servers"
  echo
  picture 04-host-memory "host memory as servers grow"
  echo "*Against the program's own accounting* of 128 variants on 1, 2 and 4 servers (\`host_memory_bytes\`, \`memory_pool_bytes\`):"
  echo
  table "servers | distmind, GB | of it a server: cache | staging of 8 GPUs | pool, GB | pipeswitch, GB | a server" "
    SELECT d.servers, printf('%.1f', d.host_memory_bytes / 1e9), printf('%.1f', 4), printf('%.1f', d.host_memory_bytes / 1e9 / d.servers - 4), printf('%.1f', d.memory_pool_bytes / 1e9),
      printf('%.1f', p.host_memory_bytes / 1e9), printf('%.1f', p.host_memory_bytes / 1e9 / p.servers)
    FROM e04 d JOIN e04 p ON p.job = d.job AND p.system = 'pipeswitch' WHERE d.system = 'distmind' ORDER BY d.servers"
  echo
  echo "*Verdict.* $(ask "SELECT CASE WHEN max(pipeswitch_32 > distmind_pool) FILTER (WHERE servers >= 2) = 1 AND min(pipeswitch_32 > distmind_pool) FILTER (WHERE servers >= 2) = 1
      THEN 'From 2 servers on distmind needs less even with the pool counted' ELSE 'distmind needs less with the pool counted only beyond some number of servers' END FROM host_memory"); at 1 server it
$(ask "SELECT CASE WHEN pipeswitch_32 < distmind_pool THEN 'needs more' ELSE 'needs less' END FROM host_memory WHERE servers = 1"). Beside the paper's 4 GB the program counts staging, one model a GPU, through which uncached loads stream."
}
