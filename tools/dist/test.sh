#!/usr/bin/env bash
# Installs each package for this machine that `make dist` made, where there is no Go and no compiler, and tunes a small model there. It
# needs root and debootstrap. Without skopeo and uv, their checks are skipped, and it says so.
#
# usage: tools/dist/test.sh [MODEL]
set -euo pipefail
cd "$(dirname "$0")/../.."
model=${1:-models/mlp.onnx}
arch=$(dpkg --print-architecture)
work=$PWD/dist/work/test
base=$work/base

# in_root ROOT COMMAND... runs a command in a root, with /proc and a loopback device of its own, and without a network.
in_root() {
	unshare --mount --net --pid --fork bash -c 'root=$1; shift; ip link set lo up; mount -t proc proc "$root/proc"
		exec chroot "$root" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root "$@"' - "$@"
}

# fresh makes a root without a compiler: a copy of Debian's smallest, with Python.
fresh() {
	if [ ! -e "$base/done" ]; then
		rm -rf "$base"
		mkdir -p "$work"
		debootstrap --variant=minbase --include=python3,python3-pip,python3-venv bookworm "$base" >"$work/debootstrap.log"
		touch "$base/done"
	fi
	rm -rf "$1"
	cp -a "$base" "$1"
	if chroot "$1" sh -c 'command -v cc || command -v gcc || command -v go'; then
		echo "the empty root has a compiler" >&2
		exit 1
	fi
	cp "$model" "$1/root/model.onnx"
}

# seconds FROM prints the time since a moment of `date +%s.%N`.
seconds() { python3 -c "import time; print(f'{time.time() - $1:.1f} s')"; }

# tune ROOT FOLDER TUNER looks at the version, and tunes the model in a folder of the root.
tune() {
	in_root "$1" "$3" --version | grep '^tuner version '
	begun=$(date +%s.%N)
	in_root "$1" sh -c "cd $2 && exec $3 run model.onnx --p99 1s --budget 20s" >"$1/$2/run.log" 2>&1 || {
		cat "$1/$2/run.log" >&2
		exit 1
	}
	echo "first run with a budget of 20 s: $(seconds "$begun")"
	grep -E '^(Recommended|repository)' "$1/$2/run.log"
	grep -q '^repository: ' "$1/$2/run.log"
}

# documented PREFIX checks manual, completion and list of components.
documented() {
	test -n "$(find "$1/share/man/man1" -name 'tuner-run.1*')"
	test -s "$1/share/bash-completion/completions/tuner"
	test -s "$1/share/doc/tuner/tuner.cdx.json"
}

(cd dist && sha256sum --check --quiet SHA256SUMS)

echo "==> dist-test: archive for macOS, which cannot run here"
mkdir -p "$work"
tar -xzf dist/tuner_*_darwin_arm64.tar.gz -C "$work" --strip-components=1
documented "$work"
file "$work/bin/tuner" | grep 'Mach-O 64-bit arm64 executable'
rm -r "$work/bin" "$work/share"

echo "==> dist-test: archive"
root=$work/root
fresh "$root"
begun=$(date +%s.%N)
tar -xzf dist/tuner_*_linux_"$arch".tar.gz -C "$root/opt" --strip-components=1
echo "installed: $(seconds "$begun"), $(du -sm "$root/opt" | cut -f1) MB"
documented "$root/opt"
tune "$root" /root /opt/bin/tuner

echo "==> dist-test: .deb"
fresh "$root"
cp dist/tuner_*_"$arch".deb "$root/tuner.deb"
begun=$(date +%s.%N)
in_root "$root" dpkg -i /tuner.deb >"$work/dpkg.log"
echo "installed: $(seconds "$begun")"
documented "$root/usr"
tune "$root" /root /usr/bin/tuner

echo "==> dist-test: wheel, with the root's own Python"
fresh "$root"
wheel=$(ls dist/tuner-*_"$(uname -m)".whl)
cp "$wheel" "$root/"
in_root "$root" python3 -m venv /venv
begun=$(date +%s.%N)
in_root "$root" /venv/bin/pip install --quiet --no-index --disable-pip-version-check "/${wheel##*/}"
echo "installed: $(seconds "$begun"), $(du -sm "$root/venv" | cut -f1) MB with Python's own"
documented "$root/venv"
tune "$root" /root /venv/bin/tuner

echo "==> dist-test: image, as its user"
rm -rf "$root"
mkdir -p "$root/layers"
tar -xf dist/tuner_*_linux_"$arch".image.tar -C "$root/layers"
python3 - "$root" <<'PYTHON'
import json, os, sys, tarfile
root = sys.argv[1]
for layer in json.load(open(root + "/layers/manifest.json"))[0]["Layers"]:
    tarfile.open(os.path.join(root, "layers", layer)).extractall(root, numeric_owner=True)
PYTHON
rm -r "$root/layers"
cp "$model" "$root/work/model.onnx"
mkdir "$root/proc" "$root/dev"
touch "$root/dev/null" "$root/work/run.log"
image() {
	unshare --mount --net --pid --fork bash -c 'ip link set lo up && mount -t proc proc "$1/proc" && mount --bind /dev/null "$1/dev/null" && cd "$1/work" &&
		root=$1 && shift && exec env -i PATH=/usr/bin HOME=/work '"$work"'/enter "$root" "$@"' - "$root" "$@"
}
# The image has no shell and no env: chroot starts tuner itself.
printf '#!/bin/sh\nroot=$1; shift\nexec /usr/sbin/chroot --userspec=65532:65532 "$root" /usr/bin/tuner "$@"\n' >"$work/enter"
chmod +x "$work/enter"
image --version | grep '^tuner version '
image run /work/model.onnx --p99 1s --budget 20s -o /work/out >"$work/run.log" 2>&1 || { cat "$work/run.log" >&2; exit 1; }
grep -E '^(Recommended|repository)' "$work/run.log"
grep -q '^repository: ' "$work/run.log"
if command -v skopeo >/dev/null; then
	skopeo inspect "docker-archive:$(ls dist/tuner_*_linux_"$arch".image.tar)" | grep -E '"(Architecture|Os)"'
else
	echo "SKIPPED skopeo: not installed"
fi

echo "==> dist-test: wheel, with the Pythons of this machine"
for minor in 9 10 11 12 13; do
	python=$(ls -d ~/.pyenv/versions/3.$minor.*/bin/python3 2>/dev/null | head -1 || true)
	python=${python:-$(command -v python3.$minor || true)}
	[ -n "$python" ] || { echo "SKIPPED Python 3.$minor: not installed"; continue; }
	rm -rf "$work/venv"
	"$python" -m venv "$work/venv"
	"$work/venv/bin/pip" install --quiet --no-index --disable-pip-version-check "$wheel"
	"$work/venv/bin/tuner" --version | grep '^tuner version '
	TUNER_CACHE=$work/cache TUNER_ORT_LIBRARY= "$work/venv/bin/tuner" runtime list | grep "selected.*$work/venv/lib/tuner"
done
if command -v uv >/dev/null; then
	UV_TOOL_DIR=$work/tools UV_TOOL_BIN_DIR=$work/links uv tool install --quiet --force "$wheel"
	TUNER_CACHE=$work/cache TUNER_ORT_LIBRARY= "$work/links/tuner" runtime list | grep "selected.*$work/tools"
else
	echo "SKIPPED uv tool install: uv is not installed"
fi
rm -rf "$root" "$work/venv" "$work/tools" "$work/links" "$work/cache"
