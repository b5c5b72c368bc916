#!/bin/sh
# model.sh LIBRARY SCRATCH: the hash of a model, which a save carries, is the same however the model is cut, scheduled
# and fed, and another one where a name, a shape, an op or what the optimizer keeps is.
pipec=$1/../../bin/pipec
cd "$2" || exit 1
cat >m.pipe <<'END'
let dim = 8
layer block { a = x + proj: linear(attention(qkv: linear(layernorm(x), 3*dim), 2, causal), dim)
              a + linear(gelu(linear(a, 4*dim)), dim) }
model m { input tokens[4] of 16; wte : embedding(dim); wpe : position; h : block * 4; head : linear(16, nobias) tied wte; loss : cross_entropy }
pipeline { stages 2 microbatches 4 schedule 1f1b }
train { data bytes "*.pipe" optimizer adamw(lr = 1e-3) steps 3 }
END
hash() { "$pipec" check "$@" --dump=emit 2>log | sed -n 's/.*\.model = "\([0-9a-f]\{16\}\)".*/\1/p' | sort -u; }
verdict() { [ "$2" -eq 0 ] && echo "ok $1" || echo "not ok $1: $(head -3 log | tr '\n' '|')"; }

mine=$(hash m.pipe)
[ "${#mine}" = 16 ]
verdict one $?
same() {
    [ "$(hash m.pipe "$@")" = "$mine" ]
    verdict "same $*" $?
}
same -D stages=1 -D schedule=naive
same -D stages=4 -D microbatches=8
same -D virtual=2 -D schedule=interleaved
same -D schedule=zbv -D virtual=2
same -D schedule=dualpipe -D microbatches=8
same -D rows=3 -D steps=9 -D seed=5 -D clip=1 -D 'data=bytes "x"'
same -D 'optimizer=adamw(lr = 1, beta1 = 0.5, decay = 0)'
same --target cuda
other() { # NAME SED-SCRIPT
    sed "$2" m.pipe >other.pipe
    now=$(hash other.pipe)
    [ "${#now}" = 16 ] && [ "$now" != "$mine" ]
    verdict "other $1" $?
}
other name 's/proj:/out:/'
other entry 's/; h :/; layers :/'
other shape 's/dim = 8/dim = 16/'
other positions 's/tokens\[4\]/tokens[5]/'
other vocabulary 's/of 16/of 17/; s/linear(16,/linear(17,/'
other layers 's/block \* 4/block * 3/'
other op 's/gelu/relu/'
other heads 's/, 2, causal/, 4, causal/'
other mask 's/, causal//'
other wires 's/a = x + proj/a = proj/'
other tie 's/ tied wte//'
other bias 's/, nobias//; s/ tied wte//'
other optimizer 's/adamw/sgd/'
other moments 's/adamw(lr = 1e-3)/sgd(lr = 1e-3, momentum = 0)/'

# A save has it: in each file of each rank, and in the index.
printf '\1\2\3\4\5\6\7\10\11\12\13' >bytes
"$pipec" run m.pipe -D data=bytes -o out --quiet --save save >log 2>&1
[ "$(grep -al "\"model\":\"$mine\"" save/*.safetensors | wc -l)" = 2 ] && grep -q "\"model\": \"$mine\"" save/*.json
verdict save $?
