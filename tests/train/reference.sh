#!/bin/sh
# reference.sh RUNTIME SCRATCH: losses and gradient norms are those that PyTorch computes for the
# same model, weights and data (NAME.expected, made by reference.py), to 1e-5, on one rank and more.
here=$(cd "$(dirname "$0")" && pwd)
pipec=$(cd "$1/../../bin" && pwd)/pipec
mkdir -p "$2" && cd "$2" || exit 1
failed=0

# compare EXPECTED ACTUAL: the first place where they differ, or nothing.
compare() {
    awk 'function apart(a, b) {
             if (a ~ /n/ || b ~ /n/)  # nan, inf
                 return a != b
             d = a - b
             return !((d < 0 ? -d : d) <= 1e-5 * (b < 0 ? -b : b))
         }
         function fail(why) { print why; failed = 1; exit }
         NR == FNR { step[NR] = $1; loss[NR] = $2; norm[NR] = $3; steps = NR; next }
         NF != 3 || $1 != step[FNR] { fail("line " FNR " is: " $0) }
         apart($2, loss[FNR]) { fail("step " $1 ": loss " $2 ", not " loss[FNR]) }
         apart($3, norm[FNR]) { fail("step " $1 ": norm " $3 ", not " norm[FNR]) }
         END {
             if (!failed && (steps == 0 || NR != 2 * steps))
                 print NR - steps " steps, not " steps
         }' "$1" "$2" 2>&1
}

# agrees NAME MODEL OPTION...: MODEL.pipe with these options prints MODEL.expected.
agrees() {
    name=$1 model=$2
    shift 2
    rm -f "$name.losses"
    if "$pipec" run "$here/$model.pipe" "$@" -o "$name" --quiet --losses "$name.losses" \
        >"$name.log" 2>&1; then
        why=$(compare "$here/$model.expected" "$name.losses")
    else
        why="status $?: $(head -n 1 "$name.log")"
    fi
    [ -z "$why" ] && echo "ok $name" && return
    failed=1
    echo "not ok $name $why"
}

agrees gpt-as-written reference                      # two ranks, 1f1b
agrees gpt-on-one-rank reference -D stages=1
agrees gpt-interleaved reference -D virtual=2 -D schedule=interleaved
agrees mlp-as-written reference_mlp                  # three ranks, gpipe
agrees mlp-on-one-rank reference_mlp -D stages=1
agrees mlp-on-two-ranks reference_mlp -D stages=2
exit $failed
