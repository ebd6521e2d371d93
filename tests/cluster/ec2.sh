#!/bin/bash
# scripts/ec2.sh on a stand-in for `aws` (fake_aws): what it launches, and above all that nothing is left when a step fails, an
# answer is lost or it is interrupted. Ends as a Criterion program does, for tests/run.sh.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

ec2=$PWD/scripts/ec2.sh
folder=$(mktemp -d "${TMPDIR:-/tmp}/distmind-ec2-XXXXXX")
trap 'rm -rf "$folder"' EXIT
tested=0 failing=0
mkdir "$folder/bin" && cp tests/cluster/fake_aws "$folder/bin/aws" || exit 1
export PATH=$folder/bin:$PATH DISTMIND_EC2_PAUSE_S=0
export AWS_ACCESS_KEY_ID=AKIASECRETNAME AWS_SECRET_ACCESS_KEY=SECRETVALUE AWS_SESSION_TOKEN=SECRETTOKEN

# expect NAME: one test, in a folder and on an EC2 of its own; a function in which the first command that fails ends it.
expect() {
  local name=$1
  tested=$((tested + 1))
  mkdir "$folder/$name" && cd "$folder/$name" || exit 1
  # Not in a condition, where set -e would count for nothing.
  (set -e; export FAKE_AWS=$folder/$name/aws; "$name") >"$folder/$name.log" 2>&1
  local status=$?
  if [ $status -eq 0 ]; then
    echo "[PASS] ec2::$name"
  else
    echo "[FAIL] ec2::$name"
    tail -n 20 "$folder/$name.log"
    failing=$((failing + 1))
  fi
}

usual=(--key-name mine --ssh-from 203.0.113.7/32 --subnet subnet-0123456789abcdef0)
# up NAME OPTION...: of one GPU server and two memory servers.
up() { "$ec2" up "$1" --gpu-server g6.8xlarge --memory-server c5n.18xlargex2 "${usual[@]}" "${@:2}"; }

# exits STATUS COMMAND...
exits() {
  local status=0
  "${@:2}" >out 2>err || status=$?
  [ $status -eq "$1" ] || { echo "status $status, not $1, of: ${*:2}"; cat out err; return 1; }
}

