#!/usr/bin/env bash
# Installs servers that stand for the object stores of clouds in tests: moto (S3), fake-gcs-server
# (Google Cloud Storage) and Azurite (Azure Blob Storage). They are only for tests, and no part of tuner.
#
# usage: lab/scripts/stores.sh [DIR]      DIR: default .peers; they are in DIR/stores
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=$(mkdir -p "${1:-.peers}" && cd "${1:-.peers}" && pwd)/stores
versions="moto 5.2.5, fake-gcs-server 1.56.1, azurite 3.35.0"
[ "$(cat "$dir/.versions" 2>/dev/null)" = "$versions" ] && exit
echo "==> stores: $versions"
rm -rf "$dir"
mkdir -p "$dir"
python3 -m venv "$dir/moto"
"$dir/moto/bin/pip" install -q 'moto[server,s3]==5.2.5'
GOFLAGS= GOBIN="$dir" go install github.com/fsouza/fake-gcs-server@v1.56.1
npm install --silent --no-audit --no-fund --prefix "$dir/azurite" azurite@3.35.0
echo "$versions" >"$dir/.versions"
