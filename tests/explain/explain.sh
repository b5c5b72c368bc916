#!/bin/sh
# explain.sh RUNTIME SCRATCH: `pipec explain` beside its goldens, NAME.explain here; BLESS=1 rewrites them.
# Then what it says about places that there are not.
pipec=$(cd "$1" && pwd)/../../bin/pipec
scratch=$2
cd "$(dirname "$0")" || exit 1

# golden NAME FILE WORD...
golden() {
    name=$1
    shift
    "$pipec" explain "$@" > "$scratch/said" 2>&1
    status=$?
    # Schedules that come later add rows of their own.
    awk '!/^  schedule=/ || /^  schedule=(1f1b|gpipe|interleaved|naive)/' "$scratch/said" > "$scratch/out"
    [ -n "$BLESS" ] && cp "$scratch/out" "$name.explain"
    if [ $status -ne 0 ]; then
        echo "not ok $name status $status"
    elif cmp -s "$name.explain" "$scratch/out"; then
        echo "ok $name"
    else
        echo "not ok $name"
        diff -u "$name.explain" "$scratch/out" | head -20
    fi
}

# refuses NAME FILE PLACE: exit status 2, and it says what places look like.
refuses() {
    "$pipec" explain "$2" "$3" > "$scratch/out" 2>&1
    status=$?
    if [ $status -eq 2 ] && grep -q 'is no place in this plan' "$scratch/out"; then
        echo "ok $1"
    else
        echo "not ok $1 status $status: $(head -c 200 "$scratch/out")"
    fi
}

plain=../inspect/course_1f1b.pipe
interleaved=../inspect/course_interleaved.pipe
timed=../inspect/cluster.pipe
golden steady $plain r2@4.5             # idle: why, the path, remedies
golden busy $plain r0@12                # runs, and did not wait
golden fill $plain r3@0                 # nothing removes it
golden drain $plain r3@32               # done before the others
golden warmup $interleaved r1@11        # factor 1 or 2: case 10
golden action $interleaved 6B0          # an action, by name
golden whole $plain 2B0 --all           # the path to its end
golden time $timed r3@6                 # ms, messages on the way
golden unit $timed r3@6000us            # the same place in another unit
cmp -s time.explain unit.explain && echo "ok units" || echo "not ok units differ"
golden options $timed r0@0.6            # keeps group = 4 when it tries warmup

refuses rank $plain r4@1
refuses late $plain r0@33.5
refuses chunk $plain 4F0
refuses micro $plain 2F8
refuses weights $plain 2W0
refuses words $plain later
refuses huge $plain 99999999999999999999F0
refuses ms_without_cluster $plain r0@1ms
refuses empty_time $plain r0@
