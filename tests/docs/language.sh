#!/bin/sh
# language.sh RUNTIME SCRATCH: the documents say what the compiler does: every complete file in them is
# one, everything that can be typed is mentioned, and ranges and defaults are the compiler's.
pipec=$1/../../bin/pipec
scratch=$2
here=$(dirname "$0")/../..
language=$here/docs/language.md
manual=$here/docs/pipec.1

ok() { echo "ok $1"; }
not_ok() {
    echo "not ok $*"
    bad=yes
}
# all NAME WHAT: `ok` if $words is not empty and nothing was found missing.
all() {
    if [ -z "$words" ]; then
        not_ok "$1" "found no $2"
    elif [ -z "$bad" ]; then
        ok "$1"
    fi
}

# ---- complete files ----

# Every block that begins with ```pipe goes to its own file, named by document and line.
for document in "$language" "$here/README.md"; do
    [ -f "$document" ] || continue
    awk -v prefix="$scratch/$(basename "$document" .md)-" '
        $0 == "```pipe" { file = prefix (NR + 1) ".pipe"; printf "" > file; next }
        /^```/ { if (file) close(file); file = "" }
        file { print > file }' "$document"
done
bad=''
words=$(find "$scratch" -name 'language-*.pipe')
for file in "$scratch"/*.pipe; do
    "$pipec" check "$file" >"$scratch/said" 2>&1 || not_ok complete-file "$(basename "$file"): $(head -3 "$scratch/said")"
done
all complete-files 'blocks of pipe'

# ---- everything is mentioned, between back quotes ----

# mentioned KIND: each of $words opens a back-quoted text of the reference.
mentioned() {
    bad=''
    for word in $words; do
        grep -q "\`${word}[\`( ]" "$language" || not_ok "$1" "\`$word\` is not in docs/language.md"
    done
    all "$1" "$1"
}

words=$("$pipec" --help ops | sed -n 's/^  \([a-z_]\{2,\}\).*/\1/p')
mentioned ops
words=$("$pipec" --help ops | sed -n 's/.*\[, \([a-z]*\)\].*/\1/p')
bad=''
for word in $words; do
    grep -q ", $word)\`" "$language" || not_ok flags "\`..., $word)\` is not in docs/language.md"
done
all flags flags
words=$("$pipec" --help schedules | sed -n 's/^  \([^ ]*\).*/\1/p')
mentioned schedules
words=$(sed -n 's/.*\.option = {\(.*\)}.*/\1/p' "$here"/compiler/order/schedules/*.c | tr -d ',"')
mentioned options-of-schedules
words=$("$pipec" --help settings | sed -n '/^optimizers/q; s/^  \([a-z_]\{1,\}\) .*/\1/p')
mentioned settings
words=$(sed -n 's/^ *{"\([a-z0-9]*\)", offsetof(Settings.*/\1/p' "$here"/compiler/read/check*.c)
mentioned optimizer-arguments
words=$(sed -n '/data_words\[\] = {/,/}/p' "$here"/compiler/read/check*.c | grep -o '"[a-z0-9]*"' | tr -d '"' | grep -v none)
mentioned formats
words=$(grep -o '{"[A-Za-z]*", [0-9a-z.+-]*, [^}]*}' "$here/compiler/read/parse.c" | sed 's/{"\([A-Za-z]*\)".*/\1/')
mentioned units
words=$(sed -n 's/^\(<ORDER>\)*\("[a-z|"]*"\) *{.*/\2/p' "$here/grammar/pipe.l" | tr -d '"' | tr '|' ' ')
mentioned keywords

# ---- every setting is accepted as `--help settings` writes it ----

"$pipec" --help settings | awk '/^optimizers/ { exit } /^[a-z]/ { block = $1 } /^  [a-z]/ {
    sub(/#.*/, ""); print block, $0 }' >"$scratch/examples"
bad=''
words=$(cat "$scratch/examples")
while read -r block example; do
    { echo 'model m { input x[2] of 256; wte : embedding(2); h : linear(256) * 7; loss : cross_entropy }'
      case $block in pipeline) ;; *) echo 'pipeline { stages 2 }' ;; esac
      echo "$block { $example }"; } >"$scratch/example.pipe"
    "$pipec" check "$scratch/example.pipe" >"$scratch/said" 2>&1 ||
        not_ok example "$block { $example }: $(head -1 "$scratch/said")"
done <"$scratch/examples"
[ "$(wc -l <"$scratch/examples")" -gt 20 ] || not_ok examples "only $(wc -l <"$scratch/examples") lines"
all examples-of-settings examples

# What is advised for one part of a backward is accepted, too.
bad=''
words='input_gradient weight_gradient'
for part in $words; do
    for rest in "" "backward 40ms  "; do
        echo "model m { input x[2]; h : linear(2) * 3; loss : mse }
cluster { forward 18ms  $rest$part 20ms }" >"$scratch/part.pipe"
        advice=$("$pipec" check "$scratch/part.pipe" 2>&1 | sed -n 's/^  help: //p')
        added=$(echo "$advice" | sed -n 's/^add `\([^`]*\)`, or write `\([^`]*\)` .*/\1/p')
        instead=$(echo "$advice" | sed -n 's/^add `\([^`]*\)`, or write `\([^`]*\)` .*/\2/p')
        case $advice in
        add*) for line in "$part 20ms  $added" "$instead"; do
            sed "s/$part 20ms/$line/" "$scratch/part.pipe" >"$scratch/advised.pipe"
            "$pipec" check "$scratch/advised.pipe" >"$scratch/said" 2>&1 || not_ok advice "$line: $(head -1 "$scratch/said")"
        done ;;
        'leave it out'*)
            sed "s/$part 20ms//" "$scratch/part.pipe" >"$scratch/advised.pipe"
            "$pipec" check "$scratch/advised.pipe" >"$scratch/said" 2>&1 || not_ok advice "$part: $(head -1 "$scratch/said")" ;;
        *) not_ok advice "$part: no advice in $advice" ;;
        esac
    done
done
all advice 'parts of a backward'

# ---- ranges and defaults ----

# The rows of tables: | `name` | meaning | from | to | default |
# shellcheck disable=SC2016
rows=$(sed -n 's/^| `\([a-z]*\)` | [^|]* | \([0-9]*\) | \([0-9]*\) | \([0-9]*\) |$/\1 \2 \3 \4/p' "$language")
echo 'model m { input x[2]; a : linear(2); loss : mse }' >"$scratch/range.pipe"
"$pipec" check "$scratch/range.pipe" --dump=check >"$scratch/default"

# says NAME VALUE: whether the range of NAME is what `check` complains about.
says() { "$pipec" check "$scratch/range.pipe" --dump=check -D "$1=$2" 2>&1 | grep -q 'but must be'; }

bad=''
words=$(echo "$rows" | awk '{ print $1 }')
while read -r name from to default; do
    says "$name" "$from" && not_ok range "$name $from is refused"
    says "$name" "$to" && not_ok range "$name $to is refused"
    says "$name" "$from-1" || not_ok range "$name $from-1 is not refused"
    says "$name" "$to*2" || not_ok range "$name $to*2 is not refused"
    "$pipec" check "$scratch/range.pipe" --dump=check -D "$name=$default" | cmp -s - "$scratch/default" ||
        not_ok default "$name is not $default"
done <<END
$rows
END
all ranges-and-defaults 'rows of tables'

# ---- machines with a name: `cluster NAME { }` is a block with the figures of its row ----

# plan NAME BLOCK: two machines and a bit; too large for any memory, so that inspect names it.
plan() {
    { echo 'model m { input x[1000]; a : linear(150000) * 17; loss : mse }'
      echo "pipeline { stages 17  microbatches 2 }"
      echo "cluster $2"; } >"$scratch/$1.pipe"
    "$pipec" inspect "$scratch/$1.pipe" >"$scratch/$1.txt" 2>&1 || not_ok machines "$(head -1 "$scratch/$1.txt")"
}
bad=''
echo 'cluster none_of_these { }' >"$scratch/none.pipe"
words=$("$pipec" check "$scratch/none.pipe" 2>&1 | sed -n 's/.*known are \(.*\); or give.*/\1/p' | tr -d ,)
for word in $words; do
    # shellcheck disable=SC2016
    row=$(sed -n "s/^| \`$word\` | \([0-9.GT]*\) *| \([0-9.GT]*\) *| \([0-9.GT]*\) *| \([0-9.GT]*\) *|.*/\1 \2 \3 \4/p" "$language")
    plan named "$word { }"
    # shellcheck disable=SC2086
    case $row in
    *[0-9]*) plan given "$(printf '{ flops %s memory %s node_link %s link %s node 8 node_latency 2us latency 10us }' $row)" ;;
    '   ') plan given "{ }" ;;
    *) not_ok machines "no row of $word" ;;
    esac
    cmp -s "$scratch/named.txt" "$scratch/given.txt" ||
        not_ok machines "$word: $(diff "$scratch/named.txt" "$scratch/given.txt" | sed -n 2,4p)"
done
all machines 'names of machines'

# ---- the man page ----

"$pipec" --help man | diff - "$manual" >"$scratch/said" && ok manual-is-written ||
    not_ok manual-is-written "build/bin/pipec --help man > docs/pipec.1: $(head -3 "$scratch/said")"
bad=''
words=$("$pipec" --help options | sed 's/[ :].*//' | sort -u)
for word in $words; do
    sed 's/\\f[BIR]//g; s/\\//g' "$manual" | grep -qe "^$word\>" || not_ok options "$word is not in docs/pipec.1"
done
all options options

if command -v groff >/dev/null 2>&1; then
    warnings=$(groff -man -Tutf8 -ww -z "$manual" 2>&1)
elif command -v mandoc >/dev/null 2>&1; then
    warnings=$(mandoc -Tlint -W warning "$manual" 2>&1)
else
    exit 0
fi
if [ -z "$warnings" ]; then
    ok manual
else
    not_ok manual "$warnings"
fi
