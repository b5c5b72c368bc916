#!/bin/sh
# own.sh LIBRARY SCRATCH: of what lies in a folder that the user has named, pipec touches only what it wrote itself.
. "$(dirname "$0")/setup"

build() { "$pipec" build four.pipe -o mine "$@" >log 2>&1; }
sed 's/b : linear(1)/b : linear(4)\n    c : linear(4)\n    d : linear(1)/' s.pipe >four.pipe
# refused NAME FILE: the file stays as it is, and is named
refused() {
    cp -R "mine/$2" kept
    ! build -D stages=2 && grep -q "mine/$2 is in the way: pipec did not write it" log && diff -r "mine/$2" kept >>log
    verdict "$1" $?
    rm -rf kept "mine/$2"
}
mkdir mine
echo 'int main(void) { return 0; }' | tee mine/rank3.c mine/rank7.c >mine/rank12.cu
echo 'a list' | tee mine/rank3 mine/rank7 mine/rank0.txt mine/rank >mine/rank5.c.orig
build -D stages=2 && [ -x mine/rank1 ] && [ ! -e mine/rank2 ] && [ "$(cat mine/rank3.c mine/rank7.c mine/rank12.cu | wc -l)" = 3 ] &&
    [ "$(cat mine/rank3 mine/rank7 mine/rank0.txt mine/rank mine/rank5.c.orig | wc -l)" = 5 ]
verdict kept $?
refused_before=$(cat mine/job mine/rank?.c | cksum)
! build -D stages=4 && grep -q 'mine/rank3.c is in the way' log && [ "$(cat mine/job mine/rank?.c | cksum)" = "$refused_before" ]
verdict refused-whole $?
rm mine/rank3.c
! build -D stages=4 && grep -q 'mine/rank3 is in the way' log
verdict refused-program $?
rm mine/rank3
build -D stages=4 && [ -x mine/rank3 ]
verdict four-ranks $?
: >mine/rank2.c.815.new
build -D stages=2 && [ ! -e mine/rank2 ] && [ ! -e mine/rank3.c ] && [ ! -e mine/rank2.c.815.new ] && [ -f mine/rank7 ]
verdict only-ours-removed $?

rm -rf mine && mkdir mine
echo text >mine/rank1.c
refused source rank1.c
ln -s ../points mine/rank0.c
! build -D stages=2 && grep -q 'mine/rank0.c is in the way' log && [ "$(readlink mine/rank0.c)" = ../points ]
verdict link $?
rm mine/rank0.c
mkdir mine/rank0
refused folder rank0
echo text >mine/job
refused stamp job
build -D stages=2
verdict free $?

# The files for mpirun and srun, with stand-ins for what CUDA brings.
mkdir -p copy/bin copy/lib
cp "$pipec" copy/bin/pipec
cp -R "$library" copy/lib/pipec
: >copy/lib/pipec/libpp_cuda_bf16.a
printf '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\n: >"$2"\nchmod +x "$2"\n' >nvcc
chmod +x nvcc
cuda() { NVCC=./nvcc copy/bin/pipec build four.pipe -o mine --target cuda -D dtype=bf16 "$@" >log 2>&1; }
cuda && grep -q '^-np 1 mine/rank1$' mine/mpirun.app && grep -q '^1 mine/rank1$' mine/srun.conf && [ ! -e mine/rank0.c ]
verdict cuda $?
rm mine/job
echo mine >mine/srun.conf
! cuda && grep -q 'mine/srun.conf is in the way' log && [ "$(cat mine/srun.conf)" = mine ]
verdict srun $?

# A name that would be another one in those files is refused, before anything is written.
rm -rf mine
words() { # the programs that a file names, as they are split there: at spaces, without those in front
    sed '/^#/d' "$1" | awk -v skip="$2" '{ if (NF != skip + 1) print "words:", NF; print $(skip + 1) }'
}
named() { NVCC=./nvcc copy/bin/pipec build four.pipe --target cuda -D dtype=bf16 -o "$1" >log 2>&1; }
for name in plain 'sub/of.it' 'h\303\251-1,2:3=4+5@6~7' './here'; do
    folder=$(printf "$name")
    named "$folder" && [ "$(words "$folder/mpirun.app" 2)" = "$(words "$folder/srun.conf" 1)" ] &&
        words "$folder/srun.conf" 1 | while read -r program; do [ -x "$program" ] || echo "$program"; done >missing &&
        [ ! -s missing ] && [ "$(words "$folder/srun.conf" 1 | wc -l)" = "$(ls "$folder"/*.cu | wc -l)" ]
    k=$((${k:-0} + 1))
    verdict "starters-$k" $?
done
for name in 'a b' 'a\tb' 'a\nb' "a'b" 'a"b' 'a\\b' '#a' 'a%%tb' 'a$b' 'a*b' 'a?b' 'a[1]' 'a`b' 'a\033b' 'a;b' 'a\177b' '!a'; do
    folder=$(printf "$name")
    ! named "$folder" && [ ! -e "$folder" ] && [ "$(wc -l <log)" = 2 ] && grep -q 'cannot stand in mpirun.app and srun.conf' log &&
        grep -q 'help: .*-o FOLDER' log
    k=$((k + 1))
    verdict "starters-refused-$k" $?
done
"$pipec" build s.pipe -o 'a b $c' >log 2>&1 && [ -x 'a b $c/rank0' ]
verdict 'cpu-any-name' $?
