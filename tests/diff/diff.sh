#!/bin/sh
# diff.sh RUNTIME SCRATCH: `pipec diff` beside its goldens, NAME.diff here; BLESS=1 rewrites them.
command=diff
. "$(dirname "$0")/../golden"

course=../inspect/course_
golden same ${course}1f1b.pipe ${course}1f1b.pipe
golden moved ${course}1f1b.pipe ${course}gpipe.pipe
golden warmups ${course}interleaved.pipe --schedule 'interleaved(warmup = 1, group = 4),interleaved'
golden virtual ${course}1f1b.pipe ${course}interleaved.pipe
golden fewer ${course}1f1b.pipe ../schedule/1f1b.pipe       # other P and M
golden timed ../inspect/cluster.pipe --schedule 1f1b,gpipe -D virtual=1 --all

# One list moves to another by what diff says: nothing else, and nothing twice.
"$pipec" diff ${course}1f1b.pipe ${course}naive.pipe --all > "$scratch/out"
kept=$(sed -n 's/^  rank [0-9]*: \([0-9]*\) kept.*/\1/p' "$scratch/out" | tr '\n' ' ')
[ "$kept" = "9 9 9 16 " ] && echo "ok runs" || echo "not ok runs kept $kept"

refuses one_schedule 2 'takes two schedules' ${course}1f1b.pipe --schedule 1f1b
refuses three_schedules 2 'takes two schedules' ${course}1f1b.pipe --schedule 1f1b,gpipe,naive
refuses unknown 2 'did you mean .gpipe.' ${course}1f1b.pipe --schedule 1f1b,gpip
refuses nothing 2 'needs a second file' ${course}1f1b.pipe
refuses both 2 'needs a second file' ${course}1f1b.pipe ${course}gpipe.pipe --schedule 1f1b,gpipe
refuses missing 1 'cannot read' ${course}1f1b.pipe nowhere.pipe
