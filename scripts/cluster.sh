#!/bin/bash
# Runs one experiment on many machines over ssh, and brings home what came out: `scripts/cluster.sh MACHINES EXPERIMENT.ini`;
# --help. The machines need ssh, bash, tar and what `distmind-real doctor` asks for, nothing of ours: the bundle (`make
# device-bundle`) is sent to those that lack it.
#
# Every process runs under an ssh of its own, and ends when that connection ends, however: a script that was killed leaves
# nothing running. Secret keys are made on the machines that use them and never travel.
# shellcheck disable=SC2016 # what stands in single quotes is for the other machine
set -uo pipefail

help="usage: scripts/cluster.sh MACHINES EXPERIMENT.ini [--bundle FOLDER] [--out FOLDER] [--with PATH]... [--port P]
           [--record] [--timeline] [--log LEVELS] [--keep-going] [-- CLIENT OPTION...]

Runs the experiment on the machines that MACHINES names, one process a line, places in the pools in order of lines:

  # ROLE          SSH_TARGET        ADDRESS     [OPTION of the role...]
  controller      ubuntu@host-a     10.0.0.1
  client          ubuntu@host-a     10.0.0.1    # optional: else on the controller's machine
  gpu-server      ubuntu@host-b     10.0.0.2
  gpu-server      ubuntu@host-b     10.0.0.2    --first-gpu 1
  memory-server   ubuntu@host-c     10.0.0.3    --rdma-device efa_0

