# The guest's root folder, made of this machine's programs and libraries; vm.sh reads this file.
# Each function takes the root as its first argument and writes nothing outside it; `root_die MESSAGE` is the caller's.

root_new() {
  local folder
  mkdir -p "$1"/usr/{bin,sbin,lib,lib32,lib64,local/bin,lib/busybox} "$1"/{etc,proc,sys,dev,run,tmp,root,rxe,share}
  for folder in bin sbin lib lib32 lib64; do
    ln -sn "usr/$folder" "$1/$folder"
  done
}

# root_put ROOT SOURCE TARGET: one file, or the file that a link leads to, with the libraries that it loads.
root_put() {
  mkdir -p "$1$(dirname "$3")"
  cp -Lf --preserve=mode,timestamps "$2" "$1$3"
  root_put_libraries "$1" "$2"
}

# What a program opens by itself (dlopen) ldd does not list.
root_put_libraries() {
  local listed library
  [ "$(head -c 4 "$2" | od -An -c | tr -d ' ')" = '177ELF' ] || return 0
  listed=$(ldd "$2" 2>/dev/null) || return 0 # static
  ! grep -q 'not found' <<<"$listed" || root_die "$2 needs a library that is not here: $(grep -m 1 'not found' <<<"$listed" | xargs)"
  while read -r library; do
    if [ ! -e "$1$library" ]; then
      mkdir -p "$1$(dirname "$library")"
      cp -L --preserve=mode,timestamps "$library" "$1$library"
    fi
  done < <(sed -nE 's/^.*=> (\/[^ ]+) .*$/\1/p; s/^[[:space:]]*(\/[^ ]+) \(0x.*$/\1/p' <<<"$listed")
}

# root_put_tree ROOT SOURCE TARGET: a file or a folder.
root_put_tree() {
  if [ -d "$2" ]; then
    mkdir -p "$1$3"
    cp -rL "$2/." "$1$3/"
  else
    root_put "$1" "$2" "$3"
  fi
}

# root_put_programs ROOT NAME...: from PATH, into /usr/bin.
root_put_programs() {
  local root=$1 name path
  shift
  for name in "$@"; do
    path=$(PATH=/usr/sbin:/usr/bin:/sbin:/bin command -v "$name") || root_die "no program $name here"
    root_put "$root" "$path" "/usr/bin/$name"
  done
}

# What every guest has. Busybox gives what is small or needs none of the host's set-up (mount, insmod, poweroff); the
# shells and programs that start programs are the host's: busybox's would prefer its own applets, `ip` above all.
root_put_system() {
  local root=$1 path
  root_put "$root" /bin/busybox /usr/bin/busybox
  root_put_programs "$root" bash dash awk chrt env find grep ip mktemp nice nohup nproc prlimit rdma sed setpriv setsid \
    sort stat tee timeout xargs
  ln -s dash "$root/usr/bin/sh"
  root_put_programs "$root" ibv_devices ibv_devinfo ibv_rc_pingpong ib_read_bw ib_read_lat
  # glibc opens this one when a thread ends.
  path=$(ldconfig -p 2>/dev/null || /sbin/ldconfig -p)
  path=$(sed -nE 's/^\s*libgcc_s\.so\.1 .*x86-64.* => //p' <<<"$path" | head -n 1)
  root_put "$root" "${path:?libgcc_s}" "$path"
  for path in /usr/lib/*/libibverbs/librxe-*.so; do
    [ -e "$path" ] || root_die "libibverbs has no provider for rxe here"
    root_put "$root" "$path" "$path"
  done
  [ ! -d /usr/lib/locale/C.utf8 ] || root_put_tree "$root" /usr/lib/locale/C.utf8 /usr/lib/locale/C.utf8
  mkdir -p "$root/etc/libibverbs.d"
  echo 'driver rxe' >"$root/etc/libibverbs.d/rxe.driver"
  printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n' >"$root/etc/passwd"
  printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
  printf '127.0.0.1 localhost\n10.77.0.1 rxe0\n10.77.0.2 rxe1\n' >"$root/etc/hosts"
}

# root_pack ROOT FILE: the initramfs. All in it is root's.
root_pack() { (cd "$1" && find . -mindepth 1 -print0 | cpio --null -o -H newc --quiet -R 0:0) >"$2"; }
