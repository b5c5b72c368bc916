#!/bin/sh
# data.sh RUNTIME SCRATCH: which samples are read from tokens and from numbers, and what is refused.
. "$(dirname "$0")/setup"
compile tokens data.c
compile numbers data.c -DNUMBERS

# little-endian 0 .. 999 in two files, cut where no sample ends
awk 'BEGIN { for (i = 0; i < 1000; i++) printf "\\%03o\\%03o\n", i % 256, int(i / 256) }' > codes
printf "$(head -n 333 codes | tr -d '\n')" > tokens1.bin
printf "$(tail -n +334 codes | tr -d '\n')" > tokens2.bin
awk 'BEGIN { print "# two inputs, four targets"
             for (k = 0; k < 7; k++) { for (j = 0; j < 6; j++) printf "%d ", 10 * k + j; print "" } }' > numbers.txt

accepts() {
    name=$1
    shift
    "$@" --quiet > "$name" 2>&1 && ok "$name" || not_ok "$name" "$(cat "$name")"
}
refuses() {
    name=$1 text=$2
    shift 2
    "$@" > "$name" 2>&1
    [ $? = 1 ] || not_ok "$name" "status"
    expect "$name" "$name" "$text"
}
accepts two-byte-tokens ./tokens
accepts numbers-as-text ./numbers
printf 'abc' > odd.bin
printf '\001\000\350\003\001\000\001\000\001\000\001\000' > high.bin
printf '1 2 # none\n 3 4x\n' > words.txt
printf '1 2 3 4 5 6 7\n' > ragged.txt
printf '1 nan\n' > nan.txt
refuses odd-bytes 'odd.bin has 3 bytes, which is no whole number of 2-byte tokens' ./tokens --data odd.bin
refuses high-id 'token 1000 at position 1 of high.bin, but the vocabulary is 1000' ./tokens --data high.bin
refuses no-number "words.txt:2: '4x' is not a number" ./numbers --data words.txt
refuses not-finite "nan.txt:1: 'nan' is not a number" ./numbers --data nan.txt
printf '1 2 3 4 5 6\0007\n' > nul.txt
printf '1 2 3 4\n5 0x10\n' > hexadecimal.txt
printf '1 \0332\n' > escape.txt
mkfifo pipe.txt
refuses nul "nul.txt:1: '6.0007' is not a number" ./numbers --data nul.txt
refuses hexadecimal "hexadecimal.txt:2: '0x10' is not a number" ./numbers --data hexadecimal.txt
refuses escape "escape.txt:1: '.0332' is not a number" ./numbers --data escape.txt
refuses pipe 'the data pipe.txt is not a regular file' ./numbers --data pipe.txt
refuses device 'the data /dev/zero is not a regular file' ./tokens --data /dev/zero
refuses ragged 'ragged.txt has 7 numbers, but each record is 6: 2 positions of 1' ./numbers --data ragged.txt
refuses no-records 'empty.txt has 0 numbers' ./numbers --data "$(: > empty.txt; echo empty.txt)"
exit $failed
