#!/bin/sh
# crossovers.sh RUNTIME SCRATCH: the link at which interleaving stops paying, as compare prints it, holds where a user
# tries it: on a link one percent faster its step is shorter than that of 1f1b, on one that is slower it is not.
. "$(dirname "$0")/agree"

cat >m.pipe <<'END'
model m { input x[16]; a : linear(16) * 16; loss : mse }
pipeline { stages 2  microbatches 5  schedule 1f1b }
cluster { flops 512k  link 32k  latency 50us }
END
sed 's/schedule 1f1b/schedule interleaved(warmup = 1)/' m.pipe >own.pipe

tried=0
for file in m.pipe own.pipe; do
    label=interleaved
    [ $file = own.pipe ] && label='interleaved(warmup = 1)'
    for target in cpu cuda; do
        "$pipec" compare $file --schedule 1f1b,interleaved --stages 2,4 --microbatches 4,5,8 --virtual 2,4 \
            --target $target --json >found.json || echo "not ok compare $file $target"
        sed -n 's/.*"stages": \([0-9]*\), "virtual": \([0-9]*\), "microbatches": \([0-9]*\), "link": \([0-9.e+]*\)}.*/\1 \2 \3 \4/p' \
            found.json >found
        while read -r stages virtual micros link; do
            tried=$((tried + 1))
            : >wrong
            for side in 1.01 0.99; do
                near=$(awk -v link="$link" -v side=$side 'BEGIN { printf "%.9g", link * side }')
                set -- $file --target $target -D stages=$stages -D microbatches=$micros -D link=$near
                many=$(end_of "$@" -D "schedule=$label" -D virtual=$virtual)
                one=$(end_of "$@" -D schedule=1f1b -D virtual=1)
                awk -v side=$side -v one="$one" -v many="$many" 'BEGIN {
                    if (one == "" || many == "" || (many + 0 < one + 0) != (side > 1))
                        print side " times the link: interleaved " many " us, 1f1b " one " us" }' >>wrong
            done
            verdict "$label, $target, P=$stages v=$virtual M=$micros: crossover at $link"
        done <found
    done
done
[ $tried -ge 20 ] && echo "ok $tried crossovers" || echo "not ok only $tried crossovers"
