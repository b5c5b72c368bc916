#!/bin/sh
# declared.sh LIBRARY SCRATCH: a program that calls what pp.h does not declare is refused by its compiler. C11's
# compilers would guess the types, and pass a double where the runtime takes a float.
pipec=$(cd "$1" && pwd)/../../bin/pipec
model=$(cd "$(dirname "$0")" && pwd)/mlp.pipe
cd "$2" || exit 1
"$pipec" build "$model" -o plain >log 2>&1 && echo "ok builds" || echo "not ok builds: $(head -3 log | tr '\n' ' ')"
cat >hidden.h <<'END'
#include "pp.h"
#define pp_begin pp_unknown
END
CC="${CC:-cc} -include hidden.h -I $1" "$pipec" build "$model" -o hidden >log 2>&1
status=$?
if [ $status -eq 1 ] && grep -q 'error: .*pp_unknown' log; then
    echo "ok undeclared"
else
    echo "not ok undeclared, status $status: $(head -3 log | tr '\n' ' ')"
fi
