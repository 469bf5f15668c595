#!/usr/bin/env bash
# Installs the real programs with which tuner is compared: Triton's server with its onnxruntime
# backend, perf_analyzer, Model Analyzer and tritonclient's examples. They are only for tests and
# benchmarks (docs/reference/conformance.md), and no part of tuner.
#
# usage: lab/scripts/peers.sh [DIR [qa]]      DIR: default .peers; qa: what lab/scripts/qa.sh needs besides
#
# Everything comes from PyPI, Debian's packages and Triton's public repositories. For machines
# without access to GitHub, TUNER_PEERS_MIRROR names a folder with bare clones of the six
# repositories (qa: two more, server and identity_backend). Their names must contain the repository's. A complete step is not repeated: DIR/.done
# has a stamp of each with its version. An interrupted step is repeated.
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=$(mkdir -p "${1:-.peers}" && cd "${1:-.peers}" && pwd)
mirror=${TUNER_PEERS_MIRROR:-}

# These versions belong together. pytriton 0.7.0 bundles Triton's core 2.51.0 (release 24.10). The
# backend's branch r24.10 implements its backend interface. 2.51.0 is the newest perf_analyzer that
# runs on glibc 2.36.
pytriton=0.7.0
triton=2.51.0
branch=r24.10
ort=1.31.1
model_analyzer=1.58.0
header=v1.12.1 # of yalue/onnxruntime_go: brings ONNX Runtime's C header with API version 19, which the backend asks for

# step NAME VERSION: calls the function NAME, unless that version of it is already complete.
step() {
	local stamp=$dir/.done/$1-$2
	if [ ! -e "$stamp" ]; then
		"$1"
		mkdir -p "$dir/.done"
		touch "$stamp"
	fi
}

