#!/bin/sh
# replay.sh RUNTIME SCRATCH: what the fuzzers have found so far, the seeds of each reader, and every .pipe file of the
# tests and the examples, through the whole compiler up to the text of its programs, pictures and tables, under the
# address and undefined behaviour sanitizers.
cd "$(dirname "$0")/../.." || exit 1
grammar=$(cd "$1/../.." && pwd)/grammar
. tests/fuzz/setup
# shellcheck disable=SC2086
build "$2" "${CC:-gcc}" "$grammar" -DREPLAY $checks || exit 1
# the depth of a text is bounded by the parser, but the sanitizers' frames are large
ulimit -s 65536 2> /dev/null
if "$2/replay" define: tests/fuzz/define/* csv: tests/fuzz/csv/* tests/exchange/*.csv layout: tests/fuzz/layout/* \
    trace: tests/fuzz/trace/* program: tests/fuzz/program/* pipe: tests/fuzz/corpus/* tests/*/*.pipe examples/*.pipe > "$2/said" 2> "$2/log"; then
    cat "$2/said"
else
    echo "not ok replay $(grep -m 1 -E 'runtime error|ERROR|SUMMARY' "$2/log"), at $(grep -E '^(tests|examples)/' "$2/log" | tail -1)"
    tail -30 "$2/log"
fi
