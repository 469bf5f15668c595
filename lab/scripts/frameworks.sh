#!/usr/bin/env bash
# Installs the frameworks whose models tuner converts: PyTorch, TensorFlow, and scikit-learn with
# XGBoost and LightGBM, each with its converters in a Python environment of its own. They are only for
# tests, and no part of tuner.
#
# usage: lab/scripts/frameworks.sh [DIR]      DIR: default .peers; the environments are below DIR/frameworks
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=$(mkdir -p "${1:-.peers}/frameworks" && cd "${1:-.peers}/frameworks" && pwd)

# environment NAME PACKAGE...: makes an environment, unless it has exactly these packages already.
environment() {
	local name=$1
	shift
	[ "$(cat "$dir/$name/.packages" 2>/dev/null)" = "$*" ] && return
	echo "==> frameworks: $name"
	python3 -m venv --clear "$dir/$name"
	"$dir/$name/bin/pip" install -q "$@"
	echo "$*" >"$dir/$name/.packages"
}

# These versions work together on Python 3.11.
environment torch torch==2.15.0 onnx==1.23.2 onnxscript numpy==2.4.6
environment tensorflow tensorflow-cpu==2.21.0 keras==3.15.1 tf2onnx==1.17.0 onnx==1.23.2 numpy==2.4.6
environment sklearn scikit-learn==1.9.1 skl2onnx==1.20.0 onnxmltools==1.16.0 lightgbm==4.7.0 xgboost==3.2.0 onnx==1.23.2 numpy==2.4.6 packaging
echo "frameworks: ready in $dir"
