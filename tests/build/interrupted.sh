#!/bin/sh
# interrupted.sh LIBRARY SCRATCH: a build that ends at any moment, by Ctrl-C, TERM or KILL, leaves nothing that is
# trusted afterwards. BUILDS of them, 20 unless given.
. "$(dirname "$0")/setup"

"$pipec" run s.pipe -o alone --quiet --losses alone.losses >log 2>&1 || verdict alone 1

# Half a program is what the linker leaves; the compiler that then ends it is the same, as far as pipec can see.
for where in '' '-o named'; do
    cp breaking-cc a-new && mv -f a-new a-cc # a compiler that still runs keeps its file
    # shellcheck disable=SC2086
    CC=./a-cc "$pipec" build s.pipe $where >log 2>&1
    status=$?
    printf '#!/bin/sh\ncase " $* " in *" --version "*) exit ;; esac\nexec ${REAL_CC:-cc} "$@"\n' >a-new && chmod +x a-new && mv -f a-new a-cc
    # shellcheck disable=SC2086
    [ $status = 137 ] && CC=./a-cc "$pipec" build s.pipe $where >log 2>&1 &&
        CC=./a-cc "$pipec" run s.pipe $where --quiet --losses losses >log 2>&1 && cmp -s losses alone.losses
    verdict "half a program${where:+, $where}" $?
done

# Into a group of its own, so that a key reaches pipec and its compilers, and nothing else.
interrupted=0 right=0 builds=0
while [ $builds -lt "${BUILDS:-20}" ]; do
    case $((builds % 4)) in
    0) signal=INT to=- ;;
    1) signal=TERM to='' ;;
    2) signal=KILL to='' ;;
    3) signal=KILL to=- ;;
    esac
    rm -rf out
    [ $((builds % 8)) -lt 4 ] || rm -rf named
    where=$([ $((builds % 2)) = 0 ] && echo '-o named')
    [ $((builds % 3)) -ne 0 ] || "$pipec" build s.pipe $where -D rate=0.3 >log 2>&1
    # shellcheck disable=SC2086
    setsid env --default-signal=INT "$pipec" build s.pipe $where >said 2>&1 &
    job=$!
    sleep "$(awk -v seed="$$" -v n=$builds 'BEGIN { srand(seed * 1000 + n); printf "%.3f", 0.25 * rand() }')"
    kill -s $signal -- $to$job 2>/dev/null
    wait $job 2>/dev/null || interrupted=$((interrupted + 1))
    # shellcheck disable=SC2086
    "$pipec" build s.pipe $where >log 2>&1 && "$pipec" run s.pipe $where --quiet --losses losses >>log 2>&1 &&
        cmp -s losses alone.losses && right=$((right + 1))
    builds=$((builds + 1))
done
[ $right = $builds ]
verdict "$right of $builds builds were whole after an interrupt ($interrupted came in time)" $?