# Debian's libraries and build tools. Installed ones need no root.
packages() {
	local missing=()
	for package in python3-venv libb64-0d cmake g++ rapidjson-dev libboost-dev googletest unzip; do
		dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
	done
	[ ${#missing[@]} -eq 0 ] && return
	echo "==> peers: installing ${missing[*]}"
	apt-get install -y -qq "${missing[@]}" >/dev/null || {
		echo "peers: cannot install ${missing[*]}: run this as root, or install them yourself (apt-get update may be needed)" >&2
		exit 1
	}
}

# Triton's core, and a Python with its clients.
server() {
	echo "==> peers: Triton $triton"
	python3 -m venv --clear "$dir/triton"
	"$dir/triton/bin/pip" install -q "nvidia-pytriton==$pytriton" 'tritonclient[all]' 'numpy<2' "onnxruntime==$ort" onnx
	local site
	site=$(packages_of_triton)
	wrapper tritonserver "export LD_LIBRARY_PATH=$site/nvidia_pytriton.libs PYTHONPATH=$site PATH=$dir/triton/bin:\$PATH" \
		"exec $site/pytriton/tritonserver/bin/tritonserver --backend-directory=$dir/backends \"\$@\""
}

packages_of_triton() { echo "$dir"/triton/lib/python3.*/site-packages; }

# The backend for models in Python, which is a part of Triton's package. Its processes are of that Python's version.
code() {
	echo "==> peers: the Python backend"
	local site to=$dir/backends/python
	site=$(packages_of_triton)
	local version=${site%/site-packages}
	rm -rf "$to"
	mkdir -p "$to"
	cp "$site"/pytriton/tritonserver/backends/python/{libtriton_python.so,triton_python_backend_utils.py} \
		"$site/pytriton/tritonserver/python_backend_stubs/${version##*/python}/triton_python_backend_stub" "$to/"
}

# The wheel contains the binary, which needs a CUDA library even without a GPU. pytriton has one.
perf_analyzer() {
	echo "==> peers: perf_analyzer $triton"
	rm -rf "$dir/pa"
	mkdir -p "$dir/pa"
	"$dir/triton/bin/pip" download -q --no-deps -d "$dir/pa" "tritonclient==$triton"
	unzip -qoj "$dir/pa/tritonclient-$triton-"*.whl '*/bin/perf_analyzer' -d "$dir/pa"
	chmod +x "$dir/pa/perf_analyzer"
	ln -sf "$(packages_of_triton)"/nvidia_pytriton.libs/libcudart-* "$dir/pa/libcudart.so.12"
	wrapper perf_analyzer "export LD_LIBRARY_PATH=$dir/pa" "exec $dir/pa/perf_analyzer \"\$@\""
}

model_analyzer() {
	echo "==> peers: Model Analyzer $model_analyzer"
	python3 -m venv --clear "$dir/ma"
	"$dir/ma/bin/pip" install -q "triton-model-analyzer==$model_analyzer"
}

# The sources of one of Triton's repositories, of a branch.
sources() {
	local to=$build/src/$1 bare branch=${2:-$branch}
	rm -rf "$to" "$build/git/$1"
	mkdir -p "$to" "$build/git"
	if [ -z "$mirror" ]; then
		git clone -q --depth 1 -b "$branch" "https://github.com/triton-inference-server/$1" "$build/git/$1"
		bare=$build/git/$1/.git
	else
		bare=$(find "$mirror" -maxdepth 4 -name HEAD -path "*triton-inference-server*[+/]$1[./]*" | head -1)
		[ -n "$bare" ] || { echo "peers: no bare clone of triton-inference-server/$1 in $mirror" >&2; exit 1; }
		bare=${bare%/HEAD}
	fi
	git --git-dir="$bare" archive "$branch" | tar x -C "$to"
}

# The onnxruntime backend. It is linked against the same ONNX Runtime that it will load.
backend() {
	echo "==> peers: the onnxruntime backend, with ONNX Runtime $ort"
	build=$dir/ort_backend
	rm -rf "$build"
	mkdir -p "$build/include" "$build/lib"
	for repository in onnxruntime_backend backend core common; do
		sources "$repository"
	done
	"$dir/triton/bin/pip" download -q --no-deps -d "$build" "onnxruntime==$ort"
	unzip -qoj -d "$build/lib" "$build"/onnxruntime-*.whl 'onnxruntime/capi/libonnxruntime.so.*'
	mv "$build"/lib/libonnxruntime.so.1.* "$build/lib/libonnxruntime.so.1"
	ln -sf libonnxruntime.so.1 "$build/lib/libonnxruntime.so"
	local module
	module=$(cd "$build" && go mod download -json "github.com/yalue/onnxruntime_go@$header" | "$dir/triton/bin/python" -c 'import json, sys; print(json.load(sys.stdin)["Dir"])')
	cp "$module/onnxruntime_c_api.h" "$build/include/"
	local fetched=(-DFETCHCONTENT_FULLY_DISCONNECTED=ON -DFETCHCONTENT_SOURCE_DIR_GOOGLETEST=/usr/src/googletest
		-DFETCHCONTENT_SOURCE_DIR_REPO-COMMON="$build/src/common" -DFETCHCONTENT_SOURCE_DIR_REPO-CORE="$build/src/core"
		-DFETCHCONTENT_SOURCE_DIR_REPO-BACKEND="$build/src/backend")
	cmake -S "$build/src/onnxruntime_backend" -B "$build/build" -DCMAKE_BUILD_TYPE=Release "${fetched[@]}" \
		-DTRITON_ENABLE_GPU=OFF -DTRITON_ENABLE_STATS=ON \
		-DTRITON_ONNXRUNTIME_INCLUDE_PATHS="$build/include" -DTRITON_ONNXRUNTIME_LIB_PATHS="$build/lib" >"$build/cmake.log" 2>&1 ||
		{ tail -20 "$build/cmake.log" >&2; exit 1; }
	cmake --build "$build/build" -j2 --target triton-onnxruntime-backend >"$build/make.log" 2>&1 ||
		{ tail -20 "$build/make.log" >&2; exit 1; }

	local to=$dir/backends/onnxruntime
	rm -rf "$to"
	mkdir -p "$to"
	cp "$build/build/libtriton_onnxruntime.so" "$to/"
	ln -sf "$(packages_of_triton)"/nvidia_pytriton.libs/libtritonserver-*.so "$to/libtritonserver.so" # the wheel gave it another name
	cp -L "$build/lib/libonnxruntime.so.1" "$to/"
}

# Triton's local response cache. The server finds it with --cache-directory.
cache() {
	echo "==> peers: the local response cache, $branch"
	build=$dir/local_cache
	rm -rf "$build" "$dir/caches"
	for repository in local_cache core common; do
		sources "$repository"
	done
	local from=$build/src to=$dir/caches/local
	mkdir -p "$to"
	g++ -std=c++17 -O2 -fPIC -shared -DTRITON_ENABLE_METRICS=1 -DTRITON_ENABLE_LOGGING=1 \
		-I"$from/core/include" -I"$from/common/include" \
		"$from"/local_cache/src/{cache_api,local_cache}.cc "$from/common/src/logging.cc" \
		-Wl,--version-script,"$from/local_cache/src/libtritoncache_local.ldscript" -o "$to/libtritoncache_local.so"
	rm -rf "$build"
}

# The example programs of the client's repository.
examples() {
	echo "==> peers: tritonclient's examples, $branch"
	build=$dir/client
	rm -rf "$build" "$dir/examples"
	sources client
	mv "$build/src/client/src/python/examples" "$dir/examples"
	rm -rf "$build"
}

# Triton's backend identity, which many of its tests use.
identity() {
	echo "==> peers: the identity backend, $branch"
	build=$dir/identity_backend
	rm -rf "$build"
	for repository in identity_backend backend core common; do
		sources "$repository"
	done
	local from=$build/src to=$dir/backends/identity
	mkdir -p "$to"
	g++ -std=c++17 -O1 -fPIC -shared -DTRITON_ENABLE_STATS=1 -DTRITON_ENABLE_METRICS=1 \
		-I"$from/core/include" -I"$from/common/include" -I"$from/backend/include" -I"$from/identity_backend/src" \
		"$from/identity_backend/src/identity.cc" \
		"$from"/backend/src/backend_{common,input_collector,memory,model,model_instance,output_responder}.cc \
		"$from"/common/src/{logging,error,async_work_queue,thread_pool}.cc \
		-Wl,--version-script,"$from/identity_backend/src/libtriton_identity.ldscript" -o "$to/libtriton_identity.so"
	rm -rf "$build"
}

# Triton's own tests, their models, and a Python that runs them. Only the newest tests have ONNX in place
# of TensorFlow. A model for a GPU is made one for the CPU.
qa() {
	echo "==> peers: Triton's tests"
	build=$dir/qa
	rm -rf "$build"
	sources server main
	mkdir -p "$build/source"
	mv "$build"/src/server/{qa,docs} "$build/source/"
	rm -rf "$build/src" "$build/git"
	python3 -m venv "$build/python"
	"$build/python/bin/pip" install -q "tritonclient[all]==$triton" 'numpy<2' 'ml_dtypes<0.5' 'onnx==1.16.1' 'protobuf<5' requests pillow psutil \
		pytest sseclient-py opentelemetry-proto
	packages=$(echo "$build"/python/lib/python3.*/site-packages)
	cp lab/scripts/qa/results.py "$packages/sitecustomize.py"
	cp lab/scripts/qa/pytest_results.py "$packages/"
	models_of_qa >"$build/models.log" 2>&1 || { tail -5 "$build/models.log" >&2; exit 1; }
	grep -rl KIND_GPU "$build/data" | xargs -r sed -i 's/KIND_GPU/KIND_CPU/g'
}

# The models of Triton's tests, by its own generators, as qa/common/gen_qa_model_repository calls them.
models_of_qa() (
	cd "$build/source/qa/common"
	make_models() { # make_models FOLDER GENERATOR ARGUMENT...
		mkdir -p "$build/data/$1"
		"$build/python/bin/python" "$2" "${@:3}" --models_dir="$build/data/$1"
	}
	onnx=(--onnx --onnx_opset=0)
	make_models qa_model_repository gen_qa_models.py "${onnx[@]}"
	make_models qa_variable_model_repository gen_qa_models.py "${onnx[@]}" --variable
	make_models qa_identity_model_repository gen_qa_identity_models.py "${onnx[@]}"
	make_models qa_reshape_model_repository gen_qa_reshape_models.py "${onnx[@]}" --variable
	make_models qa_sequence_model_repository gen_qa_sequence_models.py "${onnx[@]}"
	make_models qa_variable_sequence_model_repository gen_qa_sequence_models.py "${onnx[@]}" --variable
	make_models qa_sequence_implicit_model_repository gen_qa_implicit_models.py "${onnx[@]}"
	make_models qa_variable_sequence_implicit_model_repository gen_qa_implicit_models.py "${onnx[@]}" --variable
	make_models qa_sequence_initial_state_implicit_model_repository gen_qa_implicit_models.py "${onnx[@]}" --initial-state zero
	make_models qa_variable_sequence_initial_state_implicit_model_repository gen_qa_implicit_models.py "${onnx[@]}" --initial-state zero --variable
	make_models qa_dyna_sequence_model_repository gen_qa_dyna_sequence_models.py "${onnx[@]}"
	make_models qa_dyna_sequence_implicit_model_repository gen_qa_dyna_sequence_implicit_models.py "${onnx[@]}"
	make_models qa_ragged_model_repository gen_qa_ragged_models.py "${onnx[@]}"
	make_models qa_scalar_models gen_qa_ort_scalar_models.py --onnx_opset=0
	make_models qa_ensemble_model_repository/qa_model_repository gen_qa_models.py --ensemble
	make_models qa_ensemble_model_repository/qa_variable_model_repository gen_qa_models.py --ensemble --variable
	make_models qa_ensemble_model_repository/qa_reshape_model_repository gen_qa_reshape_models.py --ensemble
	make_models qa_ensemble_model_repository/qa_identity_model_repository gen_qa_identity_models.py --ensemble
	make_models qa_ensemble_model_repository/qa_sequence_model_repository gen_qa_sequence_models.py --ensemble
	make_models qa_ensemble_model_repository/qa_variable_sequence_model_repository gen_qa_sequence_models.py --ensemble --variable
)

wrapper() { # wrapper NAME LINE...
	local name=$1
	shift
	printf '%s\n' '#!/bin/bash' "$@" >"$dir/$name"
	chmod +x "$dir/$name"
}

packages
step server "$pytriton-$ort"
step perf_analyzer "$triton"
step model_analyzer "$model_analyzer"
step backend "$branch-$ort"
step cache "$branch"
step code "$pytriton"
step examples "$branch"
if [ "${2:-}" = qa ]; then
	step identity "$branch"
	step qa "$triton-2"
fi
echo "peers: ready in $dir"
