# shellcheck shell=bash
# 9: sharding. When each of 8 groups of ResNet-152 arrives, by sharding and number of clients that pull at once from 4 memory servers.

plan() {
  local machine sharding clients order
  for machine in $machines; do
    for sharding in per-app horizontal vertical hybrid; do
      case $sharding in horizontal | hybrid) order=sequential ;; *) order=parallel ;; esac
      for clients in 1 2 3 4 5 6 7 8; do
        # shellcheck disable=SC2046 # words
        job "machine=$machine sharding=$sharding clients=$clients" experiments/paper/09-sharding.ini $(machine_options "$machine") \
          --set cluster.gpu_servers=$clients --set workload.outstanding=$clients --set pipeline.sharding=$sharding --set pipeline.order=$order
      done
    done
  done
}

data() {
  # Arrivals since the requests' loads began, mean and last over the clients.
  ask "CREATE VIEW arrival AS SELECT e.machine AS machine, e.sharding AS sharding, e.clients AS clients, d.part AS part, d.gpu AS gpu, d.time_ns / 1e6 AS ms
    FROM e09 e JOIN decision d ON d.job = e.job AND d.run = e.id AND d.kind = 'net'"
  csv 09-sharding "SELECT machine, sharding, clients, part AS \"group\", printf('%.3f', avg(ms)) AS mean_arrival_ms, printf('%.3f', max(ms)) AS last_arrival_ms,
    count(*) AS arrivals FROM arrival GROUP BY machine, sharding, clients, part ORDER BY machine = 'p3dn' DESC, machine, sharding, clients, part"
}

# Lines that lie on one another stay visible: wide below, thin above.
shard_line() { case $1 in per-app) echo 'lw 7 pt 7 ps 1.1' ;; horizontal) echo 'lw 4 pt 5 ps 0.8' ;; vertical) echo 'lw 2 pt 9 ps 0.8' ;; hybrid) echo 'lw 1.5 pt 7 ps 0.4' ;; esac }
shard_colour() { case $1 in per-app) echo '#9467bd' ;; horizontal) echo '#ff7f0e' ;; vertical) echo '#2ca02c' ;; hybrid) echo '#1f77b4' ;; esac }

figure() {
  local sharding clients
  {
    for clients in 1 5 8; do
      for sharding in per-app horizontal vertical hybrid; do
        echo "\$${sharding/-/_}_$clients << EOD"
        ask "SELECT part, avg(ms) FROM arrival WHERE machine = 'p3dn' AND sharding = '$sharding' AND clients = $clients GROUP BY part ORDER BY part"
        echo EOD
      done
    done
    cat <<'G'
set multiplot layout 1,3
set yrange [0:*]
set xrange [-0.3:7.3]
set xtics 1
set xlabel 'group'
set ylabel 'mean arrival, ms'
set key inside bottom right vertical opaque
G
    for clients in 1 5 8; do
      echo "set title '$clients $([ $clients = 1 ] && echo client || echo clients)'"
      printf 'plot '
      for sharding in per-app horizontal vertical hybrid; do
        printf "%s\$%s using 1:2 with linespoints %s lc rgb '%s' %s" "$([ $sharding = per-app ] || echo ', ')" "${sharding/-/_}_$clients" "$(shard_line $sharding)" "$(shard_colour $sharding)" \
          "$([ $clients = 1 ] && echo "title '$sharding'" || echo notitle)"
      done
      echo
    done
    echo 'unset multiplot'
  } | draw 09-sharding 1100 420
}

text() {
  cat <<M
## 9. Sharding

*Claim.* Cutting each group over all memory servers (hybrid) makes the first group arrive early and uses all links; whole models on one
server (per-app) are bound by one server's link, horizontal sharding fetches from one server at a time, vertical sharding brings the
first group no earlier than it can.

*Ours.* Arrival of the first and the last of 8 groups of ResNet-152 on p3dn, ms, mean over the clients, when 1, 4, 5 and 8 clients pull at once
(horizontal and hybrid fetch group after group); "worst" is the last group of the client served last.

M
  arrivals "machine = 'p3dn'"
  echo
  picture 09-sharding "arrival of groups by sharding"
  cat <<M
*Verdict.* With 8 clients hybrid's first group arrives $(ratio vertical hybrid 8 0 avg) times as early as vertical's and its last $(ratio horizontal hybrid 8 7 avg) times as early as
horizontal's, which waits for one server after the other: $(holds "$(ratio vertical hybrid 8 0 avg) > 1.05 && $(ratio horizontal hybrid 8 7 avg) > 1.05" && echo "agrees" || echo "does not agree"). per-app equals hybrid where clients spread evenly over the
servers, as with 4 or 8 clients here and models placed in turn, and one client is bound by its own link; with 5 one server has two clients, and the worst
client's last group takes $(ratio per-app hybrid 5 7 max) times as long as hybrid's: $(holds "$(ratio per-app hybrid 5 7 max) > 1.05" && echo "agrees" || echo "differs from the claim, as the GPU server's own link is the bound").

*Today's machines*, ms:

M
  arrivals "machine <> 'p3dn'" "machine | " "machine, "
  cat <<M

$(ask "SELECT group_concat(machine || ' hybrid''s last group with 8 clients arrives ' || printf('%.1f times as early as horizontal''s and its first %.1f times as early as vertical''s', h / y, v / f), '; on ')
  FROM (SELECT machine, avg(ms) FILTER (WHERE sharding = 'horizontal' AND part = 7) AS h, avg(ms) FILTER (WHERE sharding = 'hybrid' AND part = 7) AS y,
    avg(ms) FILTER (WHERE sharding = 'vertical' AND part = 0) AS v, avg(ms) FILTER (WHERE sharding = 'hybrid' AND part = 0) AS f
    FROM arrival WHERE machine <> 'p3dn' AND clients = 8 GROUP BY machine ORDER BY machine)" | sed 's/^/On /').
M
}

# arrivals WHERE [HEADER COLUMN]: first and last group by sharding.
arrivals() {
  table "${2:-}sharding | 1 client: first | last | 4: first | last | worst | 5: first | last | worst | 8: first | last | worst" "
    SELECT ${3:-}sharding, $(at 1 0), $(at 1 7)$(for c in 4 5 8; do echo ", $(at $c 0), $(at $c 7), printf('%.1f', max(ms) FILTER (WHERE clients = $c AND part = 7))"; done)
    FROM arrival WHERE $1 GROUP BY machine, sharding ORDER BY machine, CASE sharding WHEN 'per-app' THEN 1 WHEN 'horizontal' THEN 2 WHEN 'vertical' THEN 3 ELSE 4 END"
}

at() { echo "printf('%.1f', avg(ms) FILTER (WHERE clients = $1 AND part = $2))"; } # CLIENTS GROUP
ratio() { # SHARDING OVER CLIENTS GROUP avg|max
  ask "SELECT printf('%.1f', $5(ms) FILTER (WHERE sharding = '$1') / $5(ms) FILTER (WHERE sharding = '$2')) FROM arrival WHERE machine = 'p3dn' AND clients = $3 AND part = $4"
}
