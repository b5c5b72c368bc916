# trace.awk: `pipec check --dump=prove` -> a .trace of one step that ran as it is planned: a SEND hands its message over
# in no time, and a receive that blocks has it when it arrives.
NF > 5 && $6 !~ /REDUCE|STEP/ {
    printf "%d 1 %s %.0f %.0f\n", $5, $6, $1 * 1e9, ($6 ~ /SEND/ ? $1 : $3) * 1e9
}
