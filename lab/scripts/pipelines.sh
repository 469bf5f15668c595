#!/usr/bin/env bash
# Installs what TestPipelines compares with: Python's onnxruntime with the operators of onnxruntime-extensions,
# and a tokenizer of another project. They are only for tests, and no part of tuner.
#
# usage: lab/scripts/pipelines.sh [DIR]      DIR: default .peers; the environment is DIR/pipelines
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=$(mkdir -p "${1:-.peers}" && cd "${1:-.peers}" && pwd)/pipelines

# ONNX Runtime has the version of the peers.
packages="onnxruntime==1.31.1 onnxruntime-extensions==0.15.2 onnx==1.23.2 tokenizers==0.23.3 numpy==2.4.6"
if [ "$(cat "$dir/.packages" 2>/dev/null)" != "$packages" ]; then
	echo "==> pipelines: Python's onnxruntime with extensions"
	python3 -m venv --clear "$dir"
	# shellcheck disable=SC2086 # a list of words
	"$dir/bin/pip" install -q $packages
	echo "$packages" >"$dir/.packages"
fi
echo "pipelines: ready in $dir"