ADDRESS is what the other machines reach it by. A line may be a machine of its own or share one.

  --bundle FOLDER  of the programs (\`make device-bundle\`); default build/device
  --out FOLDER     for the database, logs and recordings; default results/NAME-DATE; must not be there yet
  --with PATH      file or folder that the experiment reads (a trace, hardware file, profiles): put beside it
  --port P         that the controller listens on; default 7700
  --record         every process records its part: \`distmind-sim rerun OUT/record.*\`
  --timeline       OUT/timeline.json, for ui.perfetto.dev
  --log LEVELS     of every role, as \`distmind-real ROLE --log\`; default info
  --keep-going     although a server has ended with a failure; without it the run ends then
  -- OPTION...     of \`distmind-real client\`: --device, --transport, --system, --set, --seed, ...

DISTMIND_SSH is the command instead of ssh, as 'ssh -i KEY -p 2222'. Ctrl-C keeps what was done, as the client does.
Tested with processes of one machine in place of many; not run on several machines.

Example, with machines of EC2 (scripts/ec2.sh):
  make device-bundle && scripts/cluster.sh machines.txt experiments/real-h200.ini -- --transport verbs"

fail() { echo "cluster.sh: $*" >&2; exit 1; }
misused() { echo "cluster.sh: $*" >&2; exit 2; }

bundle=build/device out='' port=7700 record='' timeline='' log=info keep_going='' machines='' experiment=''
with=() client_options=()
value() { [ -n "${2-}" ] || misused "$1: expected a value; --help tells more"; }
while [ $# -gt 0 ]; do
  case $1 in
  --help | -h) echo "$help"; exit 0 ;;
  --bundle) value "$@"; bundle=$2; shift ;;
  --out) value "$@"; out=$2; shift ;;
  --with) value "$@"; with+=("$2"); shift ;;
  --port) value "$@"; port=$2; shift ;;
  --log) value "$@"; log=$2; shift ;;
  --record) record=1 ;;
  --timeline) timeline=1 ;;
  --keep-going) keep_going=1 ;;
  --) shift; client_options=("$@"); break ;;
  -*) misused "unknown option $1; --help shows all" ;;
  *)
    if [ -z "$machines" ]; then machines=$1
    elif [ -z "$experiment" ]; then experiment=$1
    else misused "expected MACHINES EXPERIMENT.ini, found \"$1\" after them"; fi
    ;;
  esac
  shift
done
[ -n "$experiment" ] || misused "expected MACHINES EXPERIMENT.ini; --help tells more"
[[ $port =~ ^[1-9][0-9]{0,4}$ && $((port)) -le 65535 ]] || misused "--port: expected a number from 1 to 65535, found \"$port\""
for option in "${client_options[@]+"${client_options[@]}"}"; do
  [[ ! $option =~ ^--(out|record|timeline|cluster|force|log)(=|$) ]] || misused "$option: not after --; cluster.sh has its own, or decides it"
done
[ -f "$machines" ] || misused "$machines: expected a file of machines"
[ -f "$experiment" ] || misused "$experiment: expected an experiment"
for path in "${with[@]+"${with[@]}"}"; do [ -e "$path" ] || misused "--with: expected a file or folder, found \"$path\""; done
[ -x "$bundle/bin/distmind-real" ] || misused "$bundle: expected a bundle of the programs; \`make device-bundle\` makes it"
name=$(basename "$experiment" .ini)
out=${out:-results/$name-$(date +%Y%m%d-%H%M%S)}
[ ! -e "$out" ] || misused "--out: $out exists already; give another name"

# --- machines

roles=() targets=() addresses=() options=() indices=()
declare -A count=([controller]=0 [client]=0 [gpu-server]=0 [memory-server]=0)
add_process() {
  roles+=("$1") targets+=("$2") addresses+=("$3") options+=("${*:4}") indices+=("${count[$1]}")
  count[$1]=$((count[$1] + 1))
}
number=0
while IFS= read -r line || [ -n "$line" ]; do
  number=$((number + 1))
  read -ra words <<<"${line%%#*}"
  [ ${#words[@]} -gt 0 ] || continue
  [ -n "${count[${words[0]}]+there}" ] ||
    misused "$machines:$number: expected controller, client, gpu-server or memory-server, found \"${words[0]}\""
  [ ${#words[@]} -ge 3 ] || misused "$machines:$number: expected ROLE SSH_TARGET ADDRESS, found ${#words[@]} words"
  [[ ${words[1]} != -* ]] || misused "$machines:$number: expected where ssh goes, found \"${words[1]}\""
  [[ ${words[2]} =~ ^[A-Za-z0-9.:_%-]+$ ]] || misused "$machines:$number: expected an address, found \"${words[2]}\""
  add_process "${words[@]}"
done <"$machines"
for role in controller client; do
  [ "${count[$role]}" -le 1 ] || misused "$machines: expected one $role, found ${count[$role]}"
done
for role in controller gpu-server memory-server; do
  [ "${count[$role]}" -ge 1 ] || misused "$machines: expected a $role, found none"
done
for i in "${!roles[@]}"; do [ "${roles[$i]}" != controller ] || controller=$i; done
[ "${count[client]}" -eq 1 ] || add_process client "${targets[$controller]}" "${addresses[$controller]}"
for i in "${!roles[@]}"; do [ "${roles[$i]}" != client ] || client=$i; done
mapfile -t machine_list < <(printf '%s\n' "${targets[@]}" | sort -u)

# --- over ssh

read -ra ssh_words <<<"${DISTMIND_SSH:-ssh -o BatchMode=yes -o ConnectTimeout=20 -o StrictHostKeyChecking=accept-new -o ServerAliveInterval=10}"
work=$(mktemp -d "${TMPDIR:-/tmp}/distmind-cluster-XXXXXX") || exit 1
base=.cache/distmind # in the home of each machine's user
bundle_sum=$(cd "$bundle" && find . -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16)
run_id=run-$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')

# on TARGET SCRIPT [WORD...]: there, by bash, with the words as $0, $1... as they are, whatever shell its user has. Nothing is
# read from standard input; on_with does.
on_with() {
  local target=$1 command='bash -c' word quote="'\\''"
  shift
  for word in "$@"; do command+=" '${word//\'/$quote}'"; done
  "${ssh_words[@]}" "$target" "$command"
}
on() { on_with "$@" </dev/null; }

# Sends the bundle where it is not, whole or not at all, and makes the run's folder.
prepare_machine() {
  local target=$1
  on "$target" 'mkdir -p "$0" && cd "$0" && umask 077 && mkdir -p "$1/keys" "$1/peers" "$1/out" && { test -d "$2" && echo has; true; }' \
    "$base" "$run_id" "bundle-$bundle_sum" >"$work/has" || return 1
  if ! grep -q '^has$' "$work/has"; then
    echo "$target: sends the programs"
    tar -C "$bundle" -cz . | on_with "$target" 'cd "$0" && rm -rf "$1.$2" && mkdir "$1.$2" && tar -C "$1.$2" -xz && { mv -T "$1.$2" "$1" 2>/dev/null || rm -rf "$1.$2"; } && test -d "$1"' \
      "$base" "bundle-$bundle_sum" "$run_id" || return 1
  fi
  tar -C "$work/send" -ch . | on_with "$target" 'cd "$0" && tar -x' "$base/$run_id"
}

# make_key I: where process I runs; its public key to the controller's machine.
make_key() {
  local i=$1 key=${roles[$1]}-${indices[$1]}
  on "${targets[$i]}" 'cd "$0" && ../"$2"/run distmind-real keygen "keys/$1" >/dev/null && cat "keys/$1.pub"' \
    "$base/$run_id" "$key" "bundle-$bundle_sum" >"$work/pub/$key.pub"
}

# The cluster's file of process I, which names the keys of its machine.
cluster_file() {
  local address=${addresses[$controller]}
  [[ $address != *:* ]] || address="[$address]"
  printf '[cluster]\ncontroller = %s:%s\n' "$address" "$port"
  if [ "$1" = "$controller" ]; then
    printf 'controller_secret = keys/controller-0.secret\nauthorized = peers\n'
  else
    printf 'controller_key = peers/controller-0.pub\nkey = keys/%s-%s.secret\n' "${roles[$1]}" "${indices[$1]}"
  fi
}

give_keys() {
  local i target
  for i in "${!roles[@]}"; do cluster_file "$i" >"$work/files/${roles[$i]}-${indices[$i]}.ini"; done
  for target in "${machine_list[@]}"; do
    tar -C "$work" -c --transform 's,^pub,peers,;s,^files/,,' pub files | on_with "$target" 'cd "$0" && umask 077 && tar -x' "$base/$run_id" || return 1
  done
}

# Runs a process in the bundle's folder until its end or that of standard input, which is the connection's.
remote='cd "$HOME/$1" || exit 1; shift; ulimit -l unlimited 2>/dev/null; exec 3<&0
"$@" </dev/null 3<&- & process=$!
{ cat <&3; kill $process; } >/dev/null 2>&1 &
wait $process'

# start I: its log in $work/logs, the number of its local process in pids[I].
pids=() kept=''
start() {
  local i=$1 role=${roles[$1]} words more=()
  [[ $role != *-server ]] || more+=(--index "${indices[$i]}")
  [ "$role" != memory-server ] || more+=(--address "${addresses[$i]}")
  [ -z "$record" ] || more+=(--record "../$run_id/out/record")
  read -ra words <<<"${options[$i]}"
  local command=(./run distmind-real "$role")
  if [ "$i" = "$client" ]; then
    command+=("../$run_id/$name.ini" --out "../$run_id/out/$name.db" ${timeline:+--timeline "../$run_id/out/timeline.json"})
    command+=("${client_options[@]+"${client_options[@]}"}")
  else
    command+=(--log "$log")
  fi
  command+=(--cluster "../$run_id/$role-${indices[$i]}.ini" "${more[@]+"${more[@]}"}" "${words[@]+"${words[@]}"}")
  if [ "$i" = "$client" ]; then
    on_with "${targets[$i]}" "$remote" remote "$base/bundle-$bundle_sum" "${command[@]}" <&5 7>&- 8>&- &
  else
    on_with "${targets[$i]}" "$remote" remote "$base/bundle-$bundle_sum" "${command[@]}" \
      <&6 >"$out/$role-${indices[$i]}.log" 2>&1 7>&- 8>&- &
  fi
  pids[i]=$!
}

describe() { echo "${roles[$1]} ${indices[$1]} on ${targets[$1]}"; }

await_controller() {
  local tries
  for ((tries = 0; tries < 300; tries++)); do
    ! grep -q 'listening on ' "$out/controller-0.log" || return 0
    kill -0 "${pids[$controller]}" 2>/dev/null || break
    sleep 0.1
  done
  tail -n 3 "$out/controller-0.log" >&2
  return 1
}

stop_all() {
  exec 7>&- 8>&-
  local pid
  for pid in "${pids[@]+"${pids[@]}"}"; do wait "$pid" 2>/dev/null; done
  pids=()
}

# shellcheck disable=SC2317 # called by the trap
clean_up() {
  trap '' INT TERM
  stop_all
  local target
  for target in "${machine_list[@]}"; do on "$target" 'rm -rf "$0"' "$base/$run_id${kept:+/keys}" 2>/dev/null; done
  rm -rf "$work"
}

# The client's end, whatever the servers do meanwhile; its status.
await_client() {
  local ended status i
  while :; do
    ended=''
    wait -n -p ended "${pids[@]}"
    status=$?
    [ -n "${ended-}" ] || continue # a signal came in
    [ "$ended" != "${pids[$client]}" ] || return $status
    for i in "${!pids[@]}"; do
      [ "${pids[$i]}" = "$ended" ] || continue
      unset "pids[$i]"
      [ $status -ne 0 ] || continue
      echo "cluster.sh: $(describe "$i") ended with status $status: $(tail -n 1 "$out/${roles[$i]}-${indices[$i]}.log")" >&2
      if [ -z "$keep_going" ]; then
        failed=1
        exec 7>&- # the client ends as after Ctrl-C
      fi
    done
  done
}

fetch() {
  local target good=0
  for target in "${machine_list[@]}"; do
    on "$target" 'cd "$0" && tar -c .' "$base/$run_id/out" | tar -C "$out" -x --no-same-owner || good=1
  done
  return $good
}

trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir -p "$work/send" "$work/pub" "$work/files" && mkfifo "$work/hold" "$work/hold-client" || exit 1
# shellcheck disable=SC2094 # a pipe has two ends
# The ends that this script alone holds, 8 and for the client 7: who reads 6 or 5 ends when they are closed.
exec 8<>"$work/hold" 6<"$work/hold" 7<>"$work/hold-client" 5<"$work/hold-client"
cp "$experiment" "$work/send/$name.ini" || exit 1
for path in "${with[@]+"${with[@]}"}"; do ln -s "$(realpath "$path")" "$work/send/$(basename "$path")" || fail "--with: two of one name, $(basename "$path")"; done

echo "${#machine_list[@]} machine(s), ${count[gpu-server]} GPU server(s), ${count[memory-server]} memory server(s)"
for target in "${machine_list[@]}"; do prepare_machine "$target" || fail "$target: cannot be prepared"; done
for i in "${!roles[@]}"; do make_key "$i" || fail "$(describe "$i"): no keys could be made"; done
give_keys || fail "the keys could not be handed out"
mkdir -p "$out" || fail "$out: cannot be made"
start "$controller"
await_controller || fail "$(describe "$controller") does not listen on ${addresses[$controller]}:$port"
for i in "${!roles[@]}"; do [ "$i" = "$controller" ] || [ "$i" = "$client" ] || start "$i"; done
failed=0 interrupted=0
trap 'interrupted=1; exec 7>&-' INT TERM
start "$client"
await_client
status=$?
unset "pids[$client]"
stop_all
fetch || { kept=1; fail "not all that came out could be brought home; it stays in ~/$base/$run_id/out of the machines"; }
# A client that had hardly begun ends by the signal itself.
[ $interrupted -eq 0 ] || status=130
[ $failed -eq 0 ] || status=1
echo "$out: $(cd "$out" && echo *)"
exit $status
