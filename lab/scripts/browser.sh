#!/usr/bin/env bash
# Installs what the tests of report.html need: Chromium and Node.js from Debian, and playwright-core, which drives the one from the
# other, from npm. For tests alone; nothing of it becomes part of tuner.
#
# usage: lab/scripts/browser.sh [DIR]      DIR: .peers unless given
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=$(mkdir -p "${1:-.peers}/browser" && cd "${1:-.peers}/browser" && pwd)

playwright=1.65.1

# need COMMAND PACKAGE: installs Debian's package where there is no such command.
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
