#!/bin/sh
# Lists the packages of a module whose code or tests start goroutines or have channels: those whose tests run with the
# race detector. A test program with the race detector takes several times longer to make and to run.
set -eu
go list -f '{{$dir := .Dir}}{{.ImportPath}}{{range .GoFiles}} {{$dir}}/{{.}}{{end}}{{range .CgoFiles}} {{$dir}}/{{.}}{{end}}{{range .TestGoFiles}} {{$dir}}/{{.}}{{end}}{{range .XTestGoFiles}} {{$dir}}/{{.}}{{end}}' ./... |
	while read -r package files; do
		# shellcheck disable=SC2086 # a list of files
		if grep -qE '^\s*go (func\b|[A-Za-z_.]+\()|\.Go\(|\bparallel\.|\bchan ' $files /dev/null; then
			echo "$package"
		fi
	done
