#!/usr/bin/env bash
# Runs every fuzz target of the repository for the given time each: tools/fuzz.sh 20s
# Each input that it finds is made smaller for a second at most: Go's own minute can take all of a short run.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-20s}
git ls-files '*_test.go' | xargs grep -HoE '^func Fuzz[A-Za-z0-9_]+' | sort | while IFS=: read -r file target; do
	folder=$(dirname "$file") target=${target#func }
	echo "==> fuzz: $folder $target for $time"
	go -C "$folder" test . -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 1s </dev/null
done
