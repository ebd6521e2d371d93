#!/bin/bash
# In the machine of vm.sh: the verbs transport (bench/real_verbs) beside ib_read_bw, runs of each in turn over the same two
# devices, as many messages of the same size over as many queue pairs: `pairs.sh PROGRAM PAIRS BYTES MESSAGES QUEUE_PAIRS`;
# bench.sh calls it.
set -euo pipefail
program=$1 pairs=$2 bytes=$3 queue_pairs=$5
each=$((($4 + queue_pairs - 1) / queue_pairs)) # messages of a queue pair
messages=$((each * queue_pairs))

# MiB/s that the client of ib_read_bw tells. Its notices about inline data go to the log.
read_bw() {
  local words=(-p 18515 -x "$GID_INDEX" -s "$bytes" -n "$each" -q "$queue_pairs" --output=bandwidth)
  ib_read_bw -d "$DEVICE_A" "${words[@]}" >server.log 2>&1 &
  local server=$! tries=0
  # Of sockets that listen (0A), the port of perftest: 18515.
  until grep -q ':4853$' <(awk '$4 == "0A" { print $2 }' /proc/net/tcp /proc/net/tcp6); do
    tries=$((tries + 1))
    [ $tries -le 200 ] || { echo 'ib_read_bw does not listen' >&2; return 1; }
    sleep 0.05
  done
  ib_read_bw -d "$DEVICE_B" "${words[@]}" "$ADDRESS_A" 2>client.log | awk '/^ *[0-9.]+ *$/ { print $1 }'
  wait $server
}

median() { sort -n | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'; }

# transport_bw: the same of the transport's reads.
transport_bw() {
  "$program" --shelf-device "$DEVICE_A" --reader-device "$DEVICE_B" --address "$ADDRESS_A:0" --bytes "$bytes" \
    --reads "$messages" --connections "$queue_pairs" 2>transport.log
}

cd /tmp
echo "$messages messages of $bytes bytes over $queue_pairs queue pairs, $DEVICE_A to $DEVICE_B; MiB/s"
printf '%4s %12s %12s %8s\n' pair ib_read_bw transport ratio
for ((pair = 0; pair < pairs; pair++)); do
  theirs=$(read_bw || true)
  ours=$(transport_bw || true)
  [[ $theirs =~ ^[0-9.]+$ && $ours =~ ^[0-9.]+$ ]] || { echo "no figures: '$theirs', '$ours'" >&2; cat ./*.log >&2; exit 1; }
  ratio=$(awk -v a="$ours" -v b="$theirs" 'BEGIN { printf "%.3f", a / b }')
  printf '%4d %12.2f %12.2f %8s\n' $pair "$theirs" "$ours" "$ratio"
  echo "$theirs" >>theirs
  echo "$ours" >>ours
  echo "$ratio" >>ratios
done
printf 'median of %d: ib_read_bw %.2f MiB/s, transport %.2f MiB/s, ratio %s (goal 0.90; emulated devices: nothing is asserted)\n' \
  "$pairs" "$(median <theirs)" "$(median <ours)" "$(median <ratios)"
