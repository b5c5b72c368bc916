#!/bin/sh
# matrix.sh RUNTIME SCRATCH: no option without effect. The rows of `pipec --help options` are tried with every command:
# where the command takes the option, the output is another one (stdout, stderr, files or the exit status); where it does
# not, or where what the option needs is missing, or beside what it does not go with, pipec refuses, says so, and ends
# with 2.
pipec=$(cd "$1" && pwd)/../../bin/pipec
mkdir -p "$2" && cd "$2" || exit 1
here=$PWD
ok() { echo "ok $1"; }
not_ok() { echo "not ok $1: $2"; }

for name in m other; do
    cat >$name.pipe <<'END'
model m {
    input tokens[8] of 256
    wte  : embedding(12)
    head : linear(256)
    loss : cross_entropy
}
pipeline { stages 2  microbatches 48  rows 1 }
train { data bytes "data"  steps 3 }
END
done
sed -i 's/rows 1 /rows 1  schedule gpipe /' other.pipe
awk 'BEGIN { for (i = 0; i < 400; i++) print "abcdefgh" i }' >data
"$pipec" run m.pipe --quiet --trace m.trace >said 2>&1 || not_ok trace "$(head -3 said)"

commands='check inspect compare explain diff build run'

# words COMMAND OPTION -> what stands behind the command to try the option beside: the file, and for those that would
# print nothing, or much, an option more.
words() {
    case $1:$2 in
    inspect:--all) echo m.pipe -D microbatches=400 ;;
    explain:--target | explain:--messages) echo m.pipe 1B40 -D flops=1G -D latency=1ms -D link=10k ;;
    explain:*) echo m.pipe 1B40 ;;
    inspect:--messages) echo m.pipe -D flops=1G -D latency=1ms -D link=10k ;;
    diff:--messages) echo m.pipe other.pipe -D flops=1G -D latency=1ms -D link=10k ;;
    diff:--schedule) echo m.pipe ;;
    diff:*) echo m.pipe other.pipe ;;
    check:--dump) echo m.pipe ;;
    check:*) echo m.pipe --dump=emit ;;
    run:*) echo m.pipe -D microbatches=2 ;;
    *) echo m.pipe ;;
    esac
}

# sample ARGUMENT -> a value that is not the default
sample() {
    case $1 in
    NAME=VALUE) echo microbatches=44 ;;
    PASS) echo parse ;;
    PICTURE | PLOT.svg) echo drawn.svg ;;
    'all|A,B') echo gpipe ;;
    A,B) echo 1f1b,gpipe ;;
    FILE.trace) echo m.trace ;;
    LIST) echo 1 ;;
    FOLDER) echo folder ;;
    FILE) echo file.json ;;
    X) echo 7 ;;
    N) echo 2 ;;
    US) echo 100000 ;;
    *[!a-z\|]*) return 1 ;;
    *) echo "${1##*|}" ;;           # the last of its words
    esac
}

# beside CONDITION -> words that make it true: "-o FILE.svg|FILE.txt" -> "-o x.svg"
beside() {
    case $1 in
    *' FILE'*) echo "$1" | sed 's/|.*//; s/FILE/x/' ;;
    --measured) echo --measured m.trace ;;
    -o) echo -o x.svg ;;
    *) echo "${1%%|*}" ;;
    esac
}

# A CUDA job without a GPU or nvcc: a runtime whose launcher says what it was given.
mkdir -p stub/bin stub/lib/pipec
cp "$pipec" stub/bin/
cp "$1"/pp.h "$1"/libpp.a stub/lib/pipec/ 2>said || cp "$(dirname "$pipec")"/../lib/pipec/* stub/lib/pipec/
: >stub/lib/pipec/libpp_cuda_bf16.a
printf '#!/bin/sh\necho "$@"\n' >stub/lib/pipec/pprun
printf '#!/bin/sh\nwhile [ $# -gt 0 ]; do [ "$1" = -o ] && : >"$2"; shift; done\n' >stub/nvcc
chmod +x stub/lib/pipec/pprun stub/nvcc

# output COMMAND WORD...: all that the command leaves, without what a clock measures.
output() {
    rm -rf "$here/work" && mkdir "$here/work" && cd "$here/work" || exit 1
    cp ../m.pipe ../other.pipe ../data ../m.trace .
    program=$pipec
    case " $* " in
    *' cuda '*) program=$here/stub/bin/pipec ;;
    esac
    began=$(date +%s%N)
    NVCC=$here/stub/nvcc "$program" "$@" >stdout 2>stderr </dev/null
    echo "status $?"
    took=$((($(date +%s%N) - began) / 1000000))
    case " $* " in
    *' --delay '*) [ $took -gt 1000 ] && echo 'longer than a second' ;;
    esac
    sed -i 's/ [0-9.]* tok.s.*//; s/ in [0-9.]* s / /; s/ took [0-9.]* ms//; s/ms, [-+][0-9.]* %.*/ms/; s/  bubble .*//' stdout
    find . -type f ! -name '*.trace' ! -name 'rank[0-9]' -exec cksum {} + | sort -k 3
    find . -name '*.trace' -o -name 'file.json' | sort
    cd "$here" || exit 1
}

