#!/bin/bash
# Launches and ends the EC2 machines of one cluster, and writes the file of machines that scripts/cluster.sh reads:
# `scripts/ec2.sh up|status|down NAME`; --help. Not run on EC2: tests/cluster/ec2.sh runs it on a stand-in for `aws`.
#
# What was made is found by its tags, never by what this script remembers: `distmind-cluster` is the cluster, for status
# and down; `distmind-launch` is one run of `up`, so that one that fails undoes what it made itself and nothing else, even
# where an answer of AWS was lost. Names of placement groups are unique in a region: of two `up NAME` at once, one fails.
set -uo pipefail

# shellcheck disable=SC2016 # these are examples
help='usage: scripts/ec2.sh up NAME --gpu-server TYPE[xN] --memory-server TYPE[xN] --key-name K --ssh-from CIDR --subnet S
           [--controller TYPE] [--ami A] [--ssh-user U] [--hours H] [--root-gb G] [--huge-pages PERCENT]
           [--efa auto|on|off] [--out FILE] [--force] [--dry-run]
       scripts/ec2.sh status NAME
       scripts/ec2.sh down NAME

Launches the EC2 machines of cluster NAME, tells how they are, ends them. Not run on EC2: read what --dry-run prints first.

up makes a cluster placement group and a security group (all traffic among the machines, ssh from CIDR alone, all
traffic out), launches all machines in one subnet, waits until they run, and writes FILE for scripts/cluster.sh. If a step
fails, or it is interrupted, what was made is ended again. A machine ends by itself after H hours, whatever became of this
script: it shuts down, and AWS is told to terminate machines that do. They cost money until then, or until `down`.

  NAME               of the cluster, a-z, 0-9 and "-": all that is made has the tag distmind-cluster=NAME
  --gpu-server T     type of the GPU servers, and how many: g6.8xlarge, p4d.24xlargex2
  --memory-server T  of the memory servers: c5n.18xlargex4
  --controller TYPE  of the controller, where the client runs too; default c6i.xlarge
  --key-name K       key pair, by its name in EC2, that ssh will use
  --ssh-from CIDR    IPv4 addresses that may connect by ssh: 203.0.113.7/32
  --subnet S         for all of them: subnet-...; it needs a route to an Internet gateway, or ssh does not reach them
  --ami A            for all of them, x86-64, which runs user data; default the newest Deep Learning Base AMI with Single
                     CUDA (Ubuntu 24.04) of the region, which has the drivers of GPU and EFA (not for V100: p3, p3dn)
  --ssh-user U       whom ssh connects as: ubuntu by default, as that AMI wants it
  --hours H          1 to 168 until machines end by themselves; default 2
  --root-gb G        size of the encrypted root volume, 50 to 16000; default 200
  --huge-pages P     per cent of the memory of GPU and memory servers, 1 to 90, for huge pages of 2 MiB; default none
  --efa WHICH        auto (default): a network interface with EFA where the type has it; on: GPU and memory servers must
                     have it; off: none. One interface a machine, on network card 0: more would have no public address
  --out FILE         default machines.txt; replaced with --force only
  --dry-run          asks AWS (subnet, types, AMI), changes nothing, and prints the calls that would

`down` ends exactly the machines that have the tag, and deletes both groups; it may be called again. Region and credentials are
those of `aws` (version 2): AWS_REGION, AWS_PROFILE, `aws configure`. This script neither reads, prints nor keeps them.
Exit status: 2 bad usage, 1 failure.

Example:
  scripts/ec2.sh up trial --gpu-server g6.8xlarge --memory-server c6in.8xlargex2 --key-name mine --ssh-from 203.0.113.7/32 \
    --subnet subnet-0123456789abcdef0
  scripts/cluster.sh machines.txt experiments/real-quickstart.ini
  scripts/ec2.sh down trial'

ami_parameter=/aws/service/deeplearning/ami/x86_64/base-with-single-cuda-ubuntu-24.04/latest/ami-id
export AWS_PAGER='' LC_ALL=C.UTF-8
# shellcheck source=scripts/ec2_there.sh
source "$(dirname "$0")/ec2_there.sh"

fail() { echo "ec2.sh: $*" >&2; exit 1; }
misused() { echo "ec2.sh: ${*//[[:cntrl:]]/?}" >&2; exit 2; }
note() { echo "ec2.sh: $*" >&2; }

