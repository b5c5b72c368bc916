#!/bin/sh
# local.sh RUNTIME SCRATCH: messages, ties, clip, losses and saving, of 1 to 4 ranks, also shaken.
. "$(dirname "$0")/setup"
for n in 1 2 3 4; do
    build $n
    if "$runtime/pprun" --losses losses$n $n check${n}_ > out$n 2>&1; then ok messages-$n
    else not_ok messages-$n "$(tail -3 out$n | tr '\n' '|')"; fi
    if "$runtime/pprun" --delay 300 --steps 5 --quiet $n check${n}_ > out 2>&1; then ok delay-$n
    else not_ok delay-$n "$(tail -3 out | tr '\n' '|')"; fi
done
expect progress out3 '^step  1/40  loss 0.2113  norm ' '^step 40/40 ' 'planned 25.0 %' '^done: 40 steps in [0-9.]* s'
[ "$(wc -l < losses4)" = 40 ] && cut -d' ' -f1,2 losses2 > a && cut -d' ' -f1,2 losses4 > b && cmp -s a b &&
    ok losses || not_ok losses "40 equal lines expected"

# many fast steps: the launcher must miss none, and the rings must not overrun
if "$runtime/pprun" --steps 3000 --losses many 1 check1_ > out 2>&1 && [ "$(wc -l < many)" = 3000 ]
then ok fast-steps; else not_ok fast-steps "$(tail -2 out)"; fi
[ "$(grep -c '^step' out)" -le 50 ] && ok few-lines || not_ok few-lines "$(grep -c '^step' out) lines"

./check1_0 --steps 3 > out 2>&1; [ $? = 0 ] && expect alone out '^step 3/3  loss' || not_ok alone "$(cat out)"
./check2_1 > out 2>&1; [ $? = 1 ] && expect by-hand out 'rank 1 of 2, which pprun starts' || not_ok by-hand status
"$runtime/pprun" --frobnicate 2 check2_ > out 2>&1
[ $? = 2 ] && expect unknown-option out 'unknown option --frobnicate' || not_ok unknown-option "$(cat out)"
"$runtime/pprun" --steps 2x 2 check2_ > out 2>&1
[ $? = 2 ] && expect bad-number out 'not a whole number' || not_ok bad-number "$(cat out)"
"$runtime/pprun" 3 check2_ > out 2>&1
[ $? = 1 ] && expect missing-binary out 'cannot start rank 2 of 3: ./check2_2: No such file' || not_ok missing-binary status
"$runtime/pprun" 1 check2_ > out 2>&1
[ $? = 1 ] && expect wrong-ranks out 'started as rank 0 of 1, but the program is rank 0 of 2' || not_ok wrong-ranks status
exit $failed
