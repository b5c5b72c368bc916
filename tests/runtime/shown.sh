#!/bin/sh
# shown.sh RUNTIME SCRATCH: whatever a name holds, a message is one line, and no byte of it is one that a terminal obeys.
. "$(dirname "$0")/setup"
compile numbers data.c -DNUMBERS
build 2
bad=$(printf 'a\n\033[31mb\001\177\302\205c\342\200\256d\377e')
cp corpus.txt plain
: >"$bad"

# shows NAME LINES WORD...: so many lines, of bytes that are seen
shows() {
    name=$1 lines=$2
    shift 2
    "$@" >said 2>&1
    [ $? -ne 0 ] && [ "$(wc -l <said)" = "$lines" ] && grep -q 'a??\[31mb' said &&
        [ "$(LC_ALL=C tr -d '\n\040-\176' <said | wc -c)" = 0 ] && ok "$name" || not_ok "$name" "$(od -c said | head -20)"
}
shows alone-data 1 ./numbers --data "$bad"
shows alone-missing 1 ./numbers --data "no $bad"
run() { "$runtime/pprun" --quiet "$@" 2 ./check2_; }
shows data 1 run --data "no $bad"
shows save 1 run --data plain --save "$bad"
shows losses 1 run --data plain --losses "none/$bad"
shows full 1 run --data plain --trace "none/$bad.trace"
shows trace 1 run --data plain --trace "$bad"
shows prefix 1 "$runtime/pprun" --quiet 2 "./$bad"
first() { "$@" 2>&1 | head -1; false; }
shows option 1 first run --data plain "--$bad" x
exit $failed
