#!/bin/sh
# random.sh LIBRARY SCRATCH: random plans with unequal messages, emulated: processes that know how long an action and a
# message take, and not when the plan wants them, come out at the plan's makespan by their clocks, to 0.5 %. The clocks
# are of model time, so the machine's load is nothing to them. PLANS of them, 30 unless given, from seed SEED.
pipec=$1/../../bin/pipec
cd "$2" || exit 1

# plan SEED FILE: seven to nine layers of random widths, on 2 to 4 ranks, in one of the schedules that fit
plan() {
    awk -v seed="$1" '
        function random(most) { seed = seed * 16807 % 2147483647; return int(seed / 2147483647 * most) }
        function pick(list, at, n) { n = split(list, at, " "); return at[1 + random(n)] }
        function times(count, text, i) {
            if (random(2)) return (1 + random(6)) / 2 "ms"
            for (i = 0; i < count; i++) text = text " " (1 + random(8)) / 4 "ms"
            return "[" text " ]"
        }
        BEGIN {
            for (i = 0; i < 5; i++) random(2)
            ranks = 2 + random(3)
            schedule = pick("1f1b gpipe eager zbh1 zbh2 interleaved bfs zbv vhalf vmin hanayo dualpipe dualpipev chimera")
            two = schedule ~ /interleaved|bfs|zbv|vhalf|vmin|hanayo|dualpipev/
            twin = schedule ~ /^dualpipe$|chimera/
            if (twin && ranks == 3) ranks = 4
            micros = schedule ~ /interleaved|hanayo|chimera|dualpipe/ ? 2 * ranks : 2 + random(6)
            chunks = two ? 2 * ranks : ranks
            print "# " schedule
            print "model m {\n    input x[" 100 * (1 + random(9)) "]"
            for (i = 0; i < chunks; i++) print "    l" i " : linear(" 50 * (1 + random(40)) ")"
            print "    loss : mse\n}"
            print "pipeline { stages " ranks (two ? " virtual 2" : "") " microbatches " micros " schedule " schedule " }"
            print "cluster {\n    forward " times(chunks)
            if (random(2)) print "    backward " times(chunks)
            else print "    input_gradient " times(chunks) " weight_gradient " times(chunks)
            print "    link " 100 * (1 + random(40)) "k  latency " (random(2) ? 0 : random(9) / 4) "ms"
            if (random(3) == 0) print "    node 2  node_link " 1 + random(4) "M  adapter " pick("own shared")
            print "}"
        }' >"$2"
}

tried=0 good=0 seed=${SEED:-1}
: >figures
while [ $good -lt "${PLANS:-30}" ] && [ $tried -lt $((3 * ${PLANS:-30})) ]; do
    tried=$((tried + 1)) seed=$((seed + 1))
    plan "$((seed * 7919))" p.pipe
    "$pipec" check p.pipe >refused 2>&1 || continue # this schedule does not take these sizes
    rm -rf out
    if ! "$pipec" run p.pipe --emulate --steps 2 -o out >run.log 2>log; then
        echo "not ok plan $seed: $(head -3 log | tr '\n' '|')"
        break
    fi
    sed -n "s/^emulated: .* planned \([0-9.]*\) ms.* clocks \([0-9.]*\) ms.*/\1 \2/p" run.log >figure
    awk '{ n++; off = $2 / $1 - 1; if (off < 0) off = -off } END { print $1, $2, off; exit !(n == 1 && off < 0.005) }' figure >>figures || {
        echo "not ok plan $seed: planned and emulated ms, share: $(tail -1 figures)"
        sed 's/^/    /' p.pipe
        break
    }
    good=$((good + 1))
    head -1 p.pipe >>schedules
done
if [ $good -ge "${PLANS:-30}" ]; then
    awk -v tried=$tried '{ n++; if ($3 > most) most = $3; if ($1 > longest) longest = $1 }
        END { printf "ok %d random plans of up to %.0f ms (of %d drawn), the farthest %.6f %% off\n", n, longest, tried, 100 * most }' figures
else
    echo "not ok only $good of $tried plans were emulated"
fi
# What is not as planned is seen: on a wire that is always busy, one of eight messages is twice as long.
cat >fills.pipe <<'END'
model m { input x[1000]; a : linear(1000) * 2; loss : mse }
pipeline { stages 2  microbatches 8 schedule gpipe }
cluster { forward 1ms backward 1ms link 400k latency 0s }
END
"$pipec" build fills.pipe --emulate -o fills >log 2>&1 &&
    sed -i '0,/pp_send_over(\(.*\), 10000000, 0, -1)/s//pp_send_over(\1, 20000000, 0, -1)/' fills/rank0.c &&
    ${CC:-cc} -std=c11 -O1 -I"$1" fills/rank0.c -o fills/rank0 "$1/libpp.a" -ldnnl -lgomp -lm &&
    "$1/pprun" --steps 2 2 fills/rank >log 2>&1 && grep -q 'planned 164.000 ms.* clocks 174.000 ms' log &&
    echo "ok longer-message" || echo "not ok longer-message: $(tail -2 log | tr '\n' '|')"
