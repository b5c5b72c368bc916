#!/bin/sh
# runtime.sh RUNTIME SCRATCH: what the fuzzers have found so far, and the seeds, as training data and as saved shards.
cd "$(dirname "$0")/../.." || exit 1
. tests/fuzz/setup
# shellcheck disable=SC2086
build_runtime "$2" "${CC:-gcc}" -DREPLAY $checks || exit 1
if "$2/runtime" tests/fuzz/numbers/* tests/fuzz/tokens/* tests/fuzz/save/* > "$2/said" 2> "$2/log"; then
    cat "$2/said"
else
    echo "not ok runtime $(grep -m 1 -E 'runtime error|ERROR|SUMMARY' "$2/log"), at $(grep '^tests/' "$2/log" | tail -1)"
    tail -30 "$2/log"
fi
