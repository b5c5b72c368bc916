#!/bin/sh
# format.sh RUNTIME SCRATCH: every .c file is as clang-format lays it out. Headers and tables of other languages are
# laid out by hand. Versions differ in what they make of a file: Debian 12's is ours.
version=14
cd "$(dirname "$0")/../.." || exit 1
found=$(clang-format --version 2>/dev/null | sed -n 's/.*version \([0-9]*\)[.].*/\1/p')
if [ -z "$found" ]; then
    echo "ok format (skipped: no clang-format)"
elif [ "$found" != $version ]; then
    echo "ok format (skipped: clang-format $found, not $version)"
else
    find compiler runtime tests bench -name '*.c' >"$2/files"
    if xargs clang-format --dry-run -Werror <"$2/files" >"$2/said" 2>&1; then
        echo "ok $(wc -l <"$2/files") files are formatted"
    else
        sed -n 's/^\([^ :]*\):\([0-9]*\):.* error: .*/not ok \1, line \2: clang-format -i \1/p' "$2/said" | sort -u -t, -k1,1
        exit 1
    fi
fi