# refuses NAME OPTION COMMAND WORD...: exit status 2, and the option is in the sentence.
refuses() {
    pair=$1 sought=$2
    shift 2
    "$pipec" "$@" >said 2>&1 </dev/null
    status=$?
    if [ $status -ne 2 ]; then
        not_ok "$pair" "status $status, not 2: $(head -2 said)"
    elif ! grep -qe "$sought" said || ! grep -q '  help: ' said; then
        not_ok "$pair" "$(cat said)"
    else
        ok "$pair"
    fi
}

"$pipec" --help options >rows
[ "$(wc -l <rows)" -gt 30 ] && ok rows || not_ok rows "$(wc -l <rows)"

# ---- a command that takes the option ----

# tries COMMAND OPTION VALUE NEEDS
tries() {
    # shellcheck disable=SC2046
    set -- "$1" "$2" "$3" $(words "$1" "$2") $(beside "$4")
    command=$1 option=$2 value=$3
    shift 3
    plain=plain-$(echo "$command $*" | cksum | tr ' ' -)
    [ -f "$plain" ] || { output "$command" "$@" >"$plain"; output "$command" "$@" >"$plain-again"; }
    # shellcheck disable=SC2086
    output "$command" "$@" $option $value >tried
    if ! cmp -s "$plain" "$plain-again"; then
        not_ok "$command $option" "$command $* is not the same twice: $(diff "$plain" "$plain-again" | head -4)"
    elif cmp -s "$plain" tried; then
        not_ok "$command $option" "no effect on $command $*"
    elif grep -q 'status 2' tried; then
        not_ok "$command $option" "is refused: $(cat work/stderr)"
    else
        ok "$command $option"
    fi
}

while IFS=: read -r option takers conditions; do
    name=${option%% *} argument=${option#* }
    [ "$argument" = "$option" ] && argument=''
    value=''
    if [ -n "$argument" ] && ! value=$(sample "$argument"); then
        not_ok "$name" "no sample of $argument"
        continue
    fi
    case $takers in
    *every*) takers=$commands ;;
    esac
    needs=$(echo "$conditions" | sed -n 's/^ with \([^,]*\).*/\1/p')
    for command in $(echo "$takers" | tr -d ,); do
        tries "$command" "$name" "$value" "$needs"
        # shellcheck disable=SC2046
        [ -z "$needs" ] || [ "$command $name" = 'check --unit-ms' ] ||
            refuses "$command $name alone" "$name" "$command" $(words "$command" --dump) "$name" $value
        echo "$conditions" | grep -o 'not with [^,]*' | while read -r _ _ other; do
            # shellcheck disable=SC2046
            refuses "$command $name $other" "$name" "$command" $(words "$command" --dump) $(beside "$needs") "$name" \
                $value $(beside "$other")
        done
    done
done <rows

# ---- a command that does not ----

sed 's/[ :].*//' rows | sort -u | while read -r name; do
    takers=$(sed -n "s/^$name[^:]*: \([^:]*\):.*/\1/p" rows | tr -d , | tr '\n' ' ')
    argument=$(sed -n "s/^$name \([^:]*\):.*/\1/p" rows | head -1)
    value=''
    [ -n "$argument" ] && value=$(sample "$argument")
    for command in $commands; do
        case " $takers " in
        *every* | *" $command "*) continue ;;
        esac
        # shellcheck disable=SC2046
        refuses "$command $name" "$name" "$command" $(words "$command" "$name") "$name" $value
    done
done
