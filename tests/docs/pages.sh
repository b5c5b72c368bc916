#!/bin/sh
# pages.sh RUNTIME SCRATCH: pages of docs show what pipec does. Every command of a page is run again and
# its output, files included, compared with the page. A page is every .md file that has such a block.
#
#   block of a page             what is compared
#   ```
#   $ pipec inspect X.pipe      a command, run in a folder that looks like the repository's root
#   ...                         one or more lines that are not shown
#   bubble ...                  a line of its output, byte for byte
#   ```
. "$(dirname "$0")/page"

# ---- commands and their output ----

root=$scratch/root
mkdir -p "$root/docs/pictures"
ln -s "$here/examples" "$root/examples"

# blocks PAGE FOLDER: commands go to N.sh, what the page shows for them to N.page; line numbers in N.line.
blocks() {
    awk -v prefix="$2/" '
    /^```/ { inside = !inside; shown = ""; wrapped = 0; next }
    !inside { next }
    /^\$ / || wrapped {
        if (!wrapped) {
            if (shown) close(shown)
            name = prefix sprintf("%03d", ++count)
            shown = name ".page"
            printf "" > shown
            print NR > (name ".line"); close(name ".line")
            sub(/^\$ /, "")
        }
        wrapped = /\\$/
        print > (name ".sh")
        if (!wrapped) close(name ".sh")
        next
    }
    shown { print > shown }' "$1"
}

# The lines of `shown` occur in this order in `printed`, next to each other where no `...` stands between.
cat >"$scratch/match.awk" <<'AWK'
FNR == NR { shown[++want] = $0; next }
{ printed[++have] = $0 }
function fits(first, last, at,    i) {
    for (i = first; i <= last; i++)
        if (printed[at + i - first] != shown[i])
            return 0
    return 1
}
END {
    at = 1  # the next line of `printed` that nothing stands for yet
    for (i = 1; i <= want; i = last + 1) {
        gap = shown[i] == "..."
        first = i + gap
        for (last = first; last < want && shown[last + 1] != "..."; last++)
            ;
        if (first > want) {  # `...` at the end
            if (at > have) { print "nothing is left out at the end"; exit 1 }
            exit 0
        }
        length_ = last - first + 1
        low = at + gap
        high = gap ? have - length_ + 1 : at
        if (last == want)  # up to the end of the output
            low = low > have - length_ + 1 ? low : have - length_ + 1
        for (at = low; at <= high && !fits(first, last, at); at++)
            ;
        if (at > high || at + length_ - 1 > have) {
            printf "not printed, or not there: %s\n", shown[first]
            exit 1
        }
        at += length_
    }
    if (at <= have) { printf "printed, but not shown: %s\n", printed[at]; exit 1 }
}
AWK

# repeat NAME FOLDER: runs the commands of a page and compares.
repeat() {
    bad=''
    count=0
    for command in "$2"/*.sh; do
        block=${command%.sh}
        count=$((count + 1))
        line=$(cat "$block.line")
        case $(cat "$command") in
        'pipec '* | 'cat '*) ;;
        *)
            not_ok "$1" "line $line: neither pipec nor cat"
            continue
            ;;
        esac
        (cd "$root" && sh "$command") >"$block.out" 2>&1 ||
            not_ok "$1" "line $line: exit status $?: $(head -3 "$block.out")"
        why=$(awk -f "$scratch/match.awk" "$block.page" "$block.out") || not_ok "$1" "line $line: $why"
    done
    verdict "$1" "$count" commands
}

pages=''
for page in "$here"/docs/*.md; do
    grep -q '^\$ ' "$page" || continue
    name=$(basename "$page" .md)
    pages="$pages $page"
    mkdir "$scratch/$name"
    blocks "$page" "$scratch/$name"
    repeat "$name-commands" "$scratch/$name"
done

# ---- pictures: BLESS=1 rewrites them ----

bad=''
count=0
[ -n "$BLESS" ] && cp "$root"/docs/pictures/*.svg "$here/docs/pictures/"
for picture in "$root"/docs/pictures/*.svg "$here"/docs/pictures/*.svg; do
    name=pictures/$(basename "$picture")
    count=$((count + 1))
    cmp -s "$root/docs/$name" "$here/docs/$name" || not_ok pictures "docs/$name is not what its command writes"
    # shellcheck disable=SC2086
    grep -q "]($name)" $pages || not_ok pictures "docs/$name is on no page"
done
for picture in "$here"/docs/pictures/*.png; do # a screenshot, made by docs/pictures/page.sh
    grep -q "](docs/pictures/$(basename "$picture"))" "$here/README.md" || not_ok pictures "$picture is not in the README"
done
verdict pictures "$count" pictures

# ---- what the README shows of examples/gpt.pipe ----

bad=''
count=0
pipec inspect "$here/examples/gpt.pipe" >"$scratch/gpt" && pipec check "$here/examples/gpt.pipe" --dump=emit >>"$scratch/gpt" ||
    not_ok readme "examples/gpt.pipe has no plan"
grep -E '^    (rank [0-9]|    pp_|\{   // take)' "$here/README.md" | sed 's/^    //; s/^rank/  rank/' >"$scratch/readme"
while IFS= read -r line; do
    count=$((count + 1))
    grep -qxF -e "$line" "$scratch/gpt" || not_ok readme "not printed: $line"
done <"$scratch/readme"
[ "$count" -gt 7 ] || count=0
verdict readme "$count" 'lines of examples/gpt.pipe'
