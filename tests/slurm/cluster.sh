# A Slurm cluster of one node on loopback, in a folder of its own, for tests; to be sourced. Needs root, slurm-wlm, munge.
#
#   slurm_start FOLDER   0: it takes jobs, SLURM_CONF is set; else slurm_reason says why not
#   slurm_stop           ends what slurm_start began

slurm_reason=
slurm_pids=()

# slurm_daemon FOLDER PROGRAM ARGUMENT...: one that stays in the foreground.
slurm_daemon() {
  local folder=$1 name
  name=$(basename "$2")
  shift
  "$@" >"$folder/$name.out" 2>&1 </dev/null &
  slurm_pids+=($!)
}

# slurm_await SECONDS COMMAND...: until it succeeds.
slurm_await() {
  local until=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $until ] || return 1
    sleep 0.1
  done
}

slurm_free_port() {
  local port
  for _ in {1..100}; do
    port=$((20000 + RANDOM % 12000))
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port" && return; }
  done
}

slurm_write_conf() {
  local folder=$1 host
  host=$(hostname -s)
  mkdir -p "$folder/state" "$folder/spool"
  cat >"$folder/slurm.conf" <<CONF
ClusterName=distmind
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$folder/munge.socket
SlurmctldPort=$(slurm_free_port)
SlurmdPort=$(slurm_free_port)
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
}

slurm_start() {
  local folder=$1 program
  for program in munged slurmctld slurmd sbatch squeue scancel scontrol; do
    command -v "$program" >/dev/null || { slurm_reason="no $program (apt-get install slurm-wlm munge)" && return 1; }
  done
  [ "$(id -u)" -eq 0 ] || { slurm_reason="slurmd needs root" && return 1; }
  slurm_write_conf "$folder"
  export SLURM_CONF=$folder/slurm.conf
  (umask 077 && head -c 128 /dev/urandom >"$folder/munge.key")
  slurm_daemon "$folder" munged --foreground --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" \
    --pid-file="$folder/munge.pid" --log-file="$folder/munge.log" --seed-file="$folder/munge.seed"
  slurm_await 10 test -S "$folder/munge.socket" || { slurm_reason="munged did not start: $(tail -n 1 "$folder/munged.out")" && return 1; }
  slurm_daemon "$folder" slurmctld -D -f "$SLURM_CONF"
  slurm_await 15 scontrol ping || { slurm_reason="slurmctld did not start: $(tail -n 1 "$folder/slurmctld.log")" && return 1; }
  slurm_daemon "$folder" slurmd -D -f "$SLURM_CONF"
  slurm_await 20 sh -c 'sinfo -h -o %t | grep -qE "^(idle|mix)"' || { slurm_reason="slurmd did not join: $(tail -n 1 "$folder/slurmd.log")" && return 1; }
}

slurm_stop() {
  local pid
  for pid in "${slurm_pids[@]}"; do
    kill "$pid" 2>/dev/null
  done
  for pid in "${slurm_pids[@]}"; do
    slurm_await 5 sh -c "! kill -0 $pid" || kill -9 "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
  done
  slurm_pids=()
}
