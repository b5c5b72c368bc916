#!/bin/sh
# failure.sh RUNTIME SCRATCH: ranks that die, stall or fail; bad data; bad folders; Ctrl-C.
# alone: a job that fails must end in so many seconds
. "$(dirname "$0")/setup"
build 3
build 1

milliseconds() { echo $(($(date +%s%N) / 1000000)); }
# The pid of the rank program $1, a child of the pprun $2; by /proc, since ps is not everywhere.
rank_pid() {
    for process in /proc/[0-9]*; do
        grep -q "^PPid:[[:space:]]*$2\$" "$process/status" 2>/dev/null && grep -q "$1" "$process/cmdline" 2>/dev/null &&
            basename "$process"
    done
}
# The rank programs of this folder that still run.
ranks_left() {
    for process in /proc/[0-9]*; do
        [ "$(readlink "$process/cwd" 2>/dev/null)" = "$PWD" ] && grep -q '^[.]/check3_' "$process/cmdline" 2>/dev/null &&
            ! grep -q '^State:[[:space:]]*Z' "$process/status" && basename "$process"
    done
}
# start NAME OPTION...: a long job of 3 ranks in the background, which has run for half a second.
start() {
    name=$1
    shift
    PP_WORK=${PP_WORK:-1000} "$runtime/pprun" --steps 100000 "$@" 3 check3_ > "$name" 2>&1 &
    job=$!
    sleep 0.5
}
# finish LIMIT: waits for the job; sets status and took; no rank may be left.
finish() {
    began=$(milliseconds)
    wait $job
    status=$?
    took=$(($(milliseconds) - began))
    [ $took -le $1 ] || not_ok "$name-time" "$took ms, at most $1 are allowed"
    [ -z "$(ranks_left)" ] || not_ok "$name-left" "ranks are left behind"
}
same() { [ "$2" = "$3" ] || not_ok "$1" "status $2, not $3: $(tail -3 "$1" | tr '\n' '|')"; }

start killed
kill -9 "$(rank_pid check3_2 $job)"
finish 1000
same killed $status 1
expect killed killed 'rank 2 died (signal 9, killed) [a-z]' '  rank 0 was waiting for ' '  rank 1 was '

start stopped
stopped=$(rank_pid check3_1 $job)
kill -STOP "$stopped"
finish 5500
same stopped $status 1
expect stopped stopped 'rank 1 stalled .*it is stopped' 'rank 0 was waiting for .* from rank [12]' 'rank 2 was waiting'

PP_HOLD=1 start asleep
finish 6500
same asleep $status 1
expect asleep asleep 'rank 1 stalled in 0F0 of step 3: it sleeps' 'rank 2 was waiting for RECV_F[0-9]* from rank 1'

# 6 s in one action, but computing: no stall; then pprun itself is killed
PP_SPIN=6000000 start busy
sleep 6
kill -0 $job 2> /dev/null && ! grep -q pprun: busy && ok busy || not_ok busy "$(cat busy)"
kill -9 $job
finish 1000
same outlived $status 137
[ "$status" = 137 ] && ok outlived      # finish looks for ranks that are left behind

rm -rf saved
start interrupted --save saved --losses stepped
kill -INT $job
finish 2000
same interrupted $status 0
expect interrupted interrupted 'stopping after step' '^stopped after'
at=$(sed -n 's/.*stopping after step \([0-9]*\);.*/\1/p' interrupted)
[ "$(tail -1 stepped | cut -d' ' -f1)" = "$at" ] && [ -f saved/model.safetensors.index.json ] &&
    ok interrupted-saved || not_ok interrupted-saved "after step $at"

PP_WORK=400000 start twice
kill -TERM $job
sleep 0.1
kill -TERM $job
finish 1000
same twice $status 130
expect twice twice 'killed in step'

# A rank is told to end as soon as it is forked: the signal may not be lost on the way to its exec.
lost=0
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    "$runtime/pprun" --steps 100000 --quiet 3 check3_ > early 2>&1 &
    job=$!
    pid=''
    while [ -z "$pid" ] && kill -0 $job; do read -r pid rest < /proc/$job/task/$job/children; done 2> /dev/null
    kill -TERM "$pid"
    tries=0
    while kill -0 $job 2> /dev/null && [ $tries -lt 30 ]; do sleep 0.1; tries=$((tries + 1)); done
    kill -KILL $job 2> /dev/null
    wait $job
    [ $? = 1 ] && grep -q 'died (signal 15, terminated)' early || lost=$((lost + 1))
done
[ $lost = 0 ] && ok early || not_ok early "$lost of 20 signals were lost, or nobody was told: $(cat early)"

# ---- data ----

# bad NAME TEXT OPTION...: three ranks refuse with status 1 and the text.
bad() {
    name=$1 text=$2
    shift 2
    "$runtime/pprun" --steps 3 --quiet "$@" 3 check3_ > "$name" 2>&1
    same "$name" $? 1
    expect "$name" "$name" "$text"
}
: > empty.txt
printf '12345678' > short.txt
printf 'aaaaaaaaaaaaaaaaaaa\377' > high.txt
bad missing-data "rank 0 failed: no data: nothing is named 'none.txt' in .*--data" --data none.txt
bad empty-data 'empty.txt has 0 tokens, but a sample of 8 and its target need at least 9' --data empty.txt
bad short-data 'short.txt has 8 tokens, .* need at least 9' --data short.txt
bad high-token 'token 255 at position 19 of high.txt, but the vocabulary is 128 (0 to 127)' --data high.txt
bad folder-data 'the data . is not a regular file' --data .
"$runtime/pprun" --steps 3 --data '[es]*rt.txt' 1 check1_ > short 2>&1
[ $? = 1 ] || not_ok glob "one short file is too short"
cp short.txt shorter.txt
"$runtime/pprun" --steps 3 --data 'short*.txt' 1 check1_ > glob 2>&1 && ok glob || not_ok glob "$(cat glob)"

# ---- --save ----

bad save-file 'cannot make the folder corpus.txt/x for --save: Not a directory' --save corpus.txt/x
bad save-proc 'cannot .*/proc/1/x.* for --save' --save /proc/1/x
rm -rf full && mkdir full && ln -s /dev/full full/check-rank1-of-3.safetensors.new
bad full-disk 'rank 1 failed.*cannot write full/check-rank1-of-3.safetensors: No space left' --save full
ls full/*.new full/*index* > list 2> /dev/null && not_ok full-disk "left: $(cat list)"
exit $failed
