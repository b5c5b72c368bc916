#!/bin/sh
# data.sh LIBRARY SCRATCH: data that is no file, and data that becomes shorter while it is read, is named.
. "$(dirname "$0")/setup"

sed -e 's/input .*/input tokens[8] of 128/' -e 's/a : .*/a : embedding(8)/' -e 's/b : .*/b : linear(128)/' \
    -e 's/loss : mse/loss : cross_entropy/' -e 's/numbers "points"/bytes "text"/' s.pipe >t.pipe
fill() { awk 'BEGIN { for (i = 0; i < 20000; i++) print "the quick brown fox" }' >text; }

# shorter NAME BYTES: the job is under way when the file loses its end
shorter() {
    fill
    "$pipec" run t.pipe -D rate=0.0001 --steps 100000000 --losses losses >log 2>&1 &
    job=$!
    until [ -s losses ] || ! kill -0 $job; do sleep 0.05; done 2>/dev/null
    truncate -s "$2" text
    wait $job
    [ $? = 1 ] && grep -q "rank [01] failed.*: the data text became shorter while it was read: 400000 bytes, now $2" log
    verdict "$1" $?
    rm -f losses
}
shorter within-a-page 399999
shorter pages 4096
shorter all 0

mkfifo pipe
for command in 't.pipe -D data=pipe' 's.pipe -D data=pipe' 's.pipe -D data=/dev/zero'; do
    # shellcheck disable=SC2086
    "$pipec" run $command >log 2>&1
    [ $? = 1 ] && grep -q "cannot read the data ${command##*=}: it is not a regular file" log
    verdict "$command" $?
done