# --- what was asked for

role_types=() role_counts=() roles=(controller gpu-server memory-server)

# take_machines ROLE TYPE[xN]
take_machines() {
  local type=$2 count=1
  if [[ $2 =~ ^([^.]+\.[a-z0-9-]*[a-z])x([1-9][0-9]?)$ ]]; then
    type=${BASH_REMATCH[1]} count=${BASH_REMATCH[2]}
  fi
  [[ $type =~ ^[a-z][a-z0-9-]*\.[a-z0-9-]+$ && ! $type =~ largex[0-9]*$ && $count -le 64 ]] ||
    misused "--$1: expected TYPE or TYPExN, N up to 64, as g6.8xlargex2, found \"$2\""
  case $1 in
  controller)
    [ "$count" -eq 1 ] || misused "--controller: expected one machine, found \"$2\""
    role_types[0]=$type role_counts[0]=1
    ;;
  gpu-server) role_types[1]=$type role_counts[1]=$count ;;
  memory-server) role_types[2]=$type role_counts[2]=$count ;;
  esac
}

# expect_number OPTION VALUE FROM TO
expect_number() {
  [[ $2 =~ ^[1-9][0-9]{0,5}$ && $2 -ge $3 && $2 -le $4 ]] || misused "$1: expected a number from $3 to $4, found \"$2\""
}

# expect_match OPTION VALUE PATTERN WHAT
expect_match() {
  [[ $2 =~ ^($3)$ ]] || misused "$1: expected $4, found \"$2\""
}

expect_cidr() {
  local number='(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])'
  expect_match "$1" "$2" "($number\.){3}$number/(3[0-2]|[12]?[0-9])" 'IPv4 addresses as 203.0.113.7/32'
  [ "${2#*/}" -ne 0 ] || note "$1 $2: anyone may try to connect by ssh"
}

name='' key='' cidr='' subnet='' ami='' user=ubuntu hours=2 root_gb=200 huge_pages='' efa=auto out=machines.txt force='' dry=''
read_up_option() {
  case $1 in
  --gpu-server | --memory-server | --controller) take_machines "${1#--}" "$2" ;;
  --key-name) expect_match "$1" "$2" '[A-Za-z0-9][A-Za-z0-9_.@+ -]{0,254}' 'the name of a key pair'; key=$2 ;;
  --ssh-from) expect_cidr "$1" "$2"; cidr=$2 ;;
  --subnet) expect_match "$1" "$2" 'subnet-[0-9a-f]{8,17}' 'a subnet as subnet-0123456789abcdef0'; subnet=$2 ;;
  --ami) expect_match "$1" "$2" 'ami-[0-9a-f]{8,17}' 'an AMI as ami-0123456789abcdef0'; ami=$2 ;;
  --ssh-user) expect_match "$1" "$2" '[a-z_][a-z0-9_-]{0,31}' 'the name of a user'; user=$2 ;;
  --hours) expect_number "$1" "$2" 1 168; hours=$2 ;;
  --root-gb) expect_number "$1" "$2" 50 16000; root_gb=$2 ;;
  --huge-pages) expect_number "$1" "$2" 1 90; huge_pages=$2 ;;
  --efa) expect_match "$1" "$2" 'auto|on|off' 'auto, on or off'; efa=$2 ;;
  --out) out=$2 ;;
  *) misused "unknown option $1; --help shows all" ;;
  esac
}

read_name() {
  [ $# -ge 1 ] || misused 'expected the NAME of a cluster; --help tells more'
  expect_match NAME "$1" '[a-z][a-z0-9-]{0,31}' 'a-z, 0-9 and "-", at most 32, a letter first'
  name=$1
}

read_up() {
  read_name "$@"
  shift
  role_types[0]=c6i.xlarge role_counts[0]=1
  while [ $# -gt 0 ]; do
    case $1 in
    --force) force=1 ;;
    --dry-run) dry=1 ;;
    *)
      [[ $1 == --* ]] || misused "unexpected \"$1\"; --help shows all options"
      [ -n "${2-}" ] || misused "$1: expected a value; --help tells more"
      read_up_option "$1" "$2"
      shift
      ;;
    esac
    shift
  done
  [ -n "${role_types[1]-}" ] || misused 'expected --gpu-server TYPE[xN]'
  [ -n "${role_types[2]-}" ] || misused 'expected --memory-server TYPE[xN]'
  [ -n "$key" ] || misused 'expected --key-name K'
  [ -n "$cidr" ] || misused 'expected --ssh-from CIDR'
  [ -n "$subnet" ] || misused 'expected --subnet S'
  [ -n "$force" ] || [ ! -e "$out" ] || misused "--out: $out exists already; give another name, or --force"
  [[ ! -d $out && -w $(dirname "$out") ]] || misused "--out: expected a file that can be written, found \"$out\""
}

