# shellcheck shell=bash
# 1: meeting latency SLOs. Mean latency of a request whose model must be switched in, by model and system.

# Variants that the reference system's scripts use: as many as its host cache holds, and more than it holds.
variants_cached() { case $1 in resnet152) echo 15 ;; inception_v3) echo 40 ;; densenet201) echo 50 ;; bert_base) echo 8 ;; gpt2) echo 6 ;; esac }
variants_remote() { case $1 in bert_base | gpt2) echo 64 ;; *) echo 128 ;; esac }

plan() {
  local machine model file=experiments/paper/01-latency.ini
  for machine in $machines; do
    for model in $models; do
      # shellcheck disable=SC2046 # words
      job "machine=$machine model=$model kind=all" "$(with_model $file "$model" "$(variants_remote "$model")")" $(machine_options "$machine")
      # shellcheck disable=SC2046
      job "machine=$machine model=$model kind=cache" "$(with_model $file "$model" "$(variants_cached "$model")")" $(machine_options "$machine") \
        --system distmind --set cluster.host_cache_gb=4.096
    done
  done
}

systems="CASE system WHEN 'distmind' THEN CASE kind WHEN 'cache' THEN 'distmind-cache' ELSE 'distmind-remote' END ELSE system END"

data() {
  csv 01-latency "SELECT machine, model, $systems AS system, printf('%.3f', latency_ms_mean) AS mean_ms, printf('%.3f', latency_ms_p99) AS p99_ms,
    completed, found_resident, found_host, found_remote, found_process_start, printf('%.4f', slo_attainment) AS slo_attainment
    FROM e01 ORDER BY job, id"
}

# mean MACHINE MODEL SYSTEM
mean() {
  ask "SELECT latency_ms_mean FROM e01 WHERE machine = '$1' AND model = '$2' AND $systems = '$3'"
}

figure() {
  local machine=p3dn system list="ideal distmind-cache distmind-remote mps ray" model
  {
    echo '$data << EOD'
    for model in $models; do
      printf '%s' "$(model_title "$model")"
      for system in $list; do printf '|%s' "$(mean $machine "$model" "$system")"; done
      echo
    done
    echo EOD
    cat <<'G'
set logscale y 10
set yrange [10:5000]
set ylabel 'mean latency, ms'
set xlabel 'model, batch 8'
G
    # shellcheck disable=SC2086 # words
    plot_bars colour $list
  } | draw 01-latency 900 450
}

