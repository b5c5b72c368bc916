#!/bin/sh
# own.sh RUNTIME SCRATCH: orders that the file writes are those of the schedules that they copy, for many sizes; the
# phases as well where the file marks them. The example trains as one rank does, to the bit.
pipec=$1/../../bin/pipec
file=$(dirname "$0")/own_1f1b.pipe
example=$(dirname "$0")/../../examples/own_schedule.pipe
scratch=$2

# same NAME P v M: own_NAME and NAME write the same lists.
same() {
    for schedule in "own_$1" "$1"; do
        "$pipec" check "$file" --dump=schedule -D "schedule=$schedule" -D "stages=$2" -D "virtual=$3" \
            -D "microbatches=$4" 2>&1 | if [ "$1" = interleaved ]; then sed 's/ |//g'; else cat; fi >"$scratch/$schedule"
    done
    if [ -s "$scratch/$1" ] && cmp -s "$scratch/own_$1" "$scratch/$1"; then
        echo "ok $*"
    else
        echo "not ok $*: $(diff "$scratch/own_$1" "$scratch/$1" | head -3 | tr '\n' ' ')"
    fi
}

for stages in 1 2 3 4 8; do
    for microbatches in 1 2 3 5 8 16; do
        for name in 1f1b gpipe naive; do
            same $name $stages 1 $microbatches
        done
    done
done
for size in '1 2 4' '2 2 2' '2 2 8' '2 4 6' '4 2 4' '4 2 12'; do
    # shellcheck disable=SC2086
    same interleaved $size
done

for stages in 4 1; do
    "$pipec" run "$example" -D stages=$stages -D split=even --steps 5 --quiet -o "$scratch/$stages" \
        --losses "$scratch/$stages.losses" >"$scratch/log" 2>&1 || cat "$scratch/log"
done
if [ -s "$scratch/1.losses" ] && cmp -s "$scratch/4.losses" "$scratch/1.losses"; then
    echo 'ok example'
else
    echo "not ok example: $(diff "$scratch/4.losses" "$scratch/1.losses" 2>&1 | head -3 | tr '\n' ' ')"
fi
if grep -q 'schedule = "early"' "$scratch/4/rank2.c"; then echo 'ok name'; else echo 'not ok name'; fi

# ---- where a schedule is named ----

# says NAME TEXT COMMAND...
says() {
    name=$1 text=$2
    shift 2
    if "$pipec" "$@" 2>&1 | grep -q -- "$text"; then echo "ok $name"; else echo "not ok $name: $("$pipec" "$@" 2>&1 | head -5)"; fi
}
says compare '^. own_gpipe  *4  1 ' compare "$file" -D stages=4 -D microbatches=8 --schedule own_gpipe,1f1b
says compare-all '^. own_naive  *4  1 ' compare "$file" -D stages=4 -D microbatches=8
says compare-virtual '^. own_interleaved  *4  2 ' compare "$file" -D stages=4 -D microbatches=8
says diff 'schedule  *own_gpipe  *gpipe' diff "$file" -D stages=4 -D microbatches=8 --schedule own_gpipe,gpipe
says explain 'own_1f1b, P=4' explain "$file" 2F3 -D stages=4 -D microbatches=8
says inspect '^schedule own_naive: ' inspect "$file" -D schedule=own_naive
says language 'docs/language.md' --help schedules
"$pipec" inspect "$file" -D stages=4 -D microbatches=4 --schedule own_gpipe,naive -o "$scratch/page.html" >"$scratch/log" 2>&1
if [ "$(grep -o 'own_gpipe\|"naive' "$scratch/page.html" | sort -u | wc -l)" -eq 2 ]; then
    echo 'ok page'
else
    echo "not ok page $(cat "$scratch/log")"
fi