# Undoes an `up` that did not come to its end: of its launch alone.
undo() {
  local status=$?
  [ -z "$partial" ] || rm -f "$partial"
  [ -n "$undoing" ] || exit $status
  trap '' INT TERM HUP
  note "not all could be made: ending what was made; do not interrupt this, it may take minutes"
  sleep "$pause_s"
  if end_all "Name=tag:distmind-launch,Values=$launch"; then
    note 'nothing of it is left'
  else
    note "SOME OF IT MAY BE LEFT, and costs money: \`scripts/ec2.sh status $name\`, \`scripts/ec2.sh down $name\`"
  fi
  [ $status -ne 0 ] || status=1
  exit $status
}

# --- launching

launch='' undoing='' partial=''

# change ARGUMENT...: a call that changes something; of a dry run, its line.
change() {
  if [ -n "$dry" ]; then
    { printf 'aws'; printf ' %q' "$@"; echo; } >&3
  else
    aws "$@"
  fi
}

# tags RESOURCE [KEY VALUE]...: a --tag-specifications of what belongs to this launch.
tags() {
  local text="ResourceType=$1,Tags=[{Key=distmind-cluster,Value=$name},{Key=distmind-launch,Value=$launch}"
  shift
  while [ $# -gt 0 ]; do
    text+=",{Key=$1,Value=$2}"
    shift 2
  done
  echo "$text]"
}

refuse_what_is_there() {
  local rows groups
  rows=$(find_instances "$(of_cluster "$name")") || exit 1
  [ -z "$rows" ] || fail "$name has machines already: \`scripts/ec2.sh status $name\`, \`scripts/ec2.sh down $name\`"
  groups=$(find_placement_groups "$(of_cluster "$name")") || exit 1
  groups+=$(find_security_groups "$(of_cluster "$name")") || exit 1
  [ -z "$groups" ] || fail "$name has groups already, and no machines: \`scripts/ec2.sh down $name\` deletes them"
}

has_efa=()

# Which of role_types have EFA; refuses those that cannot do.
look_at_types() {
  local i rows row type supported architectures strategies types
  mapfile -t types < <(printf '%s\n' "${role_types[@]}" | sort -u)
  rows=$(ask "InstanceTypes[].[InstanceType,NetworkInfo.EfaSupported,join(',',ProcessorInfo.SupportedArchitectures),join(',',PlacementGroupInfo.SupportedStrategies)]" \
    ec2 describe-instance-types --instance-types "${types[@]}") || exit 1
  for i in "${!roles[@]}"; do
    row=$(awk -F '\t' -v type="${role_types[$i]}" '$1 == type' <<<"$rows")
    IFS=$'\t' read -r type supported architectures strategies <<<"$row"
    [ -n "$type" ] || fail "AWS tells nothing of type ${role_types[$i]}"
    [[ ,$architectures, == *,x86_64,* ]] || fail "$type: expected x86_64, as the programs are, found $architectures"
    [[ ,$strategies, == *,cluster,* ]] || fail "$type: AWS launches none in cluster placement groups"
    has_efa[i]=''
    if [[ ${supported,,} == true && $efa != off ]]; then has_efa[i]=1; fi
    [ "$efa" != on ] || [ "$i" -eq 0 ] || [ -n "${has_efa[$i]}" ] || fail "--efa on: $type has no EFA"
  done
  [ "${has_efa[1]}" = "${has_efa[2]}" ] || note "one of the server types has EFA, the other none: runs will go over TCP"
}

vpc='' root_device=''
look_at_place() {
  local row architecture
  vpc=$(ask 'Subnets[].[VpcId]' ec2 describe-subnets --subnet-ids "$subnet") || exit 1
  [[ $vpc =~ ^vpc-[0-9a-f]+$ ]] || fail "$subnet: expected a subnet of one VPC, found \"$vpc\""
  if [ -z "$ami" ]; then
    ami=$(ask Parameter.Value ssm get-parameter --name "$ami_parameter") || fail "no AMI of that name; give one with --ami"
    [[ $ami =~ ^ami-[0-9a-f]+$ ]] || fail "$ami_parameter: expected an AMI, found \"$ami\""
  fi
  row=$(ask 'Images[].[RootDeviceName,Architecture]' ec2 describe-images --image-ids "$ami") || exit 1
  read -r root_device architecture <<<"$row"
  [[ $root_device == /dev/* ]] || fail "$ami: expected an AMI with a root device, found \"$row\""
  [ "$architecture" = x86_64 ] || fail "$ami: expected x86_64, as the programs are, found $architecture"
}

make_groups() {
  change ec2 create-placement-group --group-name "distmind-$name" --strategy cluster --tag-specifications "$(tags placement-group)" \
    --output text >/dev/null || exit 1
  group=$(change ec2 create-security-group --group-name "distmind-$name" --description "DistMind cluster $name" --vpc-id "$vpc" \
    --tag-specifications "$(tags security-group Name "distmind-$name")" --query GroupId --output text) || exit 1
  [ -z "$dry" ] || group=SECURITY_GROUP
  # EFA's packets match rules that name a group alone: the rule for all addresses that a new group has outbound is not enough.
  change ec2 authorize-security-group-ingress --group-id "$group" --ip-permissions "IpProtocol=-1,UserIdGroupPairs=[{GroupId=$group}]" \
    "IpProtocol=tcp,FromPort=22,ToPort=22,IpRanges=[{CidrIp=$cidr}]" --output text >/dev/null || exit 1
  change ec2 authorize-security-group-egress --group-id "$group" --ip-permissions "IpProtocol=-1,UserIdGroupPairs=[{GroupId=$group}]" \
    --output text >/dev/null || exit 1
}

# What a machine does when it first boots. The timer is on disk, so that a machine that boots again ends all the same.
user_data() {
  cat <<DATA
#!/bin/bash
end=\$(date -u -d '+$hours hours' '+%Y-%m-%d %H:%M:%S UTC')
printf '[Unit]\nDescription=End of this machine of a DistMind cluster\n[Service]\nType=oneshot\nExecStart=/usr/sbin/shutdown -h now\n' \
  >/etc/systemd/system/distmind-end.service
printf '[Timer]\nOnCalendar=%s\nPersistent=true\nAccuracySec=1s\n[Install]\nWantedBy=timers.target\n' "\$end" \
  >/etc/systemd/system/distmind-end.timer
systemctl daemon-reload
systemctl enable --now distmind-end.timer || shutdown -h +$((hours * 60))
printf '* - memlock unlimited\nroot - memlock unlimited\n' >/etc/security/limits.d/99-distmind.conf
DATA
  [ -z "$1" ] || cat <<DATA
awk '\$1 == "MemTotal:" { printf "vm.nr_hugepages = %d\n", \$2 * $1 / 100 / 2048 }' /proc/meminfo >/etc/sysctl.d/99-distmind.conf
sysctl -q -p /etc/sysctl.d/99-distmind.conf
DATA
}

# launch_role I: all machines of a role, or none.
launch_role() {
  local role=${roles[$1]} interface ids own
  own=(distmind-role "$role" distmind-hours "$hours" Name "distmind-$name-$role")
  interface="DeviceIndex=0,SubnetId=$subnet,Groups=[$group],AssociatePublicIpAddress=true,DeleteOnTermination=true"
  ids=$(change ec2 run-instances --image-id "$ami" --instance-type "${role_types[$1]}" --count "${role_counts[$1]}" --key-name "$key" \
    --placement "GroupName=distmind-$name" --network-interfaces "$interface${has_efa[$1]:+,InterfaceType=efa}" \
    --block-device-mappings "DeviceName=$root_device,Ebs={VolumeSize=$root_gb,VolumeType=gp3,Encrypted=true,DeleteOnTermination=true}" \
    --metadata-options HttpTokens=required,HttpEndpoint=enabled,HttpPutResponseHopLimit=1 --instance-initiated-shutdown-behavior terminate \
    --tag-specifications "$(tags instance "${own[@]}")" "$(tags volume)" "$(tags network-interface)" \
    --user-data "$(user_data "$([ "$1" -eq 0 ] || echo "$huge_pages")")" --query 'Instances[].[InstanceId]' --output text) || exit 1
  [ -z "$dry" ] || ids="INSTANCE_OF_$role"
  mapfile -t -O ${#launched[@]} launched <<<"$ids"
}

# Rows of the machines of this launch, once all have both addresses.
await_machines() {
  local rows='' try ready
  aws ec2 wait instance-running --instance-ids "${launched[@]}" || return 1
  for ((try = 1; try <= tries; try++)); do
    rows=$(find_machines "Name=tag:distmind-launch,Values=$launch") || return 1
    ready=$(awk -F '\t' '$5 == "running" && $6 ~ /^[0-9.]+$/ && $7 ~ /^[0-9.]+$/' <<<"$rows" | grep -c .)
    if [ "$ready" -eq ${#launched[@]} ]; then
      echo "$rows"
      return 0
    fi
    [ "$try" -eq "$tries" ] || sleep "$pause_s"
  done
  note "$ready of ${#launched[@]} machines run and have a private and a public address; the others do not get them"
  return 1
}

# write_machines ROWS: whole or not at all. Nothing that came meanwhile is replaced without --force.
write_machines() {
  partial=$(mktemp "$out.XXXXXX") || return 1
  {
    echo "# EC2 cluster $name, of $(date -u '+%Y-%m-%d %H:%M UTC'); its machines end by themselves after $hours h, or: scripts/ec2.sh down $name"
    order_machines <<<"$1" | awk -F '\t' -v user="$user" '{ printf "%-14s %-28s %s\n", $1, user "@" $7, $6 }'
  } >"$partial" && chmod 644 "$partial" && { if [ -n "$force" ]; then mv -f "$partial" "$out"; else mv -n "$partial" "$out"; fi; }
  [ ! -e "$partial" ] || { note "$out could not be written, or has come meanwhile"; return 1; }
}

up() {
  local i rows
  refuse_what_is_there
  look_at_place
  look_at_types
  launch=$name-$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')
  exec 3>&1
  trap undo EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  [ -n "$dry" ] || undoing=1
  make_groups
  for i in "${!roles[@]}"; do launch_role "$i"; done
  if [ -n "$dry" ]; then
    change ec2 wait instance-running --instance-ids "${launched[@]}"
    return
  fi
  note "launched ${#launched[@]} instances; waiting until they run"
  rows=$(await_machines) || exit 1
  write_machines "$rows" || exit 1
  undoing=''
  print_machines <<<"$rows"
  for i in "${!roles[@]}"; do echo "${roles[$i]}: ${role_counts[$i]} ${role_types[$i]}, $([ -n "${has_efa[$i]}" ] && echo EFA || echo no EFA)"; done
  echo "$out names them for scripts/cluster.sh. They end by themselves after $hours h; sooner: scripts/ec2.sh down $name"
}

# --- what is there

status() {
  local rows placement security
  rows=$(find_machines "$(of_cluster "$name")") || exit 1
  placement=$(find_placement_groups "$(of_cluster "$name")") || exit 1
  security=$(find_security_groups "$(of_cluster "$name")") || exit 1
  if [ -n "$rows" ]; then print_machines <<<"$rows"; else echo "$name: no machines"; fi
  [ -z "$placement$security" ] || echo "groups: $(xargs <<<"$placement $security")"
}

down() {
  status
  end_all "$(of_cluster "$name")" || fail "not all of $name could be ended, and it may cost money; call \`scripts/ec2.sh down $name\` again"
  echo "$name: nothing is left"
}

command=${1-}
[ $# -eq 0 ] || shift
for word in "$command" "$@"; do
  [[ $word != --help && $word != -h ]] || { echo "$help"; exit 0; }
done
case $command in
up) read_up "$@" ;;
status | down)
  read_name "$@"
  [ $# -eq 1 ] || misused "expected nothing after $command $name, found \"$2\""
  ;;
*) misused "expected up, status or down, found \"$command\"; --help tells more" ;;
esac
command -v aws >/dev/null || fail "aws is not found: install the AWS command line interface, version 2"
"$command"
