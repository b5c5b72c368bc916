#!/bin/sh
# layouts.sh RUNTIME SCRATCH: published layouts of Megatron-LM without a `virtual`: the stages of the text are those of
# the pipeline, for any number of ranks that divides them.
pipec=$1/../../bin/pipec
cd "$2" || exit 1

# layout LAYERS STAGES TEXT, as counted by hand; RANKS VIRTUAL pairs on stdin.
layout() {
    while read -r ranks virtual; do
        cat >layout.pipe <<END
model m {
    input tokens[2] of 4
    e    : embedding(4)
    h    : linear(4) * $1
    ln_f : layernorm
    head : linear(4)
    loss : cross_entropy
}
pipeline { stages $ranks  microbatches 2  split "$3" }
END
        found=$("$pipec" inspect layout.pipe 2>&1 | head -1)
        chunks=$("$pipec" check layout.pipe --dump=partition 2>&1 | grep -c '^chunk ')
        case $found in
        *"; $ranks ranks x $virtual chunk"* | *"; $ranks rank x $virtual chunk"*) [ "$chunks" -eq "$2" ] ;;
        *) false ;;
        esac && echo "ok $3 on $ranks" || echo "not ok $3 on $ranks: $chunks chunks; $found"
    done
}

layout 15 8 'Et*3|(tt|)*6L' <<END
8 1
4 2
2 4
1 8
END
layout 61 32 'Et|(tt|)*30L' <<END
16 2
8 4
END
layout 83 40 'Et*2|(t*2|)*34,t*3|(t*3|)*3,tL' <<END
8 5
20 2
END
layout 61 4 'Et*15|t*15|t*16|t*15L' <<END
4 1
2 2
END
layout 7 4 'E|t*6|t|L' <<END
4 1
2 2
END
