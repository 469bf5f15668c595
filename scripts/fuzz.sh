#!/usr/bin/env bash
# Runs every fuzz target of the module for the given time each: scripts/fuzz.sh 20s
set -euo pipefail
time=${1:-20s}
grep -rlE '^func Fuzz' --include='*_test.go' . | sort | while read -r file; do
	package=$(dirname "$file")
	grep -oE '^func Fuzz[A-Za-z0-9_]+' "$file" | awk '{print $2}' | while read -r target; do
		echo "==> fuzz: $package $target for $time"
		go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "$time"
	done
done
