#!/bin/sh
# explain.sh RUNTIME SCRATCH: `pipec explain` beside its goldens, NAME.explain here; BLESS=1 rewrites them.
# Then what it says about places that there are not.
command=explain
. "$(dirname "$0")/../golden"

# Schedules that come later add rows of their own.
stable() { awk '!/^  schedule=/ || /^  schedule=(1f1b|gpipe|interleaved|naive)/'; }

plain=../inspect/course_1f1b.pipe
interleaved=../inspect/course_interleaved.pipe
timed=../inspect/cluster.pipe
golden steady $plain r2@4.5             # idle: why, the path, remedies
golden busy $plain r0@12                # runs, and did not wait
golden fill $plain r3@0                 # nothing removes it
golden drain $plain r3@32               # done before the others
golden warmup $interleaved r1@11        # factor 1 or 2: case 10
golden action $interleaved 6B0          # an action, by name
golden whole $plain 2B0 --all           # the path to its end
golden time $timed r3@6                 # ms, messages on the way
golden unit $timed r3@6000us            # the same place in another unit
cmp -s time.explain unit.explain && echo "ok units" || echo "not ok units differ"
golden options $timed r0@0.6            # keeps group = 4 when it tries warmup

refuses rank 2 'is no place in this plan' $plain r4@1
refuses late 2 'is no place in this plan' $plain r0@33.5
refuses chunk 2 'is no place in this plan' $plain 4F0
refuses micro 2 'is no place in this plan' $plain 2F8
refuses weights 2 'is no place in this plan' $plain 2W0
refuses words 2 'is no place in this plan' $plain later
refuses huge 2 'is no place in this plan' $plain 99999999999999999999F0
refuses ms_without_cluster 2 'is no place in this plan' $plain r0@1ms
refuses empty_time 2 'is no place in this plan' $plain r0@
