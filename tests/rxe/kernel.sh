#!/bin/bash
# Fetches a Debian kernel that has Soft-RoCE: `kernel.sh PACKAGE FOLDER`; vm.sh calls it. Nothing is installed.
#
#   FOLDER/vmlinux           uncompressed where possible: qemu boots that by its PVH note, without the BIOS and without
#                            unpacking in the guest, which takes some seconds under emulation; else the bzImage
#   FOLDER/modules/NN-NAME.ko  what init loads, in that order, uncompressed
#   FOLDER/version           written last: there, the folder is whole
#
# PACKAGE: linux-image-amd64, or another of the full flavour; linux-image-cloud-amd64 lacks rdma_rxe.
set -euo pipefail

# crc32_generic: rdma_rxe needs it when it runs, and its list of dependencies does not say so.
wanted=(crc32_generic veth virtio_pci 9pnet_virtio 9p rdma_rxe)
PATH=$PATH:/usr/sbin:/sbin

die() { echo "kernel: $1" >&2; exit 1; }

[ $# -eq 2 ] || { echo "usage: $0 PACKAGE FOLDER" >&2; exit 2; }
package=$1
folder=$2
[ ! -e "$folder/version" ] || exit 0
command -v apt-get >/dev/null || die "no apt-get here: $package can only be had by it"

rm -rf "$folder" "$folder.partial"
mkdir -p "$folder.partial/package" "$folder.partial/modules"
cd "$folder.partial"
trap 'cd /; rm -rf "$folder.partial"' EXIT

# image_package: the package that a meta package stands for, now.
image_package() { apt-cache depends "$package" 2>/dev/null | sed -nE 's/^ *Depends: (linux-image-[0-9].*)/\1/p' | head -n 1 || true; }

# fetch NAME: by the lists that are here, which may be older than what the mirror holds; then by new ones.
fetch() { (cd package && apt-get -qq -o APT::Sandbox::User=root download "$1") >fetch.log 2>&1; }

image=$(image_package)
if ! fetch "${image:-$package}"; then
  apt-get -qq update >update.log 2>&1 || true # as a user that may not, with the lists that are here
  image=$(image_package)
  fetch "${image:-$package}" || die "cannot download ${image:-$package} by apt-get: $(grep . fetch.log | tail -n 1)"
fi
dpkg -x package/*.deb root || die "cannot unpack ${image:-$package}"
version=$(ls root/lib/modules)
bzimage=root/boot/vmlinuz-$version

# The kernel in the bzImage: its header (Documentation/x86/boot.rst) says after how many sectors of set-up code and how
# many bytes more it begins, and how long it is; its last 4 bytes are the length when unpacked.
number() { od -An "-tu$2" -j "$(($1))" -N "$2" "$bzimage" | tr -d ' '; }
sectors=$(number 0x1f1 1)
[ "$sectors" != 0 ] || sectors=4
begins=$(((sectors + 1) * 512 + $(number 0x248 4)))
bytes=$(($(number 0x24c 4) - 4))
tail -c +$((begins + 1)) "$bzimage" | head -c "$bytes" >payload || true # head ends first
case $(od -An -tx1 -N6 payload | tr -d ' \n') in
fd377a585a00) xz -dc --single-stream <payload >vmlinux || true ;;
28b52ffd*) zstd -dcq <payload >vmlinux || true ;;
esac
[ "$(head -c 4 vmlinux 2>/dev/null | od -An -c | tr -d ' ')" = '177ELF' ] || cp "$bzimage" vmlinux

depmod -b root "$version"
count=0
for module in "${wanted[@]}"; do
  while read -r how path _; do
    name=$(basename "$path")
    name=${name%%.ko*}
    if [ "$how" != insmod ] || compgen -G "modules/*-$name.ko" >/dev/null; then
      continue
    fi
    count=$((count + 1))
    to=modules/$(printf '%02d' $count)-$name.ko
    case $path in
    *.xz) xz -dc "$path" >"$to" ;;
    *.zst) zstd -dcq "$path" >"$to" ;;
    *) cp "$path" "$to" ;;
    esac
  done < <(modprobe -d root -S "$version" --show-depends "$module" 2>/dev/null || true)
done
compgen -G 'modules/*-rdma_rxe.ko' >/dev/null || die "${image:-$package} has no module rdma_rxe"

rm -rf root package payload ./*.log
echo "$version" >version
mv "$folder.partial" "$folder"
