#!/bin/sh
# install.sh LIBRARY SCRATCH: an installed pipec trains, and uninstall removes what install has put there, nothing else.
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$2" || exit 1
scratch=$PWD to=$PWD/at/usr
verdict() { [ "$2" -eq 0 ] && echo "ok $1" || { echo "not ok $1"; tail -5 log; }; }
goal() { make -C "$root" DESTDIR="$scratch/at" PREFIX=/usr "$@" >log 2>&1; }
files() { (cd "$to" && find . -type f | sort) >"$1"; }

mkdir -p "$to/lib/pipec" "$to/bin"
echo mine >"$to/lib/pipec/mine"
echo mine >"$to/bin/mine"
files before
goal install && files installed && [ "$(comm -13 before installed | tr '\n' ' ')" = "./bin/pipec ./include/pp.h \
./lib/pipec/libpp.a $(cd "$root/build" && ls lib/pipec/libpp_cuda_*.a 2>/dev/null | sed 's|^|./|' | tr '\n' ' ')\
./lib/pipec/pp.h ./lib/pipec/pprun ./share/man/man1/pipec.1 " ]
verdict install $?

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
