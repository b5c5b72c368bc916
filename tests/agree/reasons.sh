#!/bin/sh
# reasons.sh RUNTIME SCRATCH: why an action waits is one thing, whether explain says it in words or the page of
# `inspect -o X.html` when it is clicked: kind of wait, the action that it waited for, and the path back to the begin.
# A measured page has them as well.
. "$(dirname "$0")/agree"

cat >m.pipe <<'END'
model m { input x[16]; a : linear(16) * 12; loss : mse }
pipeline { stages 2  microbatches 6  schedule gpipe }
cluster { forward 1ms  backward 2ms }
END
cat >tall.pipe <<'END'
let wide = 4000
model m { input x[16]; a : linear(16) * 4; b : linear(wide); c : linear(16); d : linear(16) * 6; loss : mse }
pipeline { stages 3  microbatches 5  schedule 1f1b }
cluster { forward [1ms 3ms 1ms]  backward [2ms 2ms 5ms]  link 20k  latency 300us }
END

: >kinds
agree posted m.pipe --target cuda -D latency=5ms -D 'forward=[1ms 2ms]'
grep -q '^0 1 1F2 [0-9]* 4 1F0 ' actions && echo "ok 1F2 waits for its receive" || echo "not ok 1F2: $(grep ' 1F2 ' actions)"
agree wires m.pipe -D link=20k
agree wires-cuda m.pipe --target cuda -D link=20k -D latency=3ms
agree buffers m.pipe --target cuda -D schedule=bfs -D virtual=2 -D microbatches=4 -D latency=8ms
agree vee m.pipe -D schedule=zbv -D virtual=2 -D link=30k -D microbatches=4
agree interleaved m.pipe --target cuda -D schedule=interleaved -D virtual=2 -D latency=1ms -D microbatches=4
agree unequal tall.pipe
agree unequal-cuda tall.pipe --target cuda -D schedule=eager
agree adapter m.pipe --target cuda -D stages=4 -D link=20k -D node=2 -D node_link=100k -D adapter=shared
agree twin m.pipe -D schedule=chimera -D link=40k -D microbatches=4
agree buffered m.pipe --target cuda -D latency=5ms
for waits in 2 3 4 5; do
    grep -q "^$waits" kinds && echo "ok waits of kind $waits occur" || echo "not ok no wait of kind $waits"
done
[ $checked -ge 100 ] && echo "ok $checked waits" || echo "not ok only $checked waits"

# ---- a measured page ----

cat >run.pipe <<'END'
model m { input tokens[8] of 256; e : embedding(16); a : linear(16) * 6; o : linear(256); loss : cross_entropy }
pipeline { stages 2  virtual 2  microbatches 4  rows 2  schedule interleaved }
train { data bytes "run.pipe"  optimizer sgd(lr = 0.1)  steps 4 }
END
: >wrong
"$pipec" run run.pipe -o out --quiet --trace t.trace >said 2>&1 || cat said >>wrong
"$pipec" inspect run.pipe --measured t.trace -o page.html 2>>wrong
# Every action but the first has a cause that ended before, and the critical path leads back to the begin.
awk -f "$here/page.awk" page.html | awk '
    $1 == 1 { n++; cause[$3] = $6; start[$3] = $7; stop[$3] = $8; waits[$3] = $5
              if (first == "" || $7 < start[first]) first = $3
              if (last == "" || $8 > stop[last]) last = $3 }
    END {
        if (n != 32) print n " measured actions, not 32"
        for (a in cause) {
            if (cause[a] == "-" && a != first) print a " has no cause"
            if (waits[a] == 0 && a != first) print a " waits for nothing"
            if (cause[a] != "-" && start[cause[a]] > start[a]) print a " waits for " cause[a] ", which is later"
        }
        for (; cause[last] != "-" && steps < 99; last = cause[last]) steps++
        if (last != first || steps < 8) print "the critical path has " steps " steps and begins with " last
    }' >>wrong
verdict "a measured page has causes and a critical path"

# A trace with the very times of the plan has its causes.
for settings in "-D link=10k -D microbatches=8" "-D latency=3ms" "-D link=30k -D latency=1ms -D schedule=1f1b"; do
    # shellcheck disable=SC2086
    set -- m.pipe $settings
    "$pipec" check "$@" --dump=prove | awk -f "$here/trace.awk" >t.trace
    "$pipec" inspect "$@" --measured t.trace -o page.html 2>wrong
    awk -f "$here/page.awk" page.html | awk '
        { key = $3; what = $5 " " $6 }
        $1 == 0 { said[key] = what; next }
        { n++; if (what != said[key]) print key ": planned " said[key] ", measured " what }
        END { if (n < 24) print n + 0 " measured actions" }' >>wrong
    verdict "measured as planned: one reason, $settings"
done