text() {
  local cut
  cat <<M
## 1. Meeting latency SLOs

*Claim.* A request whose model has to be switched in is answered within milliseconds of one whose model was there; processes under
MPS and replicas under Ray take far longer. In the abstract: distmind cuts inference latency "by up to 94%".

*Ours.* One V100, one client, variants in turn, so that every request finds another model on the GPU. Mean latency, ms:

M
  table "model | ideal | distmind, host cache | distmind, remote | mps | ray | cut against mps | cut against ray" "$(by_model p3dn)"
  echo
  picture 01-latency "mean latency of a request whose model is switched in"
  cut=$(ask "SELECT max(100 * (1 - d.latency_ms_mean / b.latency_ms_mean)) FROM e01 d JOIN e01 b USING (machine, model) WHERE machine = 'p3dn' AND d.kind = 'all'
    AND d.system = 'distmind' AND b.kind = 'all' AND b.system IN ('mps', 'ray')")
  cat <<M
*Verdict.* The largest cut is $(fixed 1 "$cut")%: $(less_or_more "$cut" 94 1). Loading adds at most 1 ms to ideal's latency for $(hidden '<='), where the
load is hidden behind the compute, and $(ask "SELECT printf('%.0f to %.0f', min(over), max(over)) FROM (SELECT d.latency_ms_mean - i.latency_ms_mean AS over $(pairs) AND d.latency_ms_mean - i.latency_ms_mean > 1)") ms for $(hidden '>'): $(copy_bound). Every request of mps starts a process: for ResNet-152
$(part_ms mps_process_start_s) ms of fork and context, $(profile_ms unpickle_ms) of unpickling, $(moved pageable_gbyte_s) of pageable copy and $(profile_ms first_inference_ms) of first inference, measured on an H200's host; that inference answers the request.
ray copies the old model back, $(moved pageable_to_host_gbyte_s) ms of ResNet-152's bytes, and the new one up, $(moved pageable_gbyte_s); $(fixed 0 "$(calc "2 * $(profile_value tensors) * $(hardware_key p3dn ray_tensor_us) / 1000")") are of its $(profile_value tensors) tensors, each way one by one, and $(profile_ms swap_extra_ms) what a framework's
.cpu() and .cuda() took beyond that on an H200's host: without a framework the same moves take as long there as bytes and tensors say (\`results/real-h200-paper.md\`). $(cached_all)
Nothing is fitted to loads that others measured: in PipeSwitch's published run on a p3.2xlarge, which the V100 profiles' warm
latencies are from (github.com/netx-repo/PipeSwitch, log-1019.txt, figure 5), pipelined loads from host memory took 43.5 (ResNet-152), 40.6 (Inception v3) and 53.8 ms (BERT base); here they take
$(fixed 1 "$(mean p3dn resnet152 distmind-cache)"), $(fixed 1 "$(mean p3dn inception_v3 distmind-cache)") and $(fixed 1 "$(mean p3dn bert_base distmind-cache)"), as nothing but the stages' own overheads is in the way.
In the same run requests of MPS took 659.0, 464.3 and 522.2 ms, in processes made in advance, over unified memory, beside a training
task (not the set-up of this part); against those the cut would be
$(fixed 1 "$(calc "100 * (1 - $(mean p3dn resnet152 distmind-cache) / 659.0)")")%, $(fixed 1 "$(calc "100 * (1 - $(mean p3dn inception_v3 distmind-cache) / 464.3)")")% and $(fixed 1 "$(calc "100 * (1 - $(mean p3dn bert_base distmind-cache) / 522.2)")")%.

*Today's machines*, mean latency, ms:

M
  table "machine | model | ideal | distmind, host cache | distmind, remote | mps | ray | cut against mps | cut against ray" "$(by_model g6 | sed "s/SELECT model/SELECT 'g6', model/") UNION ALL SELECT * FROM ($(by_model h200 | sed "s/SELECT model/SELECT 'h200', model/"))"
}

by_model() {
  local pair
  printf 'SELECT * FROM (SELECT model'
  for pair in ideal:all distmind:cache distmind:all mps:all ray:all; do
    printf ", printf('%%.1f', max(latency_ms_mean) FILTER (WHERE system = '%s' AND kind = '%s'))" "${pair%:*}" "${pair#*:}"
  done
  for pair in mps ray; do
    printf ", printf('%%.1f%%%%', 100 * (1 - max(latency_ms_mean) FILTER (WHERE system = 'distmind' AND kind = 'all') / max(latency_ms_mean) FILTER (WHERE system = '%s')))" "$pair"
  done
  printf " FROM e01 WHERE machine = '%s' GROUP BY model ORDER BY min(job))" "$1"
}

pairs() { echo "FROM e01 d JOIN e01 i USING (machine, model) WHERE machine = 'p3dn' AND d.kind = 'all' AND d.system = 'distmind' AND i.kind = 'all' AND i.system = 'ideal'"; }
# hidden OPERATOR: the models whose load adds at most, or more than, a millisecond.
hidden() { ask "SELECT coalesce(group_concat(model, ', '), 'none') FROM (SELECT d.model AS model $(pairs) AND d.latency_ms_mean - i.latency_ms_mean $1 1 ORDER BY d.job)"; }
# copy_bound: why a load shows: bytes over PCIe beside compute, and what has to be there before anything computes.
copy_bound() {
  local model
  for model in $(hidden '>' | tr -d ,); do
    printf '%s takes %.1f ms over PCIe and computes for %.1f, and %.0f%% of its bytes are the first layer; ' "$model" "$(calc "$(model_bytes "$model") / 1e6 / $(hardware_key p3dn pcie_gbyte_s)")" \
      "$(sed -n 's/^# warm_latency_ms: //p' "experiments/profiles/v100/$model.csv")" "$(calc "100 * $(awk -F , '!/^#/ && $3 ~ /^[0-9]+$/ { print $3; exit }' "experiments/profiles/v100/$model.csv") / $(model_bytes "$model")")"
  done
  echo "PCIe's $(hardware_key p3dn pcie_gbyte_s) GB/s were measured on such a server (p3dn.ini says by whom)"
}
part_ms() { fixed 0 "$(calc "1000 * $(hardware_key p3dn "$1")")"; }
profile_value() { sed -n "s/^# $1: //p" experiments/profiles/v100/resnet152.csv; }
profile_ms() { fixed 0 "$(profile_value "$1")"; }
moved() { fixed 0 "$(calc "$(model_bytes resnet152) / 1e6 / $(hardware_key p3dn "$1")")"; } # RATE: milliseconds of ResNet-152's bytes
# Did the host cache hold what it should?
cached_all() {
  ask "SELECT CASE WHEN sum(found_remote) = 0 THEN 'With as many variants as the reference system gives its cache, every load came from there.'
    ELSE 'Of the loads with a cache, ' || sum(found_remote) || ' still came from remote.' END FROM e01 WHERE kind = 'cache'"
}
