#!/bin/sh
# calls.sh LIBRARY SCRATCH: program/calls.h has the prototypes of runtime/pp.h, and exactly the functions that
# generated programs call; a call that does not fit its row stops pipec, and so does an operand word without one.
pipec=$1/../../bin/pipec
root=$(cd "$1/../../.." && pwd)
make --no-print-directory -s -C "$root" build/tests/lower/calls || exit 1
calls=$root/build/tests/lower/calls
cd "$2" || exit 1

verdict() { # NAME STATUS
    if [ "$2" = 0 ]; then echo "ok $1"; else echo "not ok $1: $(head -5 log | tr '\n' ' ')"; fi
}

# ---- against pp.h ----

{
    echo '#include "pp.h"'
    "$calls" prototypes
} >rows.c
${CC:-cc} -std=c11 -Wall -Wextra -Werror -fsyntax-only -I"$root/runtime" rows.c >log 2>&1
verdict types $?
# One wrong type in each row in turn is enough for the compiler to say so.
sed -n '2,$p' rows.c | while read -r row; do
    case $row in
    *'size_t'*) wrong=$(echo "$row" | sed 's/size_t/unsigned/') ;;
    *'(void)'*) wrong=$(echo "$row" | sed 's/(void)/(int)/') ;;
    *'int)'*) wrong=$(echo "$row" | sed 's/int)/long)/') ;;
    *) wrong=$(echo "$row" | sed 's/)/, int)/') ;;
    esac
    printf '#include "pp.h"\n%s\n' "$wrong" | ${CC:-cc} -std=c11 -fsyntax-only -I"$root/runtime" -xc - 2>>seen ||
        continue
    echo "$wrong"
done >log
[ ! -s log ] && [ -s seen ]
verdict wrong-types $?
"$calls" names | sort >rows
${CC:-cc} -E -P "$root/runtime/pp.h" | grep -o '\bpp_[a-z0-9_]*(' | tr -d '(' | sort -u >header
diff rows header >log
verdict functions $?

# ---- against what programs call ----

cat >ops.pipe <<'PIPE'
layer block { a = x + attention(linear(layernorm(x), 3*8), 2, causal)
              relu(linear(gelu(a + x), 8)) }
model ops { input tokens[4] of 16; e : embedding(8); p : position; h : block * 2; f : linear(16) tied e; loss : cross_entropy }
pipeline { stages 2  microbatches 4  schedule 1f1b }
train { data bytes "*.txt"  optimizer adamw(lr = 1e-3)  clip 1.0 }
cluster { forward 1ms  backward 2ms  latency 1ms }
PIPE
cat >points.pipe <<'PIPE'
model points { input x[2]; a : linear(4); h : linear(4) * 2; loss : mse }
pipeline { stages 2  microbatches 4  schedule zbh1 }
train { data numbers "*.txt"  optimizer sgd(lr = 0.1) }
PIPE
for options in '' '-D clip=0' '--target=cuda' '--target=cuda -D dtype=bf16'; do
    # shellcheck disable=SC2086
    "$pipec" check ops.pipe $options --dump=emit && "$pipec" check points.pipe $options --dump=emit
done >programs 2>log
verdict programs $?
sed 's/clip 1.0/clip 1.0 deferred/' ops.pipe >deferred.pipe
"$pipec" check deferred.pipe --dump=emit >>programs 2>log && CC=true "$pipec" build ops.pipe --emulate -o emulated >>log 2>&1
cat emulated/rank*.c >>programs
grep -o '\bpp_[a-z0-9_]*(' programs | tr -d '(' | sort -u >called
diff rows called >log
verdict called $?

# ---- what does not fit ----

ulimit -c 0
stops() { # WHAT MESSAGE
    ("$calls" "$1") >log 2>&1
    [ $? -gt 128 ] && grep -q "$2" log
    verdict "stops-$1" $?
}
stops call 'pp_zero takes 2 arguments, not 1'
stops argument 'argument 2 of pp_zero is a float, which is no size_t'
stops function 'the runtime has no function pp_nought'
stops own 'the program has no function nought'
stops operand '`nonsense` is not an operand word'
