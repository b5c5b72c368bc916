#!/bin/sh
# escape.sh LIBRARY SCRATCH: file names, paths and words with every byte through the command: see escape.c; and names
# as long as they may be, nested.
# needs: build/tests/escape/escape
cd "$(dirname "$0")/../.." || exit 1
build/tests/escape/escape "$1" "$2"
if "$1/../../bin/pipec" build tests/escape/long4.pipe -o "$2/long" >"$2/said" 2>&1; then
    echo "ok long-names"
else
    echo "not ok long-names: $(head -3 "$2/said" | cut -c1-200 | tr '\n' '|')"
fi
printf '1 2 3 4\n1 2 3 4\n' >"$2/numbers"
if "$1/../../bin/pipec" run tests/escape/long4.pipe -o "$2/long" -D data="$2/numbers" >"$2/said" 2>&1; then
    echo "ok long-names-run"
else
    echo "not ok long-names-run: $(head -3 "$2/said" | cut -c1-200 | tr '\n' '|')"
fi
