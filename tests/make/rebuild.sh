#!/bin/sh
# rebuild.sh LIBRARY SCRATCH: what make does again after a change, in a copy of the tree: a schedule or another file
# that comes or goes, a version, a header. Without a change it does nothing.
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir "$2/tree"
cp -R "$root/Makefile" "$root/compiler" "$root/docs" "$root/grammar" "$root/runtime" "$root/tests" "$2/tree"
cd "$2/tree" || exit 1
unset MAKEFLAGS MAKELEVEL
pipec=build/bin/pipec

verdict() { [ "$2" -eq 0 ] && echo "ok $1" || { echo "not ok $1"; tail -5 log; }; }
build() { make CFLAGS=-O0 "$@" >log 2>&1; }
# made: what the last build has compiled and linked
made() { sed -n 's/^  \(cc\|ar\|ld\) //p' log | tr '\n' ' '; }
made_is() { build all && [ "$(made)" = "$1" ]; }
knows() { $pipec --help schedules | grep -q "^  $1 "; }

build all
made_is ''
verdict nothing $?

# A schedule is a file.
sed 's/gpipe/copied/g' compiler/order/schedules/gpipe.c >compiler/order/schedules/copied.c
build all && knows copied
verdict schedule-added $?
rm compiler/order/schedules/copied.c
build all && ! knows copied && knows gpipe
verdict schedule-deleted $?

# What is compiled but has no source any more is not linked.
echo 'int pp_gone(void); int pp_gone(void) { return 0; }' >runtime/cpu/gone.c
build all && nm build/lib/pipec/libpp.a | grep -q pp_gone
verdict source-added $?
rm runtime/cpu/gone.c
build all && ! nm build/lib/pipec/libpp.a | grep -q pp_gone && [ -f build/runtime/cpu/gone.o ]
verdict source-deleted $?

touch compiler/order/written.h
build all && made | grep -q 'compiler/order/schedule_block.c .*build/bin/pipec' && ! made | grep -q 'graph.c\|runtime'
verdict header $?

build VERSION=9.8.7 all && [ "$($pipec --version)" = 'pipec 9.8.7' ]
verdict version $?
build all && [ "$($pipec --version)" = "pipec $(sed -n 's/^VERSION = //p' Makefile)" ]
verdict version-back $?

# CUDA objects, with a compiler that only writes what it is asked for: the real one says which headers it read.
cat >nvcc <<'END'
#!/bin/sh
for word in "$@"; do
    case $before in
    -MF) dependencies=$word ;;
    -MT) target=$word ;;
    -c) source=$word ;;
    esac
    before=$word
done
echo "$target: $source $(sed -n 's|^#include "\(.*[.]cuh\)"|runtime/cuda/\1|p' "$source" | tr '\n' ' ')" >"$dependencies"
echo "$source" >>"$0.log"
: >"$target"
END
chmod +x nvcc
cuda() { rm -f nvcc.log && build NVCC=./nvcc "$@" cuda; }
cuda && [ "$(wc -l <nvcc.log)" = $((2 * $(ls runtime/cuda/*.cu | wc -l))) ]
verdict cuda $?
cuda && [ ! -f nvcc.log ]
verdict cuda-nothing $?
touch runtime/cuda/sums.cuh
cuda && [ "$(sort -u nvcc.log)" = "$(grep -l '"sums.cuh"' runtime/cuda/*.cu)" ]
verdict cuda-header $?
cuda CUDA_ARCHS=75 && [ "$(wc -l <nvcc.log)" = $((2 * $(ls runtime/cuda/*.cu | wc -l))) ]
verdict cuda-flags $?
