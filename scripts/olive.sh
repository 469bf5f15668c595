#!/usr/bin/env bash
# Installs Olive, with which `tuner ortsweep` is compared (internal/bench/olive), into an environment of its own: it brings
# PyTorch, some 6 GB with what PyPI's build of it asks for. For that benchmark alone; nothing of it becomes part of tuner.
#
# usage: scripts/olive.sh [DIR]      DIR: $TUNER_PEERS, or else .peers
#
# What came to its end is not made again (DIR/.done has a stamp with the versions), what was interrupted is made anew.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=${1:-${TUNER_PEERS:-.peers}}
dir=$(mkdir -p "$dir" && cd "$dir" && pwd)

olive=0.13.0
ort=1.31.1 # the one of tuner's own CPU flavour, and of the judge

stamp=$dir/.done/olive-$olive-$ort
if [ ! -e "$stamp" ]; then
	echo "==> olive: Olive $olive with ONNX Runtime $ort and PyTorch"
	python3 -m venv --clear "$dir/olive"
	"$dir/olive/bin/pip" install -q "olive-ai==$olive" "onnxruntime==$ort" onnx psutil requests torch
	mkdir -p "$dir/.done"
	touch "$stamp"
fi
echo "olive: ready in $dir/olive"