# alive [TEXT]: the instances that are not terminated, with TEXT in what is known of them.
alive() { grep -L '^state=terminated' aws/instances/* 2>/dev/null | xargs -r grep -l -- "${1-}" | wc -l; }
groups() { find aws/placement aws/security -type f -printf '%f\n' | sort | xargs; }
nothing_left() {
  if [ "$(alive)" -ne 0 ] || [ -n "$(groups)" ] || compgen -G 'machines.txt*' >/dev/null; then
    echo 'something is left:'
    find . -type f
    return 1
  fi
}

launches_tells_and_ends() {
  up trial --hours 3 --root-gb 150 >out
  sed -E 's/ +/ /g' machines.txt >squeezed
  first=$(grep -l 'distmind-role=memory-server' aws/instances/* | xargs grep -l '^index=0' | xargs sed -n 's/^private=//p')
  [ "$(grep -c . squeezed)" -eq 5 ]
  sed -n 1p squeezed | grep -qE '^# EC2 cluster trial, of 20.* scripts/ec2.sh down trial$'
  sed -n 2p squeezed | grep -qE '^controller ubuntu@203\.0\.113\.[0-9]+ 10\.0\.0\.[0-9]+$'
  sed -n 3p squeezed | grep -qE '^gpu-server ubuntu@203\.0\.113\.[0-9]+ 10\.0\.0\.[0-9]+$'
  sed -n 4p squeezed | grep -qE "^memory-server ubuntu@203\.0\.113\.[0-9]+ $first$"
  sed -n 5p squeezed | grep -qE '^memory-server ubuntu@203\.0\.113\.[0-9]+ 10\.0\.0\.[0-9]+$'
  grep -q 'scripts/ec2.sh down trial' out
  grep -qxF 'volume=DeviceName=/dev/sda1 Ebs.VolumeSize=150 Ebs.VolumeType=gp3 Ebs.Encrypted=true Ebs.DeleteOnTermination=true' aws/instances/* -h
  sort aws/security/* | sed -E 's/sg-[0-9a-f]+/SELF/' | grep '^rule' >rules
  diff rules - <<'RULES'
rule in FromPort=22
rule in IpProtocol=-1
rule in IpProtocol=tcp
rule in IpRanges[].CidrIp=203.0.113.7/32
rule in ToPort=22
rule in UserIdGroupPairs[].GroupId=SELF
rule out IpProtocol=-1
rule out UserIdGroupPairs[].GroupId=SELF
RULES
}

says_how_they_are() {
  exits 0 "$ec2" status trial
  grep -qx 'trial: no machines' out
  up trial --hours 3 >/dev/null
  exits 0 "$ec2" status trial
  [ "$(wc -l <out)" -eq 6 ]
  [ "$(awk 'NR > 1 && NR < 6 { print $1, $3, $4 }' out | xargs)" = \
    'controller c6i.xlarge running gpu-server g6.8xlarge running memory-server c5n.18xlarge running memory-server c5n.18xlarge running' ]
  [ "$(awk 'NR > 1 && NR < 6 && ($7 < 178 || $7 > 180)' out)" = '' ]
  grep -qE '^groups: distmind-trial sg-[0-9a-f]+$' out
  # The machines file and what was printed agree.
  diff <(awk 'NR > 1 && NR < 6 { print $1, "ubuntu@" $6, $5 }' out) <(grep -v '^#' machines.txt | tr -s ' ')

  exits 0 "$ec2" down trial
  [ "$(grep -c ' running ' out)" -eq 4 ]
  [ "$(tail -n 1 out)" = 'trial: nothing is left' ]
  rm machines.txt
  nothing_left
  exits 0 "$ec2" down trial
  grep -qx 'trial: no machines' out
}

# What a machine does when it boots, with other folders and programs in place of a machine's.
machines_end_by_themselves() {
  up trial --hours 3 --huge-pages 50 >/dev/null
  [ "$(grep -c 'DeleteOnTermination=true' aws/instances/* -h | sort -u)" = 2 ]
  mkdir -p etc/systemd/system etc/security/limits.d etc/sysctl.d stubs
  # shellcheck disable=SC2016 # of the stub
  printf '#!/bin/sh\necho "$(basename "$0") $*" >>stubs/log\n' | tee stubs/systemctl stubs/sysctl >stubs/shutdown
  chmod +x stubs/systemctl stubs/sysctl stubs/shutdown
  sed "s,/etc/,etc/,g" aws/user-data.memory-server >boot
  PATH=$PWD/stubs:$PATH bash -e boot
  end=$(sed -n 's/^OnCalendar=//p' etc/systemd/system/distmind-end.timer)
  left=$(($(date -d "$end" +%s) - $(date +%s)))
  [ $left -gt $((3 * 3600 - 60)) ]
  [ $left -le $((3 * 3600)) ]
  ! command -v systemd-analyze >/dev/null || systemd-analyze calendar "$end"
  grep -qx 'Persistent=true' etc/systemd/system/distmind-end.timer
  grep -qx 'ExecStart=/usr/sbin/shutdown -h now' etc/systemd/system/distmind-end.service
  grep -qx 'systemctl enable --now distmind-end.timer' stubs/log
  ! grep -q '^shutdown' stubs/log || return 1
  grep -qx -- '\* - memlock unlimited' etc/security/limits.d/99-distmind.conf
  pages=$(sed -n 's/^vm.nr_hugepages = //p' etc/sysctl.d/99-distmind.conf)
  [ $((pages * 2048 * 100)) -le "$(awk '$1 == "MemTotal:" { print $2 * 50 }' /proc/meminfo)" ]
  [ "$pages" -gt 0 ]
  ! grep -q hugepages aws/user-data.controller || return 1
  # Where the timer cannot be had, the machine shuts down all the same.
  printf '#!/bin/sh\nexit 1\n' >stubs/systemctl
  PATH=$PWD/stubs:$PATH bash boot
  grep -qx 'shutdown -h +180' stubs/log
}

up_trial=("$ec2" up trial --gpu-server g6.8xlarge --memory-server c5n.18xlargex2 "${usual[@]}")

# each_call HOW FIRST: `up` with its call FIRST failing or lost, then the next, until it makes fewer, and comes to its end.
each_call() {
  local status
  for ((made = $2; made < 100; made++)); do
    rm -rf aws
    status=0
    env "FAKE_AWS_$1=$made" FAKE_AWS_BLIND=$((made % 4)) "${up_trial[@]}" >out 2>err || status=$?
    [ "$(wc -l <aws/calls)" -ge $made ] || break
    [ $status -eq 1 ] || { echo "call $made, $1: status $status"; cat err; return 1; }
    nothing_left || { echo "after call $made, $1: $(sed -n "${made}p" aws/calls)"; cat err; return 1; }
    [ -z "$(find aws/instances -type f)" ] || grep -q 'nothing of it is left' err
  done
  [ $made -gt 15 ] && [ $status -eq 0 ] && [ "$(alive)" -eq 4 ] && [ -s machines.txt ]
}
failing_calls_leave_nothing() { each_call FAIL 1; }
# Those before are questions: lost or failed is the same.
lost_answers_leave_nothing() { each_call LOST 8; }

# A call that fails while machines are ended is made again; one that fails before is reported, and `down` may be called again.
down_may_be_called_again() {
  local n
  up trial >/dev/null
  rm machines.txt
  before=$(wc -l <aws/calls)
  cp -r aws saved
  for ((n = 1; n < 100; n++)); do
    rm -rf aws
    cp -r saved aws
    status=0
    FAKE_AWS_FAIL=$((before + n)) "$ec2" down trial >out 2>err || status=$?
    [ "$(wc -l <aws/calls)" -ge $((before + n)) ] || break
    if [ $n -le 3 ]; then
      [ $status -eq 1 ]
      [ "$(alive)" -eq 4 ]
      "$ec2" down trial
    else
      [ $status -eq 0 ]
    fi
    nothing_left
  done
  [ $n -gt 8 ]
  # What cannot be deleted, as an instance of another cluster is in it, is said.
  rm -rf aws
  cp -r saved aws
  cat >aws/instances/i-00000000 <<INSTANCE
state=running
born=1
security=$(basename aws/security/*)
placement=another
tag distmind-cluster=another
INSTANCE
  exits 1 "$ec2" down trial
  grep -q 'not all of trial could be ended' err
  [ "$(alive 'distmind-cluster=trial')" -eq 0 ]
  [ "$(alive 'distmind-cluster=another')" -eq 1 ]
}

# await_held: until a call waits for aws/held to go.
await_held() {
  local until=$((SECONDS + 20))
  until [ -e aws/held ]; do
    [ $SECONDS -lt $until ] || return 1
    sleep 0.05
  done
}

interrupted_it_ends_what_it_made() {
  local signal status
  declare -A statuses=([TERM]=143 [INT]=130)
  for signal in TERM INT; do
    rm -rf aws
    # A shell without job control has what runs in the background ignore SIGINT.
    FAKE_AWS_HOLD=run-instances env --default-signal=INT "${up_trial[@]}" >out 2>err &
    await_held
    kill -$signal $!
    rm aws/held
    status=0
    wait $! || status=$?
    [ $status -eq "${statuses[$signal]}" ] || { echo "status $status"; cat err; return 1; }
    nothing_left
    grep -q "nothing of it is left" err || { cat err; return 1; }
  done
}

clusters_do_not_touch_one_another() {
  up a --out a.txt >/dev/null
  up b --out b.txt --ssh-from 198.51.100.0/24 >/dev/null
  grep -l 'distmind-cluster=b' -r aws | sort | xargs sha256sum >before
  # A name in use is refused, and what is there stays.
  exits 1 up b --out c.txt
  grep -q 'b has machines already' err
  [ ! -e c.txt ]
  "$ec2" down a
  sha256sum -c --quiet before
  [ "$(alive)" -eq 4 ]
  [ "$(alive 'distmind-cluster=b')" -eq 4 ]
  [[ "$(groups)" =~ ^distmind-b\ sg-[0-9a-f]+$ ]]
  # Groups without machines, as a killed script leaves them.
  sed -i 's/^state=.*/state=terminated/' aws/instances/*
  exits 1 up b --out c.txt
  grep -q 'b has groups already' err
  "$ec2" down b
  [ -z "$(groups)" ]
}

