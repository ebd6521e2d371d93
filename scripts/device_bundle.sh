#!/bin/bash
# Collects what runs on another x86-64 Linux into one folder: `scripts/device_bundle.sh PROGRAM... FOLDER`; `make
# device-bundle` calls it. The programs with the libraries that they load, the experiments, and `run`:
#
#   FOLDER/run distmind-sim run experiments/quickstart.ini
#
# Left out are the libraries that belong to the target: libc and its family (this machine's must not be newer than the
# target's), the GPU driver's, and the RDMA stack with its providers, which speaks to the target's kernel.
set -euo pipefail
cd "$(dirname "$0")/.." || exit 1

targets_own='^(ld-linux.*|libc|libm|libpthread|libdl|librt|libresolv|libutil|libmvec|libcuda|libnvidia.*|libibverbs|librdmacm|libefa|libmlx[45]|libnl-.*)\.so'
size_max_mb=40

[ $# -ge 2 ] || { echo "usage: $0 PROGRAM... FOLDER" >&2; exit 2; }
programs=("${@:1:$#-1}")
folder=${*: -1}

# The folder appears whole: an older one is replaced only once the new one is there.
partial=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$partial"' EXIT
chmod 755 "$partial"
mkdir "$partial/bin" "$partial/lib"
install -m 755 "${programs[@]}" "$partial/bin"

# NAME => PATH (ADDRESS); a library that is not found must not go unnoticed.
ldd "${programs[@]}" | awk '/=>/ { print $1, $3 }' | sort -u >"$partial/libraries"
while read -r name path; do
  [[ ! $name =~ $targets_own ]] || continue
  [ "$path" != not ] || { echo "$name is not found" >&2; exit 1; }
  install -m 644 "$path" "$partial/lib/$name"
done <"$partial/libraries"
rm "$partial/libraries"

for file in $(find experiments traces -type f); do
  install -D -m 644 "$file" "$partial/$file"
done
for file in scripts/paper/measure_06.sh scripts/paper/unpickle.py scripts/real_load.sh scripts/naive_load.py scripts/validate_h200.sh scripts/validate.sh; do
  install -D -m 755 "$file" "$partial/$file"
done

cat >"$partial/run" <<'RUN'
#!/bin/bash
# run PROGRAM [ARGUMENT]...: one of bin/, with the libraries that came with it. Relative paths are the caller's.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || exit 1
[ $# -ge 1 ] && [ -x "$here/bin/$1" ] || { echo "usage: $0 PROGRAM [ARGUMENT]...; programs: $(ls "$here/bin" | xargs)" >&2; exit 2; }
program=$here/bin/$1
shift
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
exec "$program" "$@"
RUN
chmod 755 "$partial/run"

# It must start from there.
for program in "${programs[@]}"; do
  "$partial/run" "$(basename "$program")" --help >/dev/null || { echo "$program does not start from $partial" >&2; exit 1; }
done
size_mb=$(du -sm "$partial" | cut -f1)
[ "$size_mb" -le $size_max_mb ] || { echo "$partial has $size_mb MB, more than $size_max_mb" >&2; exit 1; }

rm -rf "$folder"
mv "$partial" "$folder"
trap - EXIT
# Without objdump (binutils) what is known is that this machine's is new enough.
glibc=$(objdump -T "$folder"/bin/* "$folder"/lib/* 2>/dev/null | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1) || true
echo "$folder: $size_mb MB, needs ${glibc:-$(getconf GNU_LIBC_VERSION)} or newer"
echo "copy it to the other machine; there: $(basename "$folder")/run distmind-real doctor"
