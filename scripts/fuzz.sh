#!/usr/bin/env bash
# Runs every fuzz target of the module for the given time each: scripts/fuzz.sh 20s
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-20s}
git ls-files '*_test.go' | xargs grep -HoE '^func Fuzz[A-Za-z0-9_]+' | sort | while IFS=: read -r file target; do
	package=./$(dirname "$file") target=${target#func }
	echo "==> fuzz: $package $target for $time"
	go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "$time" </dev/null
done
