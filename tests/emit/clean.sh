#!/bin/sh
# clean.sh LIBRARY SCRATCH: what is printed compiles without a warning, has one line for each action, and keeps
# within 100 columns wherever no picture and no action is drawn.
pipec=$1/../../bin/pipec
here=$(cd "$(dirname "$0")" && pwd)
runtime=$here/../../runtime
cd "$2" || exit 1

verdict() { # NAME STATUS
    if [ "$2" = 0 ]; then echo "ok $1"; else echo "not ok $1: $(head -5 log | tr '\n' ' ')"; fi
}

for file in "$here"/../../examples/[!b]*.pipe "$here"/*.pipe "$here"/../train/*.pipe; do
    name=$(basename "$file" .pipe)
    rm -f rank*.c
    # shellcheck disable=SC2046
    "$pipec" check "$file" --dump=emit | awk '/^\/\* pipec program/ {n++} {print > ("rank" n ".c")}'
    "$pipec" check "$file" --dump=schedule >order
    for compiler in gcc clang; do
        command -v $compiler >/dev/null || continue
        $compiler -std=c11 -Wall -Wextra -Werror -fsyntax-only -I"$runtime" rank*.c >log 2>&1
        verdict "$name-$compiler" $?
    done
    awk 'length > 100 && !/^ \*/ && !/  \/\/ [0-9]+[FBIW][0-9]+ @/ && !/  \/\/ action @start$/' rank*.c >log
    [ ! -s log ]
    verdict "$name-width" $?
    sed 's/rank [0-9]*://; s/|//g' order | tr -s ' ' '\n' | grep . | sort >planned
    sed -n 's/.*  \/\/ \([0-9]*[FBIW][0-9]*\) @[0-9].*/\1/p' rank*.c | sort >lines
    diff planned lines >log
    verdict "$name-lines" $?
done
