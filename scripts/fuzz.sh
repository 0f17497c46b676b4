#!/usr/bin/env bash
# fuzz.sh SECONDS [OPTION...]: run the C kernel on made-up bytes under AddressSanitizer and UndefinedBehaviorSanitizer.
# With clang by libFuzzer, which looks for inputs that reach new code; with another compiler on random changes of a few.
# Options go to the compiler: -DSCAN_PORTABLE tries the code of machines without SSE2.
# fuzz.sh inputs [N]: check each target of tests/fuzz/runner.py on N random inputs; by default as many as it says itself.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

python=.venv/bin/python
[ -x "$python" ] || python=python3
if [ "${1:-}" = inputs ]; then
    failed=0
    for target in $(grep -l "^from runner import" tests/fuzz/*.py); do
        say "$target"
        "$python" "$target" ${2:+--inputs "$2"} || failed=1
    done
    exit $failed
fi
seconds=${1:?usage: fuzz.sh SECONDS [OPTION...], or fuzz.sh inputs [N]}
shift
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"$python" tests/fuzz/corpus.py "$place/corpus"

flags=(-std=c11 -g -O1 -fno-omit-frame-pointer -fno-sanitize-recover=all -Isrc/cranfield/ranking/kernel "$@")
export UBSAN_OPTIONS=print_stacktrace=1
echo 'int LLVMFuzzerTestOneInput(const unsigned char *b, unsigned long n) { return 0; }' >"$place/probe.c"
has_fuzzer=
clang -w -fsanitize=fuzzer,address "$place/probe.c" -o "$place/probe" 2>/dev/null && has_fuzzer=1
compiler=$(command -v gcc || command -v clang || command -v cc) || [ -n "$has_fuzzer" ] || die "no C compiler here"

# fuzz NAME SECONDS: tests/fuzz/fuzz_NAME.c for some seconds.
fuzz() {
    local target=$place/fuzz_$1 source=tests/fuzz/fuzz_$1.c
    if [ -n "$has_fuzzer" ]; then
        clang "${flags[@]}" -fsanitize=fuzzer,address,undefined "$source" -lm -o "$target"
        say "$1: libFuzzer, $2 seconds"
        # What it found is kept, and says how to see it again.
        "$target" -max_total_time="$2" -max_len=8192 -timeout=20 -rss_limit_mb=1500 -print_final_stats=1 \
            -verbosity=1 -dict=tests/fuzz/words.dict -artifact_prefix=tests/fuzz/found- "$place/corpus" >"$place/log" 2>&1 || {
            tail -n 60 "$place/log" >&2
            die "the kernel failed; tests/fuzz/found-* holds the input"
        }
        grep -E '^(Done|stat::number_of_executed_units)' "$place/log"
    else
        say "$1: no libFuzzer here: random changes, $2 seconds, $(basename "$compiler")"
        "$compiler" "${flags[@]}" -fsanitize=address,undefined "$source" tests/fuzz/driver.c -lm -o "$target"
        "$target" "$2" "$place"/corpus/*
    fi
}

fuzz scan "$seconds"
fuzz count $((seconds / 2 + 1))
