#!/bin/sh
# install.sh LIBRARY SCRATCH: an installed pipec trains, and uninstall removes what install has put there, nothing else.
# From a copy of the tree, where no other test makes CUDA libraries meanwhile.
# needs: all
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$2" || exit 1
mkdir -p tree/build/lib/pipec
for file in Makefile compiler docs grammar runtime tests/rules.mk; do
    mkdir -p "tree/$(dirname "$file")"
    cp -a "$root/$file" "tree/$file"
done
for file in bin compiler grammar runtime lib/pipec/libpp.a lib/pipec/pp.h lib/pipec/pprun flags objects version; do
    cp -a "$root/build/$file" "tree/build/$file"
done
: >tree/build/lib/pipec/libpp_cuda_f32.a
scratch=$PWD to=$PWD/at/usr
verdict() { [ "$2" -eq 0 ] && echo "ok $1" || { echo "not ok $1"; tail -5 log; }; }
goal() { make -C tree DESTDIR="$scratch/at" PREFIX=/usr "$@" >log 2>&1; }
files() { (cd "$to" && find . -type f | sort) >"$1"; }

mkdir -p "$to/lib/pipec" "$to/bin"
echo mine >"$to/lib/pipec/mine"
echo mine >"$to/bin/mine"
files before
goal install && files installed && [ "$(comm -13 before installed | tr '\n' ' ')" = "./bin/pipec ./include/pp.h \
./lib/pipec/libpp.a ./lib/pipec/libpp_cuda_f32.a ./lib/pipec/pp.h ./lib/pipec/pprun ./share/man/man1/pipec.1 " ]
verdict install $?
! grep '^  cc' log
verdict nothing-compiled $?

printf '1 2\n3 4\n' >points
cat >m.pipe <<'END'
model m {
    input points[1]
    a : linear(1)
    loss : mse
}
pipeline { stages 1 microbatches 2 rows 1 schedule 1f1b }
train { data numbers "points" optimizer sgd(lr = 0.1) steps 2 }
END
"$to/bin/pipec" run m.pipe -o out >log 2>&1 && grep -q '^done: 2 steps' log
verdict installed-runs $?

goal uninstall && files after && cmp -s before after
verdict uninstall $?
rm "$to/lib/pipec/mine"
goal install uninstall -j1 && [ ! -d "$to/lib/pipec" ] && [ -f "$to/bin/mine" ]
verdict uninstall-folder $?
