# The compiler's folders stand in one row, and a folder uses only those to the right of it: by the names that its
# objects need (nm), and by what it includes. What the Makefile writes (build/grammar: the parser, the pass of
# `read`; the list of schedules, which is data) counts with the folder that it belongs to.
row='drive study program show order/schedules order/search order plan model read .'
objects=$(dirname "$1")/..
scratch=$2

place() { # FOLDER -> its number in the row
    n=0
    for folder in $row; do
        n=$((n + 1))
        [ "$folder" = "$1" ] && echo $n && return
    done
    echo 0
}

for source in $(find compiler -name '*.c'); do
    folder=$(dirname "${source#compiler/}")
    object=$objects/${source%.c}.o
    [ "$(place "$folder")" -gt 0 ] && [ -f "$object" ] || { echo "not ok $source: no object, or no folder of the row"; continue; }
    nm "$object" | awk -v folder="$folder" -v n="$(place "$folder")" -v file="$source" '
        $2 ~ /^[TDRB]$/ {print "defines", $3, folder, n, file}
        $1 == "U" {print "uses", $2, folder, n, file}'
    sed -n 's/^#include "\(.*\)"$/\1/p' "$source" "${source%.c}.h" 2>/dev/null | while read -r header; do
        case $header in
        */*) echo "includes $(dirname "$header") $folder $(place "$folder") $source $(place "$(dirname "$header")")" ;;
        esac
    done
done >"$scratch/names"
grep '^not ok' "$scratch/names"
awk '
    $1 == "defines" && FNR == NR {home[$2] = $4; owner[$2] = $5}
    FNR == NR {next}
    $1 == "uses" && ($2 in home) {
        checked++
        if (home[$2] < $4) {print "not ok " $5 " uses " $2 " of " owner[$2] ", a folder to the left of its own"; bad++}
    }
    $1 == "includes" {
        checked++
        if ($6 < $4) {print "not ok " $5 " includes a header of " $2 ", a folder to the left of its own"; bad++}
    }
    END {
        if (checked < 500) print "not ok only " checked " uses were found"
        else if (!bad) print "ok " checked " uses and includes point one way: " row
    }' row="$row" "$scratch/names" "$scratch/names"
