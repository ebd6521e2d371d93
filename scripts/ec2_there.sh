# What of a cluster there is on EC2, and its end: for scripts/ec2.sh, which sources this. Of machines, rows of tabs are what
# `aws` answers to machine_query. DISTMIND_EC2_PAUSE_S: for tests, which need not wait.
# shellcheck shell=bash

alive=Name=instance-state-name,Values=pending,running,shutting-down,stopping,stopped
# What is asked of machines, and in which order; print_machines and write_machines take it apart.
machine_query="Reservations[].Instances[].[Tags[?Key=='distmind-role']|[0].Value,AmiLaunchIndex,InstanceId,InstanceType,State.Name,PrivateIpAddress,PublicIpAddress,LaunchTime,Tags[?Key=='distmind-hours']|[0].Value]"
# AWS tells of what was made or ended with a delay: so often, and so long between.
tries=10 pause_s=${DISTMIND_EC2_PAUSE_S:-6}

# --- asking AWS

# ask QUERY SERVICE OPERATION ARGUMENT...: rows of text; a list that is empty is no row, whatever `aws` writes for it.
ask() {
  local query=$1 text
  shift
  text=$(aws "$@" --query "$query" --output text) || return 1
  [ -z "$text" ] || [ "$text" = None ] || printf '%s\n' "$text"
}

# Of what has the tag KEY=VALUE, given as the filter that finds it.
find_machines() { ask "$machine_query" ec2 describe-instances --filters "$1" "$alive"; }
find_instances() { ask 'Reservations[].Instances[].[InstanceId]' ec2 describe-instances --filters "$1" "$alive"; }
find_placement_groups() { ask 'PlacementGroups[].[GroupName]' ec2 describe-placement-groups --filters "$1"; }
find_security_groups() { ask 'SecurityGroups[].[GroupId]' ec2 describe-security-groups --filters "$1"; }
of_cluster() { echo "Name=tag:distmind-cluster,Values=$1"; }

# Rows of machine_query in the order of pools and of places in them.
order_machines() {
  awk -F '\t' -v OFS='\t' '{ print index("controller gpu-server memory-server", $1), $0 }' | sort -t $'\t' -k1,1n -k3,3n -k4,4 | cut -f 2-
}

print_machines() {
  local role id type state private public since life minutes
  printf '%-14s %-20s %-18s %-14s %-16s %-16s %s\n' role instance type state private public 'minutes left'
  while IFS=$'\t' read -r role _ id type state private public since life; do
    minutes=-
    if [[ $life =~ ^[0-9]+$ && $state =~ ^(pending|running)$ ]] && since=$(date -d "$since" +%s); then
      minutes=$(((since + life * 3600 - $(date +%s)) / 60))
    fi
    printf '%-14s %-20s %-18s %-14s %-16s %-16s %s\n' "$role" "$id" "$type" "$state" "$private" "$public" "$minutes"
  done < <(order_machines)
}

# --- ending
# From a trap too, where a `return` without a status would give that of before the trap.

# What this process made itself: a search by tags may not know of it yet.
launched=() group=''

# end_once FILTER: what has the tag, and what this process made.
end_once() {
  local found id ids
  found=$(find_instances "$1") || return 1
  mapfile -t ids < <(printf '%s\n' "$found" "${launched[@]+"${launched[@]}"}" | sed '/^$/d' | sort -u)
  if [ ${#ids[@]} -gt 0 ]; then
    aws ec2 terminate-instances --instance-ids "${ids[@]}" --output text >/dev/null || return 1
    note "waiting until ${#ids[@]} instances are terminated: ${ids[*]}"
    aws ec2 wait instance-terminated --instance-ids "${ids[@]}" || return 1
    launched=()
  fi
  # AWS deletes none of these while an instance, known to a search or not, is in it.
  found=$(find_security_groups "$1") || return 1
  found=$(printf '%s\n' "$found" "$group" | sort -u)
  group='' # by the next time a search knows of it
  for id in $found; do
    aws ec2 delete-security-group --group-id "$id" --output text >/dev/null || return 1
    note "deleted security group $id"
  done
  found=$(find_placement_groups "$1") || return 1
  for id in $found; do
    aws ec2 delete-placement-group --group-name "$id" --output text >/dev/null || return 1
    note "deleted placement group $id"
  done
}

# end_all FILTER
end_all() {
  local try
  for ((try = 1; try <= tries; try++)); do
    end_once "$1" && return 0
    [ $try -eq $tries ] || sleep "$pause_s"
  done
  return 1
}
