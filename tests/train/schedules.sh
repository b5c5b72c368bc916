#!/bin/sh
# schedules.sh LIBRARY SCRATCH: every schedule that `pipec --help schedules` lists, on 2 and 4 ranks with random sleeps,
# ends with the bits of one rank, and its ranks write exactly as far into their arenas as planned.
#
# One rank adds the gradients in the order in which the schedule does: of two copies of the model, first those of the
# first copy, then those of the second; newest first where the schedule's backwards run so. $DELAY and $STEPS make it
# longer.
library=$(cd "$1" && pwd)
pipec=$library/../../bin/pipec
here=$(cd "$(dirname "$0")" && pwd)
cd "$2" || exit 1
. "$here/same"
${CC:-cc} -std=gnu11 -O1 -Wall -Wextra -Werror -I "$library" -c "$here/schedules.c" -o peak.o || exit 1

# train NAME OPTION...: losses in NAME.losses, weights in NAME.weights/, peaks in NAME.peaks/
train() {
    into=$1
    shift
    mkdir -p "$into.peaks"
    CC="${CC:-cc} -Wl,--wrap=pp_start -Wl,--wrap=pp_finish $PWD/peak.o" PEAK=$PWD/$into.peaks \
        "$pipec" run "${model:-$here/bits.pipe}" -D steps="${STEPS:-4}" -o out --quiet --losses "$into.losses" --save "$into.weights" "$@" >log 2>&1 &&
        return
    echo "not ok $into: $(head -3 log | tr '\n' ' ')"
    return 1
}

# trained REFERENCE NAME P: the bits, and the peaks.
trained() {
    why=$(differs "$1" "$2")
    [ "$(cat "$2".peaks/* | awk '$1 == $2' | wc -l)" -eq "$3" ] ||
        why="$why planned and written bytes: $(cat "$2".peaks/* | tr '\n' ' ')"
    if [ -z "$why" ]; then echo "ok $2"; else echo "not ok $2: $why"; fi
}

for M in 3 8; do
    train one-$M -D stages=1 -D schedule=naive -D microbatches=$M
    train newest-$M -D stages=1 -D schedule=bfs -D microbatches=$M
    train copies-$M -D stages=1 -D schedule=naive -D placement=twin -D microbatches=$M
    for schedule in $("$pipec" --help schedules | awk '/^  [a-z0-9]/ {print $1}'); do
        for P in 2 4; do
            name=$schedule-$P-$M
            train "$name" -D stages=$P -D microbatches=$M -D "schedule=$schedule" --delay "${DELAY:-400}" || continue
            case $("$pipec" inspect "$here/bits.pipe" -D stages=$P -D microbatches=$M -D "schedule=$schedule") in
            *"gradients are not added in the order"*) reference=newest ;;
            *"two copies"*) reference=copies ;;
            *) reference=one ;;
            esac
            trained $reference-$M "$name" $P
        done
    done
    # Placements that a schedule does not bring itself.
    for case in "auto vee" "naive vee" "naive wave"; do
        name=${case% *}-${case#* }-$M
        train "$name" -D stages=2 -D microbatches=$M -D "schedule=${case% *}" -D "placement=${case#* }" --delay "${DELAY:-400}" &&
            trained one-$M "$name" 2
    done
done

# Chunks without layers: alone, side by side, where a V turns, between ranks and within one; the end in two chunks.
while read -r schedule P layout; do
    name=$schedule-$P-$layout
    train "$name" -D stages="$P" -D microbatches=3 -D schedule="$schedule" -D split="\"$layout\"" --delay "${DELAY:-400}" </dev/null &&
        trained "$(case $schedule in bfs) echo newest-3 ;; dualpipe) echo copies-3 ;; *) echo one-3 ;; esac)" "$name" "$P"
done <<END
1f1b 4 Et||ttt|L
zbh1 4 E||t*4|L
zbh2 4 E|t*4||L
dualpipe 4 E||t*4|L
auto 4 E||t*4|L
eager 4 Et|t*3|L|L
interleaved 4 Et||t|||t||tL
zbh1 4 Et||t|||t||tL
zbv 4 Et|t|t||||t|L
vmin 2 Ett||t|tL
dualpipev 2 Ettt|||tL
hanayo 2 Et|||t|||t|tL
bfs 2 Et||t||||tt|L
END
# A layer `mtp` of a layout is a layer like others.
sed -e 's/^model/layer mtp { x + linear(layernorm(x), dim) }\n&/' -e 's/^ *ln_f/    next : mtp\n&/' "$here/bits.pipe" >mtp.pipe
cp "$here/bits.pipe" bits.pipe
model=mtp.pipe
train mtp -D stages=1 -D schedule=naive -D microbatches=3
train mtp-4 -D stages=4 -D schedule=1f1b -D microbatches=3 -D 'split="Et*4||m|L"' && trained mtp mtp-4 4
