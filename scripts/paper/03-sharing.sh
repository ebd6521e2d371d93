# shellcheck shell=bash
# 3: sharing inference and training. Time series of both throughputs and of GPU utilization while demand steps up and down.

list="distmind mps ray"

plan() {
  local machine file=experiments/paper/03-sharing.ini
  for machine in $machines; do
    # shellcheck disable=SC2046 # words
    set -- $file $(machine_options "$machine") $(steps "$machine")
    job "machine=$machine kind=shared" "$@" --system distmind,mps,ray
    # The bounds: all GPUs serve; all GPUs train; the demand's own, if nothing trains; each system's, if nothing trains.
    job "machine=$machine kind=serve" "$@" --system ideal --set workload.active=all --set training.model=none
    job "machine=$machine kind=train" "$@" --system distmind --set workload.active=8:0
    job "machine=$machine kind=demand" "$@" --system ideal,distmind,mps,ray --set training.model=none
  done
}

# A quarter, a half and all of the machine's slots; its training step: 106 ms on an H200, times the ratio of warm latencies.
steps() {
  case $1 in
    g6) echo --set "workload.active=8:4;8:8;8:16" --set training.batch_ms=516 ;;
    h200) echo --set training.batch_ms=106 ;;
  esac
}

data() {
  # Utilization: inference by the bound of serving alone, plus training by the bound of training alone.
  ask "CREATE VIEW sharing_bound AS SELECT s.machine AS machine, s.throughput_rps AS serve, t.training_steps / t.window_s AS train
    FROM e03 s JOIN e03 t USING (machine) WHERE s.kind = 'serve' AND t.kind = 'train'"
  ask "CREATE TABLE sharing AS SELECT e.machine AS machine, e.system AS system, e.kind AS kind, (u.time_ns - 1) / 1000000000 AS second,
      1.0 * sum(u.completed) AS inference, 1.0 * sum(u.training_steps) AS training, avg(u.gpus_inference) AS gpus_inference, avg(u.gpus_training) AS gpus_training
    FROM e03 e JOIN usage u ON u.job = e.job AND u.run = e.id WHERE e.kind IN ('shared', 'demand') GROUP BY 1, 2, 3, 4"
  csv 03-sharing "SELECT machine, system, second, printf('%.0f', inference) AS inference_per_s, printf('%.0f', training) AS training_steps_per_s,
    printf('%.4f', inference / serve) AS inference_utilization, printf('%.4f', training / train) AS training_utilization,
    printf('%.2f', gpus_inference) AS gpus_inference, printf('%.2f', gpus_training) AS gpus_training
    FROM sharing JOIN sharing_bound USING (machine) WHERE kind = 'shared' AND second BETWEEN 24 AND 95 ORDER BY machine = 'p3dn' DESC, machine, system, second"
}

figure() {
  local system
  {
    for system in $list; do
      echo "\$$system << EOD"
      ask "SELECT second / 4 * 4 + 2 AS bin, 100 * avg(inference / serve), 100 * avg(training / train) FROM sharing JOIN sharing_bound USING (machine)
        WHERE machine = 'p3dn' AND kind = 'shared' AND system = '$system' AND second BETWEEN 24 AND 71 GROUP BY bin ORDER BY bin"
      echo EOD
    done
    echo '$demand << EOD'
    ask "SELECT second / 4 * 4 AS bin, 100 * avg(inference / serve) FROM sharing JOIN sharing_bound USING (machine)
      WHERE machine = 'p3dn' AND kind = 'demand' AND system = 'ideal' AND second BETWEEN 24 AND 75 GROUP BY bin ORDER BY bin"
    cat <<G
EOD
set multiplot layout 3,1
set yrange [0:115]
set xrange [24:72]
set xtics 8
set ytics 25
set ylabel '% of bound, means of 4 s'
set style fill solid noborder
G
    for system in $list; do
      echo "set title '$system' offset 0,-0.6"
      [ "$system" = ray ] && echo "set xlabel 'time, s'"
      echo "plot \$$system using 1:(\$2+\$3) with boxes lc rgb '#f4a6a6' $([ "$system" = distmind ] && echo "title 'training'" || echo notitle), \
        \$$system using 1:2 with boxes lc rgb '$(colour "$system")' $([ "$system" = distmind ] && echo "title 'inference'" || echo notitle), \
        \$demand using 1:2 with steps lw 2 lc rgb '#000000' $([ "$system" = distmind ] && echo "title 'inference of ideal'" || echo notitle)"
      echo 'unset key'
    done
    echo 'unset multiplot'
  } | draw 03-sharing 900 750
}

