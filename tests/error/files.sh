#!/bin/sh
# files.sh RUNTIME SCRATCH: files that are no programs, huge ones, bad data, wrong usage. Whatever comes,
# pipec ends within seconds with a status of its own, and with at most 21 errors.
pipec=$(cd "$1" && pwd)/../../bin/pipec
mkdir -p "$2" && cd "$2" || exit 1
ok() { echo "ok $1"; }
not_ok() { echo "not ok $1 $2: $(head -c 300 said | tr '\n' '|')"; }

# expect NAME STATUS TEXT WORD...: `pipec WORD...` says TEXT and ends with STATUS.
expect() {
    name=$1 wanted=$2 text=$3
    shift 3
    (ulimit -t "${most:-60}"; exec "$pipec" "$@") > said 2>&1 < /dev/null
    status=$?
    errors=$(grep -c ' error: ' said)
    if [ $status -ne "$wanted" ]; then
        not_ok "$name" "status $status, not $wanted"
    elif [ -n "$text" ] && ! grep -q -e "$text" said; then
        not_ok "$name" "no '$text'"
    elif [ "$errors" -gt 21 ]; then
        not_ok "$name" "$errors errors"
    elif LC_ALL=C grep -q "$(printf '[\001-\010\016-\037]')" said; then
        not_ok "$name" "control bytes reach the terminal"
    else
        ok "$name"
    fi
}

# within SECONDS NAME STATUS TEXT WORD...: the same in so much of the processor's time, whatever else runs.
within() {
    most=$1
    shift
    expect "$@"
    most=''
}

# program LINE...: a whole program; the lines stand in its pipeline block.
program() {
    cat <<END
model m {
    input tokens[8] of 256
    wte  : embedding(12)
    head : linear(256)
    loss : cross_entropy
}
pipeline { microbatches 2  rows 1
$*
}
END
}

# ---- files ----

program > good.pipe
expect missing 1 'cannot read none.pipe: No such file' check none.pipe
expect folder 1 'cannot read .: Is a directory' check .
expect below-a-file 1 'cannot read good.pipe/x: Not a directory' check good.pipe/x
: > empty.pipe
expect empty 1 'empty.pipe: error: no model is defined' check empty.pipe
printf '# nothing' > comment.pipe
expect only-a-comment 1 'no model is defined' check comment.pipe
if [ "$(id -u)" != 0 ]; then
    cp good.pipe locked.pipe && chmod 0 locked.pipe
    expect unreadable 1 'cannot read locked.pipe: Permission denied' check locked.pipe
fi
if mkfifo pipe 2> said; then
    cat good.pipe > pipe &
    expect from-a-pipe 0 '' check pipe
fi
sed 's/$/\r/' good.pipe > crlf.pipe
expect crlf 0 '' check crlf.pipe
printf '\357\273\277' > mark.pipe && cat good.pipe >> mark.pipe
expect byte-order-mark 0 '' check mark.pipe
program 'stages 3' | sed 's/$/\r/' > crlf-wrong.pipe
expect crlf-wrong 1 '^    8 | stages 3$' check crlf-wrong.pipe
printf '%s' "$(cat good.pipe)" > no-end.pipe
expect no-end-of-line 0 '' check no-end.pipe
printf 'let a = 1\000\nmodel m {\n' > zero.pipe
expect zero-byte 1 'zero.pipe:1:10: error: byte 0x00 has no meaning here' check zero.pipe
printf 'train { data bytes "a\000b" }\n' > zero-text.pipe
expect zero-in-text 1 'text that holds a byte 0x00' check zero-text.pipe

# ---- huge ones ----

# lines COUNT FORMAT: the format with each number.
lines() { awk -v n="$1" -v f="$2" 'BEGIN { for (i = 0; i < n; i++) printf f "\n", i }'; }
# repeat COUNT TEXT
repeat() { awk -v n="$1" -v t="$2" 'BEGIN { for (i = 0; i < n; i++) printf "%s", t }'; }

