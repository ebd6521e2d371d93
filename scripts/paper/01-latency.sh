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
  local machine=p3dn system list="ideal distmind-cache distmind-remote mps ray" model column=2
  {
    echo '$data << EOD'
    for model in $models; do
      printf '%s' "$(model_title "$model")"
      for system in $list; do printf '|%s' "$(mean $machine "$model" "$system")"; done
      echo
    done
    echo EOD
    cat <<'G'
set style data histogram
set style histogram clustered gap 1
set logscale y 10
set yrange [10:5000]
set ylabel 'mean latency, ms'
set xlabel 'model, batch 8'
G
    printf 'plot '
    for system in $list; do
      printf "%s\$data using %d:xtic(1) title '%s' lc rgb '%s'" "$([ $column = 2 ] || echo ', ')" $column "$system" "$(colour "$system")"
      column=$((column + 1))
    done
    echo
  } | draw 01-latency 900 450
}

text() {
  local worst_cut best_model over
  cat <<M
## 1. Meeting latency SLOs

*Claim.* A request whose model has to be switched in is answered within milliseconds of one whose model was there; processes under
MPS and replicas under Ray take far longer. In the abstract: distmind cuts inference latency "by up to 94%".

*Ours.* One V100, one client, variants in turn, so that every request finds another model on the GPU. Mean latency, ms:

M
  table "model | ideal | distmind, host cache | distmind, remote | mps | ray | cut against mps | cut against ray" "
    SELECT model, printf('%.1f', max(latency_ms_mean) FILTER (WHERE system = 'ideal')),
      printf('%.1f', max(latency_ms_mean) FILTER (WHERE system = 'distmind' AND kind = 'cache')),
      printf('%.1f', max(latency_ms_mean) FILTER (WHERE system = 'distmind' AND kind = 'all')),
      printf('%.1f', max(latency_ms_mean) FILTER (WHERE system = 'mps')), printf('%.1f', max(latency_ms_mean) FILTER (WHERE system = 'ray')),
      printf('%.1f%%', 100 * (1 - max(latency_ms_mean) FILTER (WHERE system = 'distmind' AND kind = 'all') / max(latency_ms_mean) FILTER (WHERE system = 'mps'))),
      printf('%.1f%%', 100 * (1 - max(latency_ms_mean) FILTER (WHERE system = 'distmind' AND kind = 'all') / max(latency_ms_mean) FILTER (WHERE system = 'ray')))
    FROM e01 WHERE machine = 'p3dn' GROUP BY model ORDER BY min(job)"
  echo
  picture 01-latency "mean latency of a request whose model is switched in"

}