text() {
  cat <<M
## 3. Sharing inference and training

*Claim.* As inference needs a quarter, a half and all of the GPUs, distmind gives the rest to training within milliseconds: inference
follows demand and total GPU utilization stays near 100%; MPS and Ray lose on both.

*Ours.* Means over three rounds. Utilization is each throughput by its bound (all GPUs serve; all GPUs train), added up, as the
reference system's scripts do. Beside it inference as part of ideal's under the same demand, and what each system serves when nothing
trains. A training step is $(ask "SELECT printf('%.0f', 1000.0 * 32 * window_s / training_steps) FROM e03 WHERE machine = 'p3dn' AND kind = 'train'") ms on p3dn (estimated from an H200's).

M
  table "machine | system | inference/s | of ideal's | without training | training steps/s | utilization: inference | training | both" "
    SELECT e.machine, e.system, printf('%.1f', e.throughput_rps), printf('%.1f%%', 100 * e.throughput_rps / i.throughput_rps), printf('%.1f%%', 100 * n.throughput_rps / i.throughput_rps),
      printf('%.1f', e.training_steps / e.window_s), printf('%.1f%%', 100 * e.throughput_rps / b.serve), printf('%.1f%%', 100 * e.training_steps / e.window_s / b.train),
      printf('%.1f%%', 100 * (e.throughput_rps / b.serve + e.training_steps / e.window_s / b.train))
    FROM (SELECT * FROM e03 WHERE kind = 'shared') e JOIN sharing_bound b USING (machine) JOIN e03 i ON i.machine = e.machine AND i.kind = 'demand' AND i.system = 'ideal'
    JOIN e03 n ON n.machine = e.machine AND n.kind = 'demand' AND n.system = e.system ORDER BY e.job, e.id"
  echo
  echo "The bounds: $(ask "SELECT group_concat(machine || printf(' serves at most %.1f requests/s and trains at most %.1f steps/s', serve, train), '; ') FROM sharing_bound")."
  echo
  picture 03-sharing "utilization over time: inference and training"
  local both
  both=$(ask "SELECT e.throughput_rps / b.serve + e.training_steps / e.window_s / b.train FROM e03 e JOIN sharing_bound b USING (machine) WHERE machine = 'p3dn' AND kind = 'shared' AND system = 'distmind'")
  cat <<M
*Verdict.* On p3dn distmind's utilization is $(percent "$both"): $(near_all "$both"). $(holds "$both < 0.995" &&
    echo "What is missing are training steps given up when inference takes a GPU back ($(lost distmind) of its training time), and the trainer's state on its way over PCIe.")
mps trains where no process has a request; its trainer gives way at the end of a step only, and takes its measured share
(\`mps_train_share\`) of the GPU from the requests beside it until then: $(kept mps) of the inference that it serves alone is kept. $(ask "SELECT CASE WHEN m.training_steps > d.training_steps
    AND m.throughput_rps < d.throughput_rps THEN 'It trains more than distmind and serves less, as it does alone: where a request waits behind another at its process, some other GPU has none, and trains.'
    ELSE 'It trains ' || CASE WHEN m.training_steps > d.training_steps THEN 'more' ELSE 'no more' END || ' than distmind and serves ' || CASE WHEN m.throughput_rps < d.throughput_rps THEN 'less.' ELSE 'no less.' END END
    FROM e03 m JOIN e03 d ON d.machine = m.machine AND d.kind = 'shared' AND d.system = 'distmind' WHERE m.machine = 'p3dn' AND m.kind = 'shared' AND m.system = 'mps'")
ray's trainer gives way at the end of a step, too, and a request that
needs its GPU waits for it (p99.9 $(ask "SELECT printf('%.0f', r.latency_ms_p999) FROM e03 r WHERE machine = 'p3dn' AND kind = 'shared' AND system = 'ray'") ms; distmind's $(ask "SELECT printf('%.0f', r.latency_ms_p999) FROM e03 r WHERE machine = 'p3dn' AND kind = 'shared' AND system = 'distmind'")), and its replicas swap stop and go.
M
}

# kept SYSTEM: inference beside training, of what it serves when nothing trains.
kept() {
  ask "SELECT printf('%.1f%%', 100 * e.throughput_rps / n.throughput_rps) FROM e03 e JOIN e03 n ON n.machine = e.machine AND n.kind = 'demand' AND n.system = e.system
    WHERE e.machine = 'p3dn' AND e.kind = 'shared' AND e.system = '$1'"
}

# lost SYSTEM: share of training time without a finished step.
lost() {
  ask "SELECT printf('%.1f%%', 100 * (1 - e.training_steps / e.window_s / b.train / (e.gpu_training / t.gpu_training))) FROM e03 e JOIN sharing_bound b USING (machine)
    JOIN e03 t ON t.machine = e.machine AND t.kind = 'train' WHERE e.machine = 'p3dn' AND e.kind = 'shared' AND e.system = '$1'"
}