LC_ALL=C awk 'BEGIN { x = 1
    for (i = 0; i < 1000000; i++) { x = (x * 69069 + 1) % 4294967296; printf "%c", 1 + int(x / 65536) % 255 } }' > some
for i in 0 1 2 3 4 5 6 7 8 9; do cat some; done > noise.pipe
within 20 noise 1 'more than 20 errors' check noise.pipe
repeat 10000000 '(' > open.pipe
within 20 ten-million-brackets 1 'error: ' check open.pipe
{ printf 'let a = '; repeat 5000000 '('; } > nested.pipe
within 20 nested-brackets 1 'nested too deeply' check nested.pipe
{ printf 'let a = 1'; repeat 5000000 '+1'; echo; } > sum.pipe
within 20 ten-million-sum 1 'more than 1000 levels' check sum.pipe
within 20 ten-million-sum-dump 1 'more than 1000 levels' check --dump=parse sum.pipe
{ printf 'let a = '; repeat 5000000 '-'; echo 1; } > minus.pipe
within 20 ten-million-minus 1 'nested too deeply' check minus.pipe
repeat 10000000 a > name.pipe
within 20 ten-million-letters 1 'a name of 10000000 bytes' check name.pipe
{ printf 'let a = '; repeat 10000000 9; echo; } > digits.pipe
within 20 ten-million-digits 1 'the number is too large' check digits.pipe
repeat 10000000 '{' > braces.pipe
within 20 ten-million-braces 1 'error: ' check braces.pipe
repeat 10000000 '"' > quotes.pipe
within 20 ten-million-quotes 1 'error: ' check quotes.pipe
repeat 3000000 'a : ' > labels.pipe
within 20 labels 1 'error: ' check labels.pipe
lines 100000 'let a%d = 1' > lets.pipe
within 20 hundred-thousand-lets 1 'more than 10000 lets' check lets.pipe
{ echo 'let b = 1'; lines 9000 'let a%d = b'; cat good.pipe; } > many-lets.pipe
within 20 nine-thousand-lets 0 '' check many-lets.pipe
lines 100000 'let a = unknown%d' > errors.pipe
within 20 hundred-thousand-errors 1 'more than 20 errors' check errors.pipe
lines 100000 'let %d' > syntax.pipe
within 20 hundred-thousand-syntax-errors 1 'more than 20 errors' check syntax.pipe
lines 100000 'layer l%d { gelu(x) }' > layers.pipe
within 20 hundred-thousand-layers 1 'more than 4096 layers are defined' check layers.pipe
{ printf 'layer l {\n'; lines 100000 'a%d = gelu(x)'; printf 'x\n}\n'
  sed 's/head :/h : l\n    head :/' good.pipe; } > body.pipe
within 20 long-body 1 'more than 1024 names in one layer' check body.pipe
sed 's/head :/h : relu * 65536\n    head :/' good.pipe > entries.pipe
within 20 too-many-layers 1 'more than 65536 layers' check entries.pipe

# model LAYER: the model of good.pipe with this layer in it
model() { sed "s/head :/h : $1\n    head :/" good.pipe; }
{ printf 'layer l {\n'; repeat 300 'gelu('; printf x; repeat 300 ')'; printf '\n}\n'; model l; } > calls.pipe
expect nested-calls 0 '' check calls.pipe
{ printf 'layer l {\n'; repeat 3000 'gelu('; printf x; repeat 3000 ')'; printf '\n}\n'; model l; } > calls.pipe
within 20 too-deep-calls 1 'more than 400 levels of calls' check calls.pipe
{ echo 'layer l0 { gelu(x) }'
  awk 'BEGIN { for (i = 1; i < 300; i++) printf "layer l%d { l%d(x) }\n", i, i - 1 }'; model l299; } > chain.pipe
