#!/bin/sh
# Generates the Go code of every .proto file given, or of all in the repository.
# The generators are pinned and live in .cache/; the code they make is committed,
# so only who changes a .proto file needs this script (and Python 3 for protoc).
#
# usage: tools/proto.sh [FILE.proto...]
set -eu
cd "$(dirname "$0")/.."

protoc_version=1.85.1      # grpcio-tools on PyPI, which bundles protoc 35.1
protobuf_version=v1.36.12  # as in go.mod
grpc_version=v1.6.2        # protoc-gen-go-grpc

venv=.cache/grpcio-tools-$protoc_version
bin=$PWD/.cache/bin-$protobuf_version-$grpc_version
if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -c 'import grpc_tools' 2>/dev/null; then
	python3 -m venv "$venv"
	"$venv/bin/pip" install --quiet --only-binary=:all: "grpcio-tools==$protoc_version"
fi
[ -x "$bin/protoc-gen-go" ] ||
	GOBIN=$bin go install "google.golang.org/protobuf/cmd/protoc-gen-go@$protobuf_version"
[ -x "$bin/protoc-gen-go-grpc" ] ||
	GOBIN=$bin go install "google.golang.org/grpc/cmd/protoc-gen-go-grpc@$grpc_version"

[ $# -gt 0 ] || set -- $(git ls-files --cached --others --exclude-standard '*.proto')
PATH=$bin:$PATH "$venv/bin/python" -m grpc_tools.protoc -I. \
	--go_out=. --go_opt=module=tuner \
	--go-grpc_out=. --go-grpc_opt=module=tuner "$@"

# A test compares these digests with the files (internal/floors).
git ls-files --cached --others --exclude-standard '*.proto' | sort | xargs sha256sum >tools/proto.sums
