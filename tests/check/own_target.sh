#!/bin/sh
# own_target.sh RUNTIME SCRATCH: a model in which a token reaches its own prediction is taken with a warning, once for
# each place; nothing is said where it cannot.
pipec=$1/../../bin/pipec
here=$(cd "$(dirname "$0")" && pwd)
cd "$2" || exit 1
cp "$here/own_target.pipe" .

# check NAME LINES: own_target.pipe, edited by the script on stdin, is accepted with warnings at these lines.
check() {
    sed -f - own_target.pipe >"$1.pipe"
    "$pipec" check "$1.pipe" >"$1.out" 2>&1
    status=$?
    found=$(sed -n "s/^$1.pipe:\([0-9]*\):[0-9]*: warning: .*/\1/p" "$1.out" | paste -sd' ' -)
    if [ $status -eq 0 ] && [ "$found" = "$2" ]; then
        echo "ok $1"
    else
        echo "not ok $1: exit status $status, warnings at lines '$found', not '$2'"
        cat "$1.out"
    fi
}

check all '7 4 16' </dev/null
check one-is-causal '4 16' <<'END'
7s/, 4)/, 4, causal)/
END
check all-are-causal '' <<'END'
4s/heads)/heads, causal)/
7s/, 4)/, 4, causal)/
16s/6)/6, causal)/
END
check one-position '' <<'END'
s/tokens\[8\]/tokens[1]/
END
check numbers '' <<'END'
s/tokens\[8\] of 256/points[8][5]/
s/embedding/linear/
s/cross_entropy/mse/
END

# What it says, and that whoever trains is told as well.
cmp -s all.out "$here/own_target.warned" && echo "ok text" || {
    echo "not ok text"
    diff "$here/own_target.warned" all.out
}
"$pipec" inspect all.pipe 2>&1 >/dev/null | cmp -s - all.out && echo "ok inspect" || echo "not ok inspect"
