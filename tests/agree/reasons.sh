#!/bin/sh
# reasons.sh RUNTIME SCRATCH: why an action waits is one thing, whether explain says it in words or the page of
# `inspect -o X.html` when it is clicked: kind of wait, the action that it waited for, and the path back to the begin.
# A measured page has them as well.
. "$(dirname "$0")/agree"

# Of an action, from explain: WAITS FROM; the digit by the words (Waits in nodes.h).
said_of='
/How that came to be:$/ { chain = 1; next }
chain == 1 && /^$/ { chain = 2 }
chain == 1 { before = last; last = $0 }
END {
    if (before == "") { print 0, "-"; exit }
    before = substr(before, index(before, "rank "))
    sub(/^rank [0-9]+ +/, "", before)
    from = before; sub(/ .*/, "", from)
    words = substr(before, length(from) + 1); sub(/^ +/, "", words)
    waits = "?" words
    if (words ~ / is next on this rank$/) waits = 1
    if (words ~ /^[0-9]+SEND_[FB][0-9]+ to rank /) waits = 2
    if (words ~ /^the link [0-9]+ -> [0-9]+ is the cause: /) waits = 3
    if (words ~ /^its receive is the cause: /) waits = 4
    if (words ~ /^a buffer of rank [0-9]+ is the cause: /) waits = 5
    print waits, from
}'

# agree NAME WORD...: explain and the page, for the idle actions of a plan.
checked=0
agree() {
    name=$1
    shift
    : >wrong
    "$pipec" inspect "$@" -o page.html && awk -f "$here/page.awk" page.html >actions
    awk '$4 > 0' actions >idle
    awk '{ print $5 }' idle >>kinds
    while read -r plan rank action idle waits from rest; do
        said=$("$pipec" explain "$@" "$action" --all | awk "$said_of")
        checked=$((checked + 1))
        [ "$said" = "$waits $from" ] || echo "$name $action: the page has $waits $from, explain $said" >>wrong
    done <idle
    # The critical path: of the action that ends the step.
    awk '{ cause[$3] = $6; if ($8 >= end) { end = $8; last = $3 } }
         END { for (; last != "-"; last = cause[last]) print last }' actions >path
    "$pipec" explain "$@" "$(head -1 path)" --all | awk '
        /^the longest path through/ { path = 1; next }
        path && /^$/ { exit }
        path { $0 = substr($0, index($0, "rank ")); print $3 }' >explained
    awk '{ line[NR] = $0 } END { while (NR) print line[NR--] }' explained | cmp -s - path ||
        echo "$name: other critical paths: $(tr '\n' ' ' <explained), page: $(tr '\n' ' ' <path)" >>wrong
    verdict "$name: one reason"
}

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
