#!/usr/bin/env bash
# Installs the Python packages that read tuner's tables in tests: pyarrow and pandas, MLflow, and
# Weights & Biases. They are only for tests, and no part of tuner.
#
# usage: lab/scripts/tables.sh [DIR]      DIR: default .peers; the environment is DIR/tables
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=$(mkdir -p "${1:-.peers}" && cd "${1:-.peers}" && pwd)/tables
packages=(pyarrow==25.0.1 pandas==3.1.1 mlflow==3.17.2 wandb==0.31.0)
[ "$(cat "$dir/.packages" 2>/dev/null)" = "${packages[*]}" ] && exit
echo "==> tables: pyarrow, pandas, MLflow, Weights & Biases"
python3 -m venv --clear "$dir"
"$dir/bin/pip" install -q "${packages[@]}"
echo "${packages[*]}" >"$dir/.packages"
