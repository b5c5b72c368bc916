#!/bin/sh
# wires.sh RUNTIME SCRATCH: model clocks of an emulation whose messages share wires and adapters.
. "$(dirname "$0")/setup"
for r in 0 1 2; do compile wires_$r wires.c -D_GNU_SOURCE -DRANK=$r; done
if "$runtime/pprun" --quiet 3 wires_ > out 2>&1; then ok wires
else not_ok wires "$(tail -3 out | tr '\n' '|')"; fi
if "$runtime/pprun" --quiet --delay 3000 3 wires_ > out 2>&1; then ok wires-shaken
else not_ok wires-shaken "$(tail -3 out | tr '\n' '|')"; fi
exit $failed
