#!/bin/bash
# Runs a command where RDMA verbs work, on a machine without RDMA hardware. See usage below, or `vm.sh --help`.
#
# A stock Debian kernel with the Soft-RoCE driver (rdma_rxe) boots under qemu from an initramfs made of this machine's own
# programs (root.sh), and runs the command (init). Emulated in software, unless this machine's processor lets KVM run it:
# what runs there says nothing about speed. The kernel (kernel.sh) is kept in build/rxe.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$(cd "$here/../.." && pwd)
cache=${RXE_CACHE:-$source/build/rxe}
. "$here/root.sh"

usage() {
  cat <<'USAGE'
usage: tests/rxe/vm.sh [OPTION]... [--] COMMAND
       tests/rxe/vm.sh --prepare

Runs COMMAND (a line for bash) in a virtual machine that has two RDMA devices, Soft-RoCE on the two ends of a veth pair:
rxe0 with 10.77.0.1 and rxe1 with 10.77.0.2. Its output and its exit status are the command's.

  --bin PROGRAM      this machine's PROGRAM, on the guest's PATH
  --file SRC[:DST]   a file, a program or a folder, at the same path or at DST; with the libraries that a program loads
  --share FOLDER     this machine's FOLDER, at /share, to read and write
  --timeout SECONDS  kill the machine after so long (300)
  --memory MB        of the machine (3072)
  --cpus N           2
  --accel KIND       auto (KVM where the processor has it), tcg, kvm
  --kernel PACKAGE   Debian's package of the kernel (linux-image-amd64)
  --console FILE     keep what the kernel says there
  --prepare          only fetch what is needed
  --help

The command finds DEVICE_A, ADDRESS_A, DEVICE_B, ADDRESS_B and GID_INDEX (of the address, on both) in its environment,
and starts in the folder with the same path as the caller's.
Exit status: the command's; 124 out of time, 125 the machine ended without one, 2 usage, 3 it cannot be set up.
USAGE
}

die() { echo "rxe-vm: $1" >&2; exit "${2:-3}"; }
root_die() { die "$1" 2; }
bad_usage() { echo "rxe-vm: $1 (see $0 --help)" >&2; exit 2; }
check_number() { [[ $2 =~ ^[1-9][0-9]{0,5}$ ]] || bad_usage "$1 wants a whole number from 1, not '$2'"; }

programs=() files=() share='' limit_s=300 memory_mb=3072 cpus=2 accel=auto package=linux-image-amd64 console='' prepare=0
while [ $# -gt 0 ]; do
  case $1 in
  --bin | --file | --share | --timeout | --memory | --cpus | --accel | --kernel | --console)
    [ $# -ge 2 ] || bad_usage "$1 wants a value"
    ;;
  esac
  case $1 in
  --bin) programs+=("$2") ;;
  --file) files+=("$2") ;;
  --share) share=$2 ;;
  --timeout) limit_s=$2 ;;
  --memory) memory_mb=$2 ;;
  --cpus) cpus=$2 ;;
  --accel) accel=$2 ;;
  --kernel) package=$2 ;;
  --console) console=$2 ;;
  --prepare) prepare=1; shift; continue ;;
  --help) usage; exit 0 ;;
  --) shift; break ;;
  -*) bad_usage "unknown option $1" ;;
  *) break ;;
  esac
  shift 2