expect layers-in-layers 0 '' check chain.pipe
{ echo 'layer l0 { x }'
  awk 'BEGIN { for (i = 1; i < 100; i++) printf "layer l%d { l%d(l%d(x)) }\n", i, i - 1, i - 1 }'; model l99; } > tower.pipe
within 20 tower-of-layers 1 'more than [0-9]* expressions' check tower.pipe
sed 's/l0 { x }/l0 { gelu(x) }/' tower.pipe > tower-ops.pipe
within 20 tower-of-ops 1 'more than 4096 ops in one layer' check tower-ops.pipe
awk 'BEGIN { for (i = 0; i < 100; i++) printf "-D\na%d=1\n", i }' | xargs "$pipec" check good.pipe > said 2>&1
[ "$(grep -c ' error: ' said)" = 21 ] && ok hundred-defines || not_ok hundred-defines "not 21 errors"

# ---- output ----

expect folder-below-a-file 1 'good.pipe/out.*Not a directory' build -o good.pipe/out good.pipe
expect folder-is-a-file 1 'good.pipe.*\(Not a directory\|File exists\)' build -o good.pipe good.pipe
mkdir -p full
(trap '' XFSZ; ulimit -f 1; expect full-disk 1 'cannot write full/rank0.c: File too large' build -o full good.pipe)
if [ -e /dev/full ]; then
    "$pipec" check --dump=lower good.pipe > /dev/full 2> said
    [ $? = 1 ] && grep -q 'No space left' said && ok full-output || not_ok full-output "no error"
fi

# ---- data ----

run() { expect "$@" --quiet --steps 1 good.pipe; }
run no-data 1 'good.pipe names no data to train on' run
run missing-data 1 'cannot read the data none.txt: No such file' run -D data=none.txt
run folder-as-data 1 'cannot read the data full: Is a directory' run -D data=full
: > none
run empty-data 1 'none has 0 tokens, but a sample of 8 and its target need at least 9' run -D data=none
printf 12345678 > short
run short-data 1 'short has 8 tokens, but a sample of 8' run -D data=short
sed 's/of 256/of 100/; s/linear(256)/linear(100)/' good.pipe > hundred.pipe
printf 'aaaaaaaaaaaaaaaaaaaaaaaz' > letters
expect outside-the-vocabulary 1 'token 122 at position 23 of letters, but the vocabulary is 100' \
    run --quiet --steps 1 -D data=letters hundred.pipe
sed 's/tokens.8. of 256/points[2]/; s/embedding(12)/linear(12)/; s/linear(256)/linear(2)/; s/cross_entropy/mse/' \
    good.pipe > points.pipe
echo '1 2 3 four' > words
expect words-as-numbers 1 "words:1: 'four' is not a number" run --quiet --steps 1 -D data=words points.pipe
echo '1 2 3' > three
expect half-a-record 1 'three has 3 numbers, but each record is 4' run --quiet --steps 1 -D data=three points.pipe

# ---- usage ----

