#!/bin/sh
# groups.sh RUNTIME SCRATCH: what the limits of control groups leave, of trees like those of the kernel.
. "$(dirname "$0")/setup"
compile groups groups.c -I"$here/../../runtime/local"

# group ROOT LIMIT USED CACHED: version 2
group() {
    mkdir -p "$1"
    echo "$2" > "$1/memory.max"
    echo "$3" > "$1/memory.current"
    printf 'anon 1\ninactive_file %s\nactive_file 5\n' "$4" > "$1/memory.stat"
}
mkdir -p two
group two/a max 900 0
group two/a/b 1000 400 95
group two/a/b/c max 100 0
group two/low 1000 2000 95
mkdir -p one/memory/job one/cpu/job
echo 5000 > one/memory/job/memory.limit_in_bytes
echo 4000 > one/memory/job/memory.usage_in_bytes
printf 'total_inactive_file 100\ntotal_active_file 50\n' > one/memory/job/memory.stat
echo 10 > one/cpu/job/memory.limit_in_bytes

# free NAME ROOT LINES BYTES
free() {
    printf "$3" > self
    [ "$(./groups self "$2" 2>&1)" = "$4" ] && ok "$1" || not_ok "$1" "$(./groups self "$2" 2>&1), not $4"
}
free group two '0::/a/b\n' 700
free group-below two '0::/a/b/c\n' 700
free group-above two '0::/a\n' inf
free group-full two '0::/low\n' 0
free group-of-a-container two/a/b '0::/\n' 700
free group-unknown two '0::/elsewhere\n' inf
free version-1 one '4:cpu:/job\n7:memory:/job\n' 1150
free no-groups none '0::/a\n' inf
exit $failed
