#!/bin/sh
# full.sh LIBRARY SCRATCH: what could not be written whole ends with exit status 1 and its name; what stood there stays.
# /dev/full stands for a full disk; where a file system can be mounted, a real one is filled.
. "$(dirname "$0")/setup"

# fails NAME FILE COMMAND WORD...: FILE is not written, which is said
fails() {
    name=$1 file=$2
    shift 2
    "$pipec" "$@" >said 2>log
    status=$?
    [ $status = 1 ] && grep -q "error:.* $file[: ]" log || { echo "status $status" >>log; false; }
    verdict "$name" $?
}
cp s.pipe other.pipe
run() { "$pipec" run s.pipe --quiet "$@" >log 2>&1; }
run --trace m.trace || verdict trace 1

if [ -c /dev/full ]; then
    for file in f.losses f.trace f.json f.svg f.html f.csv f.txt; do
        ln -s /dev/full $file
    done
    fails losses f.losses run s.pipe --quiet --losses f.losses
    fails trace f.trace run s.pipe --quiet --trace f.trace
    fails trace-json f.json run s.pipe --quiet --trace f.json
    for kind in svg html json csv txt; do
        fails picture-$kind f.$kind inspect s.pipe -o f.$kind
    done
    fails measured-svg f.svg inspect s.pipe --measured m.trace -o f.svg
    fails measured-txt f.txt inspect s.pipe --measured m.trace -o f.txt
    fails plot f.svg compare s.pipe -o f.svg
    [ "$(readlink f.svg)" = /dev/full ]
    verdict links-stay $?
fi

# A limit to the length of a file, which shells count in units of 512 or 1,024 bytes.
limited() { (ulimit -f 1 && fails "$@"); }
seq 1000 | sed 's/.*/old &/' >old.svg
cp old.svg p.svg
limited limit-picture p.svg inspect s.pipe -o p.svg
cmp -s p.svg old.svg
verdict limit-picture-stays $?
cp old.svg p.svg
limited limit-plot p.svg compare s.pipe -o p.svg
cmp -s p.svg old.svg
verdict limit-plot-stays $?
limited limit-programs programs/rank0.c build s.pipe -o programs
"$pipec" build s.pipe -o programs >log 2>&1
verdict after-limit $?
[ "$(find . -name '*.new' -o -name '*.tmp' | wc -l)" = 0 ]
verdict nothing-left $?

# A link to a file is followed, and stays.
ln -s real.svg link.svg
"$pipec" inspect s.pipe -o link.svg >log 2>&1 && [ -h link.svg ] && grep -q '<svg' real.svg
verdict link $?

# ---- a file system that is full ----

mkdir disk
if mount -t tmpfs -o size=64k none disk 2>/dev/null; then
    trap 'umount disk' EXIT
    trap 'exit 130' INT TERM
    echo old >disk/p.svg
    head -c 1000000 /dev/zero >disk/zeros 2>/dev/null
    fails disk-picture disk/p.svg inspect s.pipe -o disk/p.svg
    fails disk-losses disk/l run s.pipe --quiet --losses disk/l
    fails disk-trace disk/m.trace run s.pipe --quiet --trace disk/m.trace
    fails disk-save 'disk/save.*' run s.pipe --quiet --save disk/save
    fails disk-programs 'disk/out/rank0.c' build s.pipe -o disk/out
    [ "$(cat disk/p.svg)" = old ] && [ "$(find disk -name '*.new' | wc -l)" = 0 ]
    verdict disk-stays $?
fi
