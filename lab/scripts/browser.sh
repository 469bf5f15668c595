#!/usr/bin/env bash
# Installs the tools for the tests of report.html: Chromium and Node.js from Debian, and
# playwright-core from npm, with which Node.js drives Chromium. They are only for tests, and no part
# of tuner.
#
# usage: lab/scripts/browser.sh [DIR]      DIR: default .peers
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=$(mkdir -p "${1:-.peers}/browser" && cd "${1:-.peers}/browser" && pwd)

playwright=1.65.1

# need COMMAND PACKAGE: installs Debian's package if the command does not exist.
need() {
	command -v "$1" >/dev/null && return
	echo "==> browser: installing $2"
	apt-get install -y -qq "$2" >/dev/null || {
		echo "browser: cannot install $2: run this as root, or install it yourself (apt-get update may be needed)" >&2
		exit 1
	}
}

need chromium chromium
need node nodejs
need npm npm
if [ ! -e "$dir/node_modules/.playwright-$playwright" ]; then
	echo "==> browser: playwright-core $playwright"
	npm install --silent --no-fund --no-audit --ignore-scripts --prefix "$dir" "playwright-core@$playwright"
	touch "$dir/node_modules/.playwright-$playwright"
fi
ln -sf "$(command -v chromium)" "$dir/chromium"
echo "browser: ready in $dir"