# Both found nothing of that name; the one that comes second to the placement group ends nothing of the first.
of_two_at_once_one_fails() {
  FAKE_AWS_HOLD=create-placement-group up c --out second.txt 2>err &
  await_held
  up c --out first.txt
  rm aws/held
  status=0
  wait $! || status=$?
  [ $status -eq 1 ]
  grep -q 'already exists' err
  [ "$(alive)" -eq 4 ]
  [ -s first.txt ]
  [ ! -e second.txt ]
  [[ "$(groups)" =~ ^distmind-c\ sg-[0-9a-f]+$ ]]
}

# Where no search finds the machines yet, those are ended that the answers named.
searches_may_lag() {
  up trial >/dev/null
  rm machines.txt
  call=$(grep -n run-instances aws/calls | sed -n '3s/:.*//p')
  rm -rf aws
  FAKE_AWS_FAIL=$call FAKE_AWS_BLIND=1000 exits 1 up trial
  grep -q 'waiting until 2 instances are terminated' err
  nothing_left
}

efa_goes_by_type() {
  with() { grep -l 'InterfaceType=efa' aws/instances/* | xargs -r sed -n 's/^tag distmind-role=//p' | sort | xargs; }
  up trial --force 2>err >out
  [ "$(with)" = 'gpu-server memory-server memory-server' ]
  ! grep -q TCP err || return 1
  rm -rf aws
  "$ec2" up trial --gpu-server p4d.24xlargex2 --memory-server c5n.large --controller c5n.18xlarge "${usual[@]}" --force 2>err >out
  [ "$(with)" = 'controller gpu-server gpu-server' ]
  grep -q 'runs will go over TCP' err
  grep -qx 'gpu-server: 2 p4d.24xlarge, EFA' out
  grep -qx 'memory-server: 1 c5n.large, no EFA' out
  rm -rf aws
  up trial --force --efa off >/dev/null
  [ "$(with)" = '' ]
  [ "$(alive)" -eq 4 ]
  rm -rf aws
  exits 1 up trial --force --efa on --gpu-server g6.xlarge
  grep -q 'g6.xlarge has no EFA' err
  exits 1 up trial --force --memory-server c7g.16xlarge
  grep -q 'expected x86_64' err
  exits 1 up trial --force --controller t3.micro
  grep -q 'cluster placement groups' err
  exits 1 up trial --force --controller t9.nano
  [ -z "$(groups)" ]
  [ -z "$(find aws/instances -type f)" ]
}

# refused TEXT WORD...: bad usage, in one line with TEXT, before any call.
refused() {
  exits 2 "$ec2" "${@:2}"
  grep -q -- "$1" err || { echo "not \"$1\" of: ${*:2}"; cat err; return 1; }
  [ "$(wc -l <err)" -eq 1 ] && [ ! -s out ] && [ ! -e aws ]
}

bad_usage_makes_no_call() {
  local bad good=(--gpu-server g6.8xlarge --memory-server c5n.18xlarge "${usual[@]}")
  refused 'expected up, status or down'
  refused 'expected up, status or down' start trial
  refused 'NAME of a cluster' up
  refused 'expected nothing after down trial' down trial another
  for bad in '' Trial 1st 'a b' 'a*' 'a,b' -a "$(printf 'a%.0s' {1..33})" $'a\nb'; do
    refused NAME up "$bad" "${good[@]}"
    refused NAME down "$bad"
    refused NAME status "$bad"
  done
  for bad in 203.0.113.7 203.0.113.256/32 203.0.113.7/33 1.2.3/24 01.2.3.4/8 ::/0 '1.2.3.4/32,IpProtocol=-1' here; do
    refused 'expected IPv4 addresses' up trial "${good[@]}" --ssh-from "$bad"
  done
  for bad in g6 g6.8xlargex0 g6.8xlargex65 g6.8xlargex100 g6.8xlargex02 'g6.8xlarge x2' G6.8xlarge x2 g6.8xlarge,c5.large; do
    refused 'expected TYPE or TYPExN' up trial "${good[@]}" --gpu-server "$bad"
  done
  refused 'expected one machine' up trial "${good[@]}" --controller c6i.xlargex2
  refused 'expected a subnet' up trial "${good[@]}" --subnet subnet-1,Groups=sg-1
  refused 'expected an AMI' up trial "${good[@]}" --ami ami-xyz
  refused 'name of a key' up trial "${good[@]}" --key-name --force
  refused 'name of a user' up trial "${good[@]}" --ssh-user 'a b'
  for bad in 0 169 2.5 -1 02 two 99999999999999999999; do refused 'from 1 to 168' up trial "${good[@]}" --hours "$bad"; done
  refused 'from 50 to 16000' up trial "${good[@]}" --root-gb 8
  refused 'from 1 to 90' up trial "${good[@]}" --huge-pages 91
  refused 'expected auto, on or off' up trial "${good[@]}" --efa yes
  refused 'unknown option --spot' up trial "${good[@]}" --spot yes
  refused 'expected a value' up trial "${good[@]}" --out
  refused 'unexpected "more"' up trial "${good[@]}" more
  refused 'can be written' up trial "${good[@]}" --out nowhere/machines.txt
  refused 'can be written' up trial "${good[@]}" --out . --force
  refused 'expected --gpu-server' up trial --memory-server c5n.large "${usual[@]}"
  refused 'expected --memory-server' up trial --gpu-server g6.xlarge "${usual[@]}"
  refused 'expected --key-name' up trial "${good[@]:0:4}"
  for bad in --help 'up --help' 'up trial --help' 'down -h'; do
    # shellcheck disable=SC2086 # words
    exits 0 "$ec2" $bad
    grep -q 'Not run on EC2' out
    [ ! -e aws ]
  done
}

a_file_of_machines_stays() {
  echo mine >machines.txt
  exits 2 up trial
  grep -q 'exists already' err
  [ ! -e aws ]
  # One that comes while machines start: they are ended.
  rm machines.txt
  FAKE_AWS_RACE=$PWD/machines.txt exits 1 up trial
  [ "$(cat machines.txt)" = theirs ]
  rm machines.txt
  nothing_left
  echo mine >machines.txt
  up trial --force >/dev/null
  [ "$(grep -c '^memory-server' machines.txt)" -eq 2 ]
}

a_dry_run_changes_nothing() {
  exits 0 up trial --dry-run --ssh-user me
  [ ! -s err ]
  [ ! -e machines.txt ]
  [ "$(grep -c '^aws ' out)" -ge 8 ]
  grep -q '^aws ec2 run-instances .*InterfaceType=efa' out
  ! grep -vE '^(ec2 describe-|ssm get-parameter )' aws/calls || return 1
  # What it prints is what is done, but for what AWS names.
  sed '/ec2 wait/q' out >dry
  up trial >/dev/null
  diff <(cut -d ' ' -f 2,3 dry) <(grep -vE '^[a-z0-9]+ (describe-|get-)' aws/calls | cut -d ' ' -f 1,2)
  eval "$(sed -n '/^aws ec2 create-placement/s/distmind-trial/distmind-two/p' dry)"
  [ -e aws/placement/distmind-two ]
}

machines_without_address_are_ended() {
  FAKE_AWS_NO_ADDRESS=1 exits 1 up trial
  grep -q '0 of 4 machines run and have' err
  nothing_left
}

credentials_are_not_shown() {
  up trial >out 2>err
  "$ec2" status trial >>out 2>>err
  FAKE_AWS_FAIL=25 "$ec2" down trial >>out 2>>err
  ! grep -rE 'SECRET' . || return 1
}

for name in launches_tells_and_ends says_how_they_are machines_end_by_themselves failing_calls_leave_nothing lost_answers_leave_nothing \
  down_may_be_called_again interrupted_it_ends_what_it_made clusters_do_not_touch_one_another \
  of_two_at_once_one_fails searches_may_lag efa_goes_by_type bad_usage_makes_no_call \
  a_file_of_machines_stays a_dry_run_changes_nothing machines_without_address_are_ended credentials_are_not_shown; do
  expect $name
done
echo "[====] Synthesis: Tested: $tested | Passing: $((tested - failing)) | Failing: $failing | Crashing: 0"
[ $failing -eq 0 ]
