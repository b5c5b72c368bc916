#!/bin/sh
# runner.sh LIBRARY SCRATCH: tests/run itself, on tests made for it: all cores, the order of what is printed, counts,
# tests that run alone, and the end by a signal.
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$2" || exit 1
mkdir -p tests/a tests/b tests/c kept
cp "$root/tests/run" tests/run
export TMPDIR="$PWD/kept"
unset bless BLESS
verdict() { [ "$2" -eq 0 ] && echo "ok $1" || { echo "not ok $1"; cat log; }; }
ran() { sh tests/run "$@" 2>&1 | sed 's/  *[0-9]* s$//' >log; }

printf 'made:\n\techo made >made\n' >Makefile
# Two that wait for each other: with one core the first gives up.
for name in one two; do
    cat >tests/a/$name.sh <<END
: >here-$name
for i in \$(seq 50); do [ -f here-one ] && [ -f here-two ] && echo "ok $name" && exit; sleep 0.1; done
[ "\$(nproc)" = 1 ] && echo "ok $name"
END
done
cat >tests/b/alone.sh <<'END'
# alone: as a test of this
# needs: made
[ -f here-one ] && [ -f here-two ] && [ -f here-late ] && echo ok alone after all
[ -f made ] && echo ok needs
END
cat >tests/c/late.sh <<'END'
sleep 0.5
: >here-late
echo ok late
END
ran
cat >expected <<'END'
  a                   2 ok
  b                   2 ok
  c                   1 ok
5 passed, 0 failed
END
cmp -s log expected
verdict together $?

printf 'echo ok good\necho not ok bad\n' >tests/a/two.sh
echo exit 3 >tests/b/alone.sh
: >tests/c/late.sh
ran
cat >expected <<'END'
FAIL tests/a/two.sh
not ok bad
  a                   2 ok
tests/b/alone.sh ended with exit status 3
FAIL tests/b/alone.sh
  b                   0 ok
tests/c/late.sh tested nothing
FAIL tests/c/late.sh
  c                   0 ok
2 passed, 3 failed
END
cmp -s log expected
verdict failures $?
sh tests/run >log 2>&1
[ $? -eq 1 ]
verdict status $?
ran c && [ "$(tail -1 log)" = '0 passed, 1 failed' ] && ! grep -q alone log
verdict folder $?
ran d && [ "$(cat log)" = 'no test in d' ]
verdict no-folder $?

# One that starts a program in a group of its own, as `timeout` does; both must be gone, and what they wrote.
cat >tests/c/late.sh <<'END'
timeout 60 sleep 7077 &
echo $! >running
wait
END
sh tests/run c >log 2>&1 &
run=$!
while [ ! -s running ]; do sleep 0.1; done
kill -s TERM $run
wait $run
status=$?
state=$(sed -n 's/^State:[[:space:]]*//p' "/proc/$(cat running)/status" 2>/dev/null)
echo "status $status, left: $state $(ls -A kept)" >log
[ $status -eq 130 ] && case $state in '' | Z*) [ -z "$(ls -A kept)" ] ;; *) false ;; esac
verdict ended $?
