#!/bin/sh
# pytorch.sh LIBRARY SCRATCH: the 1,198 files that the schedule classes of PyTorch 2.15 have written, NAME_P_v_M.csv, and
# 555 of them with messages, _comms. All are sound, and the messages under PyTorch's own rule, one queue for both
# directions of a pair, but the 38 of its 1F1B class, whose last rank begins with 1F1 and ends with 1FM: refused, by the
# cell of a micro-batch that there is not.
pipec=$(cd "$1" && pwd)/../../bin/pipec
here=$(cd "$(dirname "$0")" && pwd)
cd "$2" && tar xzf "$here/pytorch-2.15-csv.tgz" || exit 1

model() {
    cat <<END
model chain {
    input tokens[2] of 4
    e    : embedding(4)
    h    : linear(4) * $1
    loss : cross_entropy
}
END
}

# is_said NAME: does the error name the cell of micro-batch M, by line and column
is_said() {
    grep -q "^pt/$1.csv:[0-9]*:[0-9]*: error: \`[0-9]*F$4\` is of micro-batch $4" said
}

accepted=0 refused=0
for file in pt/*.csv; do
    base=${file#pt/} base=${base%.csv}
    IFS=_ read -r name P v M rest <<END
$base
END
    placement=loop
    case $name in ZBV* | DualPipeV) placement=vee ;; esac
    model $((P * v > 1 ? P * v - 1 : 1)) >x.pipe
    for messages in ${rest:+pair} own; do
        set -- -D "schedule=from \"$file\""
        # The file says its shape; what is written is held against it.
        [ $messages = own ] ||
            set -- "$@" -D "stages=$P" -D "virtual=$v" -D "microbatches=$M" -D "placement=$placement" --messages $messages
        "$pipec" check x.pipe "$@" >said 2>&1
        status=$?
        if [ "$name" = 1F1B ]; then
            [ $status = 1 ] && is_said "$base" "$P" "$v" "$M" && refused=$((refused + 1)) && continue
        else
            [ $status = 0 ] && ! grep -q warning said && accepted=$((accepted + 1)) && continue
        fi
        echo "not ok $base $messages: $(head -2 said)"
    done
done
if [ $accepted = 1715 ]; then echo "ok 1160 sound files, 555 of them both ways"; else echo "not ok $accepted accepted"; fi
if [ $refused = 38 ]; then echo "ok 38 broken files"; else echo "not ok $refused refused"; fi