done
check_number --timeout "$limit_s"
check_number --memory "$memory_mb"
check_number --cpus "$cpus"
[[ $accel =~ ^(auto|tcg|kvm)$ ]] || bad_usage "--accel is auto, tcg or kvm, not '$accel'"
[[ $package =~ ^[a-z0-9][a-z0-9.+-]*$ ]] || bad_usage "'$package' is no name of a package"
[ $prepare -eq 1 ] || [ $# -ge 1 ] || bad_usage "no command"
[ -z "$share" ] || [ -d "$share" ] || bad_usage "no folder $share"
[[ $share != *,* ]] || bad_usage "no comma in the path that --share names" # qemu splits its options there
[ "$(uname -m)" = x86_64 ] || die "only for x86-64, not $(uname -m)"

# --- what is needed

# Both say themselves what is missing.
"$source/scripts/deps.sh" verbs >&2 || exit 3
mkdir -p "$cache"
kernel=$cache/$package
(
  flock 9 # two runs at once: one fetches
  "$here/kernel.sh" "$package" "$kernel" 9>&-
) 9>"$cache/lock" || exit 3
[ $prepare -eq 0 ] || exit 0

# --- the guest's files

run=$(mktemp -d "$cache/run.XXXXXX")
qemu_pid=
end() {
  [ -z "$qemu_pid" ] || kill -TERM "$qemu_pid" 2>/dev/null || true # timeout ends qemu
  rm -rf "$run"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

root=$run/root
root_new "$root"
root_put_system "$root"
for program in "${programs[@]}"; do
  path=$(command -v -- "$program") || die "no program $program" 2
  root_put "$root" "$path" "/usr/local/bin/$(basename "$path")"
done
for file in "${files[@]}"; do
  path=${file%%:*}
  [ -e "$path" ] || die "no file $path" 2
  path=$(realpath -s -- "$path")
  if [[ $file == *:* ]]; then target=${file#*:}; else target=$path; fi
  [[ $target == /* ]] || die "--file $file: the place in the guest must begin with /" 2
  root_put_tree "$root" "$path" "$target"
done
install -m 755 "$here/init" "$root/init"
cp -r "$kernel/modules" "$root/rxe/modules"
printf '%s\n' "$*" >"$root/rxe/command"
printf 'SHARE=%d FOLDER=%q\n' "$([ -z "$share" ] && echo 0 || echo 1)" "$PWD" >"$root/rxe/conf"
root_pack "$root" "$run/initramfs"
rm -rf "$root"

# --- the machine

# /dev/kvm alone proves nothing: where the host's own KVM is software it is there, and cannot run a stock kernel.
if [ "$accel" = auto ]; then
  if [ -w /dev/kvm ] && grep -qwE 'vmx|svm' /proc/cpuinfo; then accel=kvm; else accel=tcg; fi
fi
# Of the emulated processors, the oldest that runs today's binaries is the fastest.
case $accel in
kvm) machine=(-accel kvm -cpu host) ;;
tcg) machine=(-accel "tcg,thread=multi,tb-size=512" -cpu Nehalem) ;;
esac
machine+=(-name rxe-vm -M q35 -smp "$cpus" -m "$memory_mb" -nodefaults -no-user-config -display none -no-reboot
  -kernel "$kernel/vmlinux" -initrd "$run/initramfs"
  -append "console=ttyS0 panic=-1 quiet loglevel=4 mitigations=off nokaslr tsc=reliable 8250.nr_uarts=4 random.trust_cpu=on"
  -serial "file:$run/console" -chardev stdio,id=output,signal=off -serial chardev:output -serial "file:$run/status"
  -device virtio-rng-pci)
if [ -n "$share" ]; then
  machine+=(-virtfs "local,path=$(realpath -- "$share"),mount_tag=share,security_model=none,multidevs=remap")
fi

: >"$run/status"
: >"$run/console"
status=0
timeout --kill-after=5 "$limit_s" qemu-system-x86_64 "${machine[@]}" </dev/null 2>"$run/errors" &
qemu_pid=$!
wait "$qemu_pid" || status=$?
qemu_pid=
[ -z "$console" ] || cp "$run/console" "$console"
told=$(tr -cd '0-9' <"$run/status")
[ -z "$told" ] || exit "$told"
if [ $status -eq 124 ] || [ $status -eq 137 ]; then
  tail -n 15 "$run/console" >&2
  die "killed after $limit_s s" 124
fi
grep . "$run/errors" >&2 || true
tail -n 25 "$run/console" >&2
die "the machine ended without a status of the command (qemu: $status)" 125
