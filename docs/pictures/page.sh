#!/bin/sh
# page.sh: makes page.png beside it, the README's screenshot of the page that `pipec inspect -o X.html` writes. It
# needs Chromium, so `make bless` leaves it alone: run it after the page has changed its looks.
cd "$(dirname "$0")/../.." || exit 1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
build/bin/pipec inspect examples/course/chain.pipe --schedule zbv,1f1b,gpipe -o "$scratch/page.html" &&
    chromium --headless --no-sandbox --disable-gpu --user-data-dir="$scratch/profile" --window-size=1200,600 \
        --screenshot="$PWD/docs/pictures/page.png" "file://$scratch/page.html#plan=zbv&time=22&action=1I3"
