# shellcheck shell=bash
# The headline of results/PAPER.md, and how it depends on what the baselines cost.
#
# Sensitivity: each cost of the baselines times 0, 0.5, 1, 2, all else as it is; the settings of 2 (throughput) and 1 (latency).

costs="process-start pageable-copy per-tensor proxy-hop process-memory sharing-gain"
factors="0 0.5 2" # 1 is the run itself

gpu_of() { hardware_key "$1" gpu; }

# profiles MACHINE FACTOR COST KEYS: profiles of which those keys, parts of that cost, are FACTOR times as large.
profiles() {
  local folder file
  folder=$work/profiles/$(gpu_of "$1")-$3-$2
  if [ ! -d "$folder" ]; then
    mkdir -p "$folder"
    for file in experiments/profiles/"$(gpu_of "$1")"/*.csv; do
      awk -v f="$2" -v keys="^# ($4): " '$0 ~ keys { printf "%s %s %.6g\n", $1, $2, f * $3; next } { print }' "$file" >"$folder/$(basename "$file")"
    done
  fi
  echo "$folder"
}

# Which systems a cost acts on.
acts_on() { case $1 in process-start | process-memory | sharing-gain) echo mps ;; per-tensor | proxy-hop) echo ray ;; *) echo mps,ray ;; esac }

# cost_options COST FACTOR MACHINE
cost_options() {
  local to_gpu to_host
  scaled() { calc "$(hardware_key "$3" "$1") * $2"; }
  case $1 in
    process-start) echo --set cluster.mps_process_start_s="$(scaled mps_process_start_s "$2" "$3")" --set models.profile_dir="$(profiles "$3" "$2" "$1" 'unpickle_ms|first_inference_ms')" ;;
    pageable-copy) # a cost of 0 is a rate of 0: infinitely fast
      to_gpu=$(hardware_key "$3" pageable_gbyte_s) to_host=$(hardware_key "$3" pageable_to_host_gbyte_s)
      echo --set cluster.pageable_gbyte_s="$(calc "$2 > 0 ? $to_gpu / ($2 > 0 ? $2 : 1) : 0")" --set cluster.pageable_to_host_gbyte_s="$(calc "$2 > 0 ? $to_host / ($2 > 0 ? $2 : 1) : 0")"
      ;;
    per-tensor) echo --set cluster.ray_tensor_us="$(scaled ray_tensor_us "$2" "$3")" --set models.profile_dir="$(profiles "$3" "$2" "$1" swap_extra_ms)" ;;
    proxy-hop) echo --set cluster.ray_proxy_us="$(scaled ray_proxy_us "$2" "$3")" ;;
    process-memory) echo --set cluster.mps_process_gb="$(scaled mps_process_gb "$2" "$3")" ;;
    sharing-gain) # what more processes than one gain: total speed 1 + FACTOR x (speed - 1)
      echo --set "cluster.mps_speedup=$(hardware_key "$3" mps_speedup | awk -v RS=';' -v f="$2" '{ printf("%s%.4g", (NR > 1 ? ";" : ""), 1 + f * ($1 - 1)) }')"
      ;;
  esac
}

plan() {
  local machine cost factor setting model
  for machine in p3dn h200; do
    for cost in $costs; do
      for factor in $factors; do
        for setting in 0:1 0.9:1 0.99:1 0.9:0.5 0.9:0.1; do
          # shellcheck disable=SC2046 # words
          set -- experiments/paper/02-end-to-end.ini $(machine_options "$machine") $(cost_options "$cost" "$factor" "$machine") \
            --set workload.zipf=${setting%:*} --set workload.shift_period_s=${setting#*:}
          job "machine=$machine cost=$cost factor=$factor what=throughput zipf=${setting%:*} shift=${setting#*:} start=warm" "$@" --system "$(acts_on "$cost")"
          [[ $(acts_on "$cost") != *mps* ]] ||
            job "machine=$machine cost=$cost factor=$factor what=throughput zipf=${setting%:*} shift=${setting#*:} start=cold" "$@" --system mps --set experiment.initial=cold
          [[ $(acts_on "$cost") != *ray* ]] ||
            job "machine=$machine cost=$cost factor=$factor what=throughput zipf=${setting%:*} shift=${setting#*:} start=multiplexed" "$@" --system ray --set balancing.policy=multiplexed
        done
        for model in $models; do
          # shellcheck disable=SC2046
          job "machine=$machine cost=$cost factor=$factor what=latency model=$model start=warm" \
            "$(with_model experiments/paper/01-latency.ini "$model" "$(variants "$model")")" $(machine_options "$machine") $(cost_options "$cost" "$factor" "$machine") \
            --system "$(acts_on "$cost")"
        done
      done
    done
  done
}

variants() { case $1 in bert_base | gpt2) echo 64 ;; *) echo 128 ;; esac }

data() {
  # distmind's gain in each setting over each baseline, as it is.
  ask "CREATE VIEW gain AS SELECT d.machine AS machine, d.zipf AS zipf, d.shift AS shift, b.name AS name, d.throughput_rps / b.throughput_rps - 1 AS gain,
      1 - d.latency_ms_mean / b.latency_ms_mean AS mean_cut, 1 - d.latency_ms_p99 / b.latency_ms_p99 AS p99_cut
    FROM end_to_end d JOIN end_to_end b USING (machine, zipf, shift) WHERE d.name = 'distmind' AND b.name IN ('mps', 'mps-cold', 'ray', 'ray-multiplexed')"
  ask "CREATE VIEW cut AS SELECT d.machine AS machine, d.model AS model, b.system AS name, 1 - d.latency_ms_mean / b.latency_ms_mean AS mean_cut
    FROM e01 d JOIN e01 b USING (machine, model) WHERE d.kind = 'all' AND d.system = 'distmind' AND b.kind = 'all' AND b.system IN ('mps', 'ray')"
  # The largest of each baseline by seed; the runs themselves are seed 1.
  ask "CREATE VIEW seed_gain AS SELECT machine, draw, name, max(gain) AS gain FROM (
      SELECT b.machine AS machine, b.draw AS draw, CASE b.start WHEN 'cold' THEN 'mps-cold' WHEN 'multiplexed' THEN 'ray-multiplexed' ELSE b.system END AS name, d.throughput_rps / b.throughput_rps - 1 AS gain
      FROM e02 b JOIN e02 d USING (machine, zipf, shift, draw) WHERE b.kind = 'seed' AND d.kind = 'seed' AND d.system = 'distmind' AND b.system <> 'distmind'
      UNION ALL SELECT machine, 1, name, gain FROM gain) GROUP BY 1, 2, 3"
  csv 00-seeds "SELECT machine, draw AS seed, name AS baseline, printf('%.4f', gain) AS largest_throughput_gain FROM seed_gain ORDER BY machine = 'p3dn' DESC, machine, draw, name"
  # And over mps with shorter queues at its processes.
  ask "CREATE VIEW queue_gain AS
    SELECT b.machine AS machine, b.zipf AS zipf, b.shift AS shift, b.queue AS queue, b.start AS start, d.throughput_rps / b.throughput_rps - 1 AS gain
      FROM e02 b JOIN end_to_end d USING (machine, zipf, shift) WHERE b.kind = 'queue' AND d.name = 'distmind'
    UNION ALL SELECT machine, zipf, shift, $(hardware_key p3dn mps_queue_max), CASE name WHEN 'mps' THEN 'warm' ELSE 'cold' END, gain FROM gain
      WHERE name IN ('mps', 'mps-cold') AND machine IN (SELECT machine FROM e02 WHERE kind = 'queue')"
  csv 00-queue "SELECT machine, queue AS mps_queue_max, start, zipf, shift AS shift_s, printf('%.4f', gain) AS throughput_gain
    FROM queue_gain ORDER BY machine = 'p3dn' DESC, queue, start DESC, zipf, shift"
  # The largest of each by cost and factor; factor 1 is the run as it is, and what a cost does not act on stays.
  ask "CREATE TABLE sensitivity AS
    WITH one AS (
      SELECT machine, cost, factor, CASE start WHEN 'cold' THEN 'mps-cold' WHEN 'multiplexed' THEN 'ray-multiplexed' ELSE system END AS name,
        (SELECT throughput_rps FROM end_to_end d WHERE d.machine = e00.machine AND d.zipf = e00.zipf AND d.shift = e00.shift AND d.name = 'distmind') / throughput_rps - 1 AS gain, NULL AS mean_cut
        FROM e00 WHERE what = 'throughput'
      UNION ALL SELECT machine, cost, factor, system, NULL,
        1 - (SELECT latency_ms_mean FROM e01 d WHERE d.machine = e00.machine AND d.model = e00.model AND d.kind = 'all' AND d.system = 'distmind') / latency_ms_mean
        FROM e00 WHERE what = 'latency')
    SELECT machine, cost, factor, name, max(gain) AS gain, max(mean_cut) AS mean_cut FROM one GROUP BY 1, 2, 3, 4"
  ask "INSERT INTO sensitivity SELECT DISTINCT machine, cost, 1, name, (SELECT max(gain) FROM gain g WHERE g.machine = s.machine AND g.name = s.name),
    (SELECT max(mean_cut) FROM cut c WHERE c.machine = s.machine AND c.name = s.name) FROM sensitivity s"
  csv 00-sensitivity "SELECT machine, cost, factor, name AS baseline, printf('%.4f', gain) AS largest_throughput_gain, CASE WHEN mean_cut IS NULL THEN '' ELSE printf('%.4f', mean_cut) END AS largest_latency_cut
    FROM sensitivity ORDER BY machine = 'p3dn' DESC, machine, cost, factor, name"
}

cost_colour() { case $1 in process-start) echo '#d62728' ;; pageable-copy) echo '#ff7f0e' ;; per-tensor) echo '#2ca02c' ;; proxy-hop) echo '#17becf' ;; process-memory) echo '#9467bd' ;; *) echo '#8c564b' ;; esac }

# Lines that lie on one another stay visible: wide below, thin above.
cost_line() { case $1 in process-memory) echo 'lw 6 pt 7 ps 1.1' ;; pageable-copy) echo 'lw 4 pt 7 ps 0.8' ;; *) echo 'lw 2 pt 7 ps 0.5' ;; esac }

figure() {
  local machine
  for machine in p3dn h200; do
    {
      echo 'set multiplot layout 3,2'
      echo "set xtics (0, 0.5, 1, 2); set xrange [-0.1:2.1]; set yrange [*<0:*]; set xlabel 'cost, times what it is'"
      echo "set key outside top center horizontal maxrows 2 font ',10'"
      panel $machine gain mps 'largest gain over mps, %'
      panel $machine gain mps-cold 'over mps that begins cold, %'
      panel $machine gain ray 'largest gain over ray, %'
      panel $machine gain ray-multiplexed 'over ray, multiplexed, %'
      panel $machine mean_cut mps 'largest latency cut against mps, %'
      panel $machine mean_cut ray 'against ray, %'
      echo 'unset multiplot'
    } | draw 00-sensitivity-$machine 1000 1100
  done
}

# panel MACHINE COLUMN BASELINE TITLE
panel() {
  local cost block separator='' plot=''
  for cost in process-memory pageable-copy process-start per-tensor proxy-hop sharing-gain; do
    [ -n "$(ask "SELECT 1 FROM sensitivity WHERE machine = '$1' AND cost = '$cost' AND name = '$3' LIMIT 1")" ] || continue
    block=\$${2}_${3//-/_}_${cost//-/_}
    echo "$block << EOD"
    ask "SELECT factor, 100 * $2 FROM sensitivity WHERE machine = '$1' AND cost = '$cost' AND name = '$3' ORDER BY factor"
    echo EOD
    plot+="$separator$block using 1:2 with linespoints $(cost_line "$cost") lc rgb '$(cost_colour "$cost")' title '${cost//-/ }'"
    separator=', '
  done
  echo "set ylabel '$4'"
  echo "plot $plot"
}

# best TABLE COLUMN BASELINE [MACHINE]: "VALUE at SETTING" of the largest.
best() {
  local where
  case $1 in gain) where="'Zipf ' || zipf || ', a shift each ' || shift || ' s'" ;; cut) where=model ;; esac
  ask "SELECT printf('%.1f%%', 100 * $2) || ' (' || $where || ')' FROM $1 WHERE machine = '${4:-p3dn}' AND name = '$3' ORDER BY $2 DESC, 1 LIMIT 1"
}
setting_of() { ask "SELECT zipf || ':' || shift FROM gain WHERE machine = 'p3dn' AND name = '$1' ORDER BY gain DESC LIMIT 1"; } # BASELINE

text() {
  local busy share over cut_over
  busy=$(ask "SELECT min(d.gpu_utilization / i.gpu_utilization) FROM end_to_end d JOIN end_to_end i USING (machine, zipf, shift) WHERE d.name = 'distmind' AND i.name = 'ideal' AND machine = 'p3dn'")
  share=$(ask "SELECT min(d.throughput_rps / i.throughput_rps) FROM end_to_end d JOIN end_to_end i USING (machine, zipf, shift) WHERE d.name = 'distmind' AND i.name = 'ideal' AND machine = 'p3dn'")
  over=$(ask "SELECT max(gain) * 100 FROM gain WHERE machine = 'p3dn'")
  cut_over=$(ask "SELECT max(mean_cut) * 100 FROM cut WHERE machine = 'p3dn'")
  cat <<M
# DistMind's evaluation, reproduced

Written by \`make paper\` (distmind-sim $(cat VERSION)); do not edit. Every figure is simulated unless it says measured or computed, and is a function of the
sources alone. Data: \`results/paper/*.csv\`; experiments: \`experiments/paper/\`; constants with their sources: \`experiments/hardware/\`. None of them is
fitted to the paper's results.

The paper: X. Jin, Z. Bai, Z. Zhang, Y. Zhu, Y. Zhong, X. Liu, "DistMind: Efficient Resource Disaggregation for Deep Learning Workloads", IEEE/ACM Transactions
on Networking 32(3), 2024. Numbers in quotation marks are its abstract's; other claims are given in words, as its figures are not at hand in numbers.
"The reference system" is its published artifact, github.com/pkusys/DistMind.

Unless said otherwise: 4 GPU servers of 8 V100 (p3dn.24xlarge), 4 memory servers (c5n.18xlarge), 100 Gbit/s, batch 8, host cache 4.096 GB, one model a
GPU for distmind and ray, tiers warm, 30 s of warm-up. "Today's machines": 4 g6.12xlarge with c6in memory servers, whose L4 profiles are *estimated*; 4 servers of
8 H200, everything at 400 Gbit/s. V100 profiles of DenseNet-201 and GPT-2 are estimated too.

## Headline

| | the paper | here, p3dn | g6 (estimated profiles) | H200, 400 Gbit/s |
|---|---|---|---|---|
M
  local machine
  row "GPU utilization of distmind, at least" "near 100%" least_busy
  row "… of ideal's" "" share_of gpu_utilization
  row "throughput of distmind, of ideal's, at least" "near the bound" least_throughput
  row "largest throughput gain over mps" "up to 279% over MPS and Ray" best_of gain gain mps
  row "… over mps that begins cold" "" best_of gain gain mps-cold
  row "largest throughput gain over ray, pinned" "" best_of gain gain ray
  row "… over ray, multiplexed" "" best_of gain gain ray-multiplexed
  row "largest latency cut against mps (mean, part 1)" "up to 94% against MPS and Ray" best_of cut mean_cut mps
  row "largest latency cut against ray (mean, part 1)" "" best_of cut mean_cut ray
  row "largest p99 cut against mps (part 2)" "" best_of gain p99_cut mps
  row "largest p99 cut against ray (part 2)" "" best_of gain p99_cut ray
  row "the four gains over five seeds: mps" "" over_seeds mps
  row "… mps that begins cold" "" over_seeds mps-cold
  row "… ray, pinned" "" over_seeds ray
  row "… ray, multiplexed" "" over_seeds ray-multiplexed
  cat <<M

- **Utilization**: at least $(percent "$busy") of ideal's busy time and $(percent "$share") of its throughput over the settings of 2: $(near_all "$share").
- **Throughput**: the largest gain on p3dn is $(fixed 0 "$over")%, $(less_or_more "$over" 279 5).
M
  why_throughput "$over"
  cat <<M
- **Latency**: the largest cut on p3dn is $(fixed 1 "$cut_over")%, $(less_or_more "$cut_over" 94 1): a request against mps that has to start a process.

### Sensitivity

The largest gains and cuts as one cost of the baselines is multiplied. \`process start\` is fork, context, unpickling and first inference; \`process memory\` is what a
process takes beside its model; \`sharing gain\` is what more than one process gains in total speed (none on a V100 by our hardware file); \`per tensor\` is
what .cpu() and .cuda() take beyond the bytes (\`ray_tensor_us\`, \`swap_extra_ms\`).

M
  picture 00-sensitivity-p3dn "p3dn: largest gain and cut as each cost of the baselines is multiplied by 0, 0.5, 1 and 2"
  picture 00-sensitivity-h200 "H200: largest gain and cut as each cost of the baselines is multiplied by 0, 0.5, 1 and 2"
  table "machine | cost | × | gain over mps | over mps, cold | over ray | over ray, multiplexed | latency cut, mps | latency cut, ray" "
    SELECT machine, cost, factor, $(cell gain mps), $(cell gain mps-cold), $(cell gain ray), $(cell gain ray-multiplexed), $(cell mean_cut mps), $(cell mean_cut ray)
    FROM sensitivity GROUP BY machine, cost, factor ORDER BY machine = 'p3dn' DESC, cost, factor"
  cat <<M

How many requests the mps balancer puts at one process before it starts another elsewhere (\`mps_queue_max\`) is a policy, not a cost. It is $(hardware_key p3dn mps_queue_max), as in the
reference system's balancer; with fewer, the largest gains are:

M
  table "machine | mps_queue_max | gain over mps | setting | over mps, cold | setting" "
    SELECT machine, queue, $(largest_of warm), $(largest_of cold) FROM (SELECT DISTINCT machine, queue FROM queue_gain) AS queues ORDER BY machine = 'p3dn' DESC, queue"
  echo
}

# largest_of START: two columns, a machine's and queue's largest gain and its setting.
largest_of() {
  local row="FROM queue_gain g WHERE g.machine = queues.machine AND g.queue = queues.queue AND start = '$1' ORDER BY gain DESC, zipf, shift LIMIT 1"
  echo "(SELECT printf('%.1f%%', 100 * gain) $row), (SELECT 'Zipf ' || zipf || ', ' || shift || ' s' $row)"
}

# cell COLUMN BASELINE: empty where the cost does not act on it.
cell() { echo "CASE WHEN count($1) FILTER (WHERE name = '$2') = 0 THEN '' ELSE printf('%.1f%%', 100 * max($1) FILTER (WHERE name = '$2')) END"; }
share_of() { ask "SELECT printf('%.1f%%', 100 * min(d.$1 / i.$1)) FROM end_to_end d JOIN end_to_end i USING (machine, zipf, shift) WHERE d.name = 'distmind' AND i.name = 'ideal' AND machine = '$2'"; }
least_of() { # FIGURE MACHINE
  ask "SELECT printf('%.1f%%', 100 * $1) || ' (Zipf ' || zipf || ', a shift each ' || shift || ' s)' FROM end_to_end d JOIN end_to_end i USING (machine, zipf, shift)
    WHERE d.name = 'distmind' AND i.name = 'ideal' AND machine = '$2' ORDER BY $1, d.job LIMIT 1"
}
least_busy() { least_of d.gpu_utilization "$1"; }
least_throughput() { least_of 'd.throughput_rps / i.throughput_rps' "$1"; }
over_seeds() { ask "SELECT printf('%.1f%% to %.1f%%', 100 * min(gain), 100 * max(gain)) FROM seed_gain WHERE machine = '$2' AND name = '$1'"; }
best_of() { best "$1" "$2" "$3" "$4"; }
row() { # TITLE PAPER FUNCTION ARGUMENT...
  local machine line="| $1 | $2 |"
  for machine in $machines; do
    line+=" $("${@:3}" "$machine") |"
  done
  echo "$line"
}

mps_starts() {
  ask "SELECT CASE WHEN sum(loads_process_start) = 0 THEN 'has all 128 variants in processes and starts none'
    ELSE 'starts ' || sum(loads_process_start) || ' processes in the five settings together' END FROM end_to_end WHERE machine = 'p3dn' AND name = 'mps'"
}

# behind START ZIPF:SHIFT: share of mps's requests that were sent behind another one at the process of their model.
behind() {
  percent "$(ask "SELECT 1.0 * sum(d.b > 1000000) / count(*) FROM decision d JOIN e02 e ON e.job = d.job AND e.id = d.run
    WHERE e.kind = 'why' AND e.start = '$1' AND e.zipf = ${2%:*} AND e.shift = ${2#*:} AND d.kind = 'dispatch'")"
}

# figure_at NAME ZIPF:SHIFT EXPRESSION: of a system of 2 on p3dn.
figure_at() { ask "SELECT $3 FROM end_to_end WHERE machine = 'p3dn' AND name = '$1' AND zipf = ${2%:*} AND shift = ${2#*:}"; }

in_words() { echo "Zipf ${1%:*}, a shift each ${1#*:} s"; }

# Where our gain is less: why, from the runs.
why_throughput() {
  holds "$1 < 274" || return 0
  local warm cold ray
  warm=$(setting_of mps) cold=$(setting_of mps-cold) ray=$(setting_of ray)
  cat <<M
  Why: under this demand one slot of 32 turns to another model at a time, so a baseline pays its switch once a shift, not once a request.
  mps, with warm tiers, $(mps_starts). Where it loses most ($(in_words "$warm")) $(behind warm "$warm") of its requests are sent behind another one at the process of their model, while its GPUs
  are $(percent "$(figure_at mps "$warm" '1 - gpu_utilization')") idle (numbers weighed in its dispatches, \`output.decisions = all\`). Begun cold ($(in_words "$cold")) it starts $(figure_at mps-cold "$cold" loads_process_start) processes after warm-up, sends $(behind cold "$cold") behind another,
  and its GPUs are $(percent "$(figure_at mps-cold "$cold" '1 - gpu_utilization')") idle: few processes, unevenly spread, and a new one only where a queue is full.
  ray loses its proxy hop of $(calc "$(hardware_key p3dn ray_proxy_us) / 1000") ms on each request, $(percent "$(calc "$(hardware_key p3dn ray_proxy_us) / 1000 / $(figure_at ideal "$ray" latency_ms_mean)")") of ideal's latency, and a stop-and-go swap on each shift: $(figure_at ray "$ray" loads_host) of them ($(in_words "$ray")) hold GPUs
  $(percent "$(figure_at ray "$ray" 'gpu_held - gpu_utilization')") of the time. What the reference system's baselines lose beyond that is not modelled, as it is no property of MPS or Ray: its MPS balancer sleeps 10 ms on every
  request in each of 8 threads, and keeps at most 12 processes a GPU.
M
}

# What `make paper` prints at its end, and README.md shows.
summary() {
  local machine
  for machine in $machines; do
    echo "$(machine_title "$machine")"
    echo "  distmind, least of five settings   GPU utilization $(share_of gpu_utilization "$machine") of ideal's, throughput $(share_of throughput_rps "$machine")"
    echo "  largest gain in throughput         over mps $(best gain gain mps "$machine"), begun cold $(best gain gain mps-cold "$machine")"
    echo "                                     over ray $(best gain gain ray "$machine"), multiplexed $(best gain gain ray-multiplexed "$machine")"
    echo "  largest cut of mean latency        against mps $(best cut mean_cut mps "$machine"), against ray $(best cut mean_cut ray "$machine")"
  done
  echo "the paper: near 100% utilization; throughput up to 279%, latency up to 94% better than MPS and Ray"
}
