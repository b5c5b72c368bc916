#!/bin/sh
# traffic.sh RUNTIME SCRATCH: the same of random traffic; also shaken.
. "$(dirname "$0")/setup"
clocks traffic 4
clocks traffic 4 --steps 40 --delay 2000
exit $failed
