#!/bin/sh
# wires.sh RUNTIME SCRATCH: model clocks of an emulation whose messages share wires and adapters, case by case.
. "$(dirname "$0")/setup"
clocks wires 3
clocks wires 3 --delay 3000
exit $failed
