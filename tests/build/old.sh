#!/bin/sh
# old.sh LIBRARY SCRATCH: in out/NAME the ten jobs that were used last stay; of the others those that are in use, or
# hold what pipec did not write; never what a user has made or named.
. "$(dirname "$0")/setup"

build() { "$pipec" build s.pipe -D rate="$1" >log 2>&1 && readlink out/s/last; }
jobs() { find out/s -mindepth 1 -maxdepth 1 -type d -name '[0-9a-f]*' | wc -l; }

# In use, though the first of all.
"$pipec" run s.pipe --steps 100000000 --quiet >run.log 2>&1 &
job=$!
until [ -h out/s/last ] || ! kill -0 $job; do sleep 0.05; done 2>/dev/null
running=$(readlink out/s/last)
with_file=$(build 0.11)
: >"out/s/$with_file/mine.txt"
with_program=$(build 0.12)
echo 'int main(void) { return 0; }' >"out/s/$with_program/rank7.c"
cut_off=$(build 0.13)
rm "out/s/$cut_off/job" "out/s/$cut_off/rank1"
: >"out/s/$cut_off/rank1.c.815.new"
first=$(build 0.14)
second=$(build 0.15)
"$pipec" build s.pipe -o out/s/named >log 2>&1
mkdir -p out/s/0123456789abcdef out/s/notes
: >out/s/0123456789abcdef/rank0.c
[ "$(jobs)" = 7 ]
verdict seven $?
for rate in 21 22 23 24; do build 0.$rate >/dev/null; done
[ "$(jobs)" = 11 ] && [ -d "out/s/$cut_off" ]
verdict ten $?
# Ten with a lock so far, and that which holds no job: the next ones push out the oldest.
[ "$(build 0.14)" = "$first" ] && for rate in 25 26 27 28 29 30; do build 0.$rate >/dev/null || exit 1; done
verdict built $?
[ -x "out/s/$running/rank0" ] && [ -x "out/s/$running/rank1" ] && kill -0 $job
verdict in-use $?
[ -f "out/s/$with_file/mine.txt" ] && [ -x "out/s/$with_file/rank0" ] && [ -f "out/s/$with_program/rank7.c" ] &&
    [ -x "out/s/$with_program/rank1" ]
verdict strange-files $?
[ ! -e "out/s/$cut_off" ] && [ ! -e "out/s/$second" ]
verdict removed $?
[ -x "out/s/$first/rank0" ]
verdict used-again $?
[ -x out/s/named/rank1 ] && [ -f out/s/0123456789abcdef/rank0.c ] && [ -d out/s/notes ]
verdict not-ours $?
[ "$(readlink out/s/last)" = "$(build 0.30)" ] && [ -x out/s/last/rank1 ]
verdict last $?
kill -INT $job && wait $job
build 0.31 >/dev/null && [ ! -e "out/s/$running" ]
verdict no-longer-in-use $?

# Ten at once, while what they use is pushed out by others: each learns what it learns alone.
round=0
"$pipec" run s.pipe -o alone -D rate=0.5 --quiet --losses alone.losses >log 2>&1
while [ $round -lt 3 ]; do
    jobs=''
    for rate in 1 2 3 4 5 6; do
        CC=true "$pipec" build s.pipe -D rate=$round.$rate >/dev/null 2>&1 &
        jobs="$jobs $!"
        "$pipec" run s.pipe -D rate=0.5 --quiet --losses "losses-$rate" >"log-$rate" 2>&1 &
        jobs="$jobs $!"
    done
    # shellcheck disable=SC2086
    wait $jobs
    for rate in 1 2 3 4 5 6; do
        cmp "losses-$rate" alone.losses || cat "log-$rate"
        rm -f "losses-$rate"
    done
    round=$((round + 1))
done >log 2>&1
[ ! -s log ]
verdict together $?