expect unknown-command 2 'there is no command `fly`' fly good.pipe
expect near-command 2 'did you mean `inspect`' inspct good.pipe
expect unknown-option 2 'there is no option `--fast`' check --fast good.pipe
expect near-option 2 'did you mean `--steps`' run --stpes=3 good.pipe
expect unknown-letter 2 'there is no option `-x`' check -x good.pipe
expect one-hyphen 2 'there is no option `-steps`' run -steps 3 good.pipe
expect ambiguous 2 '`--s` is the beginning of 5 options' run --s 3 good.pipe
expect value-of-a-flag 2 '`--quiet` takes no value' run --quiet=3 good.pipe
expect unknown-choice 2 '--target cannot be `gpu`' check --target=gpu good.pipe
expect unknown-pass 2 'there is no pass `optimise`' check --dump=optimise good.pipe
expect near-pass 2 'did you mean `memory`' check --dump=memry good.pipe
expect no-command 2 'a command is missing' --quiet
expect no-file 2 '`check` needs a .pipe file' check
expect no-place 2 '`explain` needs a place' explain good.pipe
expect two-files 2 'one file at a time' check good.pipe good.pipe
expect define-nothing 2 '-D takes NAME=VALUE, not `stages`' check good.pipe -D stages
expect define-no-value 2 '-D takes NAME=VALUE, not `stages=`' check good.pipe -D stages=
expect define-no-name 2 '-D takes NAME=VALUE, not `=3`' check good.pipe -D =3
expect define-at-the-end 2 '`-D` needs a value' check good.pipe -D
expect option-no-value 2 '`-o` needs a value' build good.pipe -o
expect long-no-value 2 '`--dump` needs a value' check good.pipe --dump
expect option-of-run 2 '`--delay` belongs to `pipec run`, not to `pipec check`' check good.pipe --delay 3
expect option-of-two 2 '`--emulate` belongs to .*`pipec build`, `pipec run`, not' inspect good.pipe --emulate
expect setting-instead 2 '`-D steps=N` sets them' build good.pipe --steps 3
expect schedule-without-page 2 '`-D schedule=NAME` plans another schedule; `-o FILE.html`' \
    inspect good.pipe --schedule gpipe
expect schedule-in-a-picture 2 '`inspect --schedule` needs `-o FILE.html`' inspect good.pipe --schedule gpipe -o x.svg
expect page-unknown 2 'no schedule is called `gpip`' inspect good.pipe --schedule gpip -o x.html
expect page-near 2 'did you mean `gpipe`' inspect good.pipe --schedule gpip -o x.html
expect page-refused 1 'dualpipe cannot be on the page: .*even' inspect good.pipe --schedule gpipe,dualpipe -o x.html
expect page-of-one 2 'adds nothing to a page of 1f1b' inspect good.pipe --schedule 1f1b -o x.html
[ -e x.html ] && not_ok page-left 'a page was written' || ok page-left
expect plot-ending 2 '-o takes PLOT.svg, not `plot.png`' compare good.pipe -o plot.png

# Every way to write an option is the same option.
for words in '--dump=parse good.pipe' '--dump parse good.pipe' 'good.pipe --du parse' '--dump=parse -- good.pipe'; do
    # shellcheck disable=SC2086
    expect "written $words" 0 '^  model m' check $words
done
expect before-the-command 0 '^  model m' --dump=parse check good.pipe
for words in '-o=joined.svg' '-ojoined.svg' '-o joined.svg'; do
    rm -f joined.svg
    # shellcheck disable=SC2086
    "$pipec" inspect good.pipe $words > said 2>&1
    [ -s joined.svg ] && ok "written $words" || not_ok "written $words" 'no picture'
done
for words in '-Dstages=2' '-D=stages=2' '-D stages=2'; do
    # shellcheck disable=SC2086
    expect "written $words" 0 'pipeline stages 2' check --dump=check good.pipe $words
done
for command in check inspect compare explain diff build run; do
    expect "help-$command" 0 "^pipec $command FILE" $command --help
done
for topic in commands options settings ops schedules passes language man; do
    expect "help-$topic" 0 . --help $topic
done
expect help 0 'pipec check FILE' --help
expect help-unknown 2 'there is no help on `cooking`' --help cooking
expect help-near 2 'did you mean `schedules`' --help scedules
expect no-words 0 'pipec check FILE'
expect version 0 '^pipec [0-9]' --version

# ---- Ctrl-C ----

awk 'BEGIN { print "model m {\ninput tokens[8] of 256\nwte : embedding(12)\nh : gelu * 1022\nhead : linear(256)"
    print "loss : cross_entropy\n}\npipeline { stages 512 microbatches 4096 }" }' > long.pipe
(trap - INT; exec timeout --foreground -s INT 1 "$pipec" check long.pipe) > said 2>&1
status=$?
[ $status = 124 ] || [ $status = 130 ] && ok interrupted || not_ok interrupted "status $status"
