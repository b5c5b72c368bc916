#!/bin/sh
# stale.sh LIBRARY SCRATCH: programs are made anew when what they are made from is another, and only then; the times
# of files mean nothing.
. "$(dirname "$0")/setup"

# A copy of pipec, so that its parts can be changed.
mkdir -p copy/bin copy/lib
cp "$pipec" copy/bin/pipec
cp -R "$library" copy/lib/pipec
lib=copy/lib/pipec
echo 'noted 1' >version

# compiles NAME COUNT [WORD...]: so many ranks are compiled, the right numbers come out, in both kinds of folders
compiles() {
    name=$1 count=$2
    shift 2
    : >compiled
    CC=${compiler:-./noted-cc} copy/bin/pipec run s.pipe -o named "$@" --quiet --losses losses >log 2>&1 &&
        CC=${compiler:-./noted-cc} copy/bin/pipec build s.pipe "$@" >>log 2>&1 &&
        [ "$(wc -l <compiled)" = "$count" ] || { tail -2 compiled >>log; false; }
    verdict "$name" $?
}
compiles first 4
compiles again 0
touch -d 2030-01-01 $lib/libpp.a $lib/pp.h named/rank0.c
touch -d 1999-01-01 named/rank0 named/rank1
compiles times-alone 0
echo 'int pp_nobody(void) { return 0; }' >nobody.c && ${REAL_CC:-cc} -c nobody.c && ar rcs $lib/libpp.a nobody.o
touch -d 1999-01-01 $lib/libpp.a
compiles archive 4
echo '/* another */' >>$lib/pp.h
touch -d 1999-01-01 $lib/pp.h
compiles header 4
echo 'noted 2' >version
compiles compiler-version 4
compiler='./noted-cc -O0' compiles flags 4
cp noted-cc other-cc
compiler=./other-cc compiles other-compiler 4
own=$(copy/bin/pipec --version | sed 's/pipec //')
LC_ALL=C sed "s/$(echo "$own" | sed 's/[.]/[.]/g')/$(echo "$own" | tr 0-9 1-90)/g" "$pipec" >changed && cat changed >copy/bin/pipec
[ "$(copy/bin/pipec --version)" != "pipec $own" ]
verdict other-version $?
compiles version 4
compiles value 4 -D rate=0.2
rm named/rank1
: >compiled
CC=./noted-cc copy/bin/pipec build s.pipe -D rate=0.2 -o named >log 2>&1 && [ "$(wc -l <compiled)" = 2 ] && [ -x named/rank1 ]
verdict missing-program $?
