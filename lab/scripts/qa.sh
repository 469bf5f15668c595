#!/usr/bin/env bash
# Runs folders of Triton's own tests (server's qa/) on the real Triton and on tuner, and prints how many
# of their unit tests, and of the checks in their scripts, pass. Each run has its own network, so that the
# fixed ports are free, and its own /opt/tritonserver, /data and /dev/shm. That needs root.
#
# usage: lab/scripts/qa.sh FOLDER...      for instance L0_infer L0_batcher
#
# TUNER_PEERS names the folder of lab/scripts/peers.sh, which must have run with the word qa. TUNER_BINARY
# is the binary to test. QA_SERVERS may name one of the two servers. QA_SECONDS bounds the time of a script.
# What a run leaves is in DIR/qa/runs. What is changed in the tests, and why:
#
# - BACKENDS is onnx: neither server has another backend.
# - Models of libtorch, TensorRT and OpenVINO are the ONNX models of the same name (twins).
# - scripts/qa/replacements has changes in the text of the tests.
# - scripts/qa/server.py takes out models that neither server can run, and flags that one does not know.
# - scripts/qa/prelude.sh lets a script go on behind a failure, and installs nothing.
# - scripts/qa/repeat.py makes the model of the backend repeat that L0_trace asks for.
# - scripts/qa/client.py stands for the C++ clients, and collector.py for the OpenTelemetry collector.
set -euo pipefail
cd "$(dirname "$0")/../.."
peers=$(cd "${TUNER_PEERS:-.peers}" && pwd)
tuner=$(realpath "${TUNER_BINARY:-bin/tuner}")
ort=${TUNER_ORT_LIBRARY:-$("$tuner" runtime install cpu)}
seconds=${QA_SECONDS:-1800} # the longest time that one server gets for one folder
qa=$peers/qa
own=$PWD/lab/scripts/qa
[ -d "$qa/data" ] || { echo "qa: no tests in $qa: run 'lab/scripts/peers.sh $peers qa' first" >&2; exit 2; }

# Models of backends that neither server has: copies of the ONNX models under their names.
twins() {
	local repository model twin
	for repository in qa_model_repository qa_variable_model_repository qa_reshape_model_repository qa_identity_model_repository; do
		for model in "$qa/data/$repository"/onnx_*; do
			[[ $model == *bf16* ]] && continue
			for backend in libtorch plan openvino; do
				twin=${model/onnx_/${backend}_}
				[ ! -d "$twin" ] || continue
				cp -r "$model" "$twin.new"
				sed -i "s/\"onnx_/\"${backend}_/" "$twin.new/config.pbtxt"
				mv "$twin.new" "$twin"
			done
		done
	done
}

# What Triton's image of its tests has besides the folders (its Dockerfile.QA).
image() { # image FOLDER QA
	local models=$qa/source/docs/examples/model_repository name
	mkdir -p "$2/clients"
	cp "$peers"/examples/*.py "$2/clients/"
	sed -i '1s,^#!.*,#!/usr/bin/env python,' "$2"/clients/*.py
	for name in simple_http_infer_client simple_grpc_infer_client; do
		cp "$own/client.py" "$2/clients/$name"
	done
	chmod +x "$2"/clients/*
	case $1 in
	L0_http | L0_grpc)
		mkdir -p "$2/$1/models"
		cp -r "$models"/simple{,_dyna_sequence,_identity,_int8,_sequence,_string} "$2/$1/models/"
		mkdir -p "$2/custom_models/custom_dyna_sequence_int32/1"
		touch "$2/custom_models/custom_dyna_sequence_int32/1/libtriton_dyna_sequence.so"
		;;
	L0_shared_memory)
		mkdir -p "$2/$1/models"
		cp -r "$models/simple" "$2/$1/models/"
		;;
	L0_simple_ensemble)
		mkdir -p "$2/$1/models/simple"/{1,2}
		tee "$2/$1/models/simple/1/model.onnx" <"$models/simple/1/model.onnx" >"$2/$1/models/simple/2/model.onnx"
		;;
	L0_lifecycle) touch "$2/$1/libtriton_identity.so" ;;
	L0_trace)
		cp "$own/collector.py" "$2/$1/otelcol"
		chmod +x "$2/$1/otelcol"
		"$qa/python/bin/python" "$own/repeat.py" "$2/L0_decoupled/models/repeat_int32"
		;;
	esac
}

# server SERVER FOLDER TO: writes the program that the tests start as tritonserver.
server() {
	local program=$peers/tritonserver
	[ "$1" = triton ] || program=$tuner
	mkdir -p "$3/bin"
	mkdir -p "$3/backends"
	ln -sfn "$peers"/backends/{identity,onnxruntime} "$3/backends/" # and not Python's, which other comparisons have
	ln -sfn "$3/../qa" "$3/qa"
	cat >"$3/bin/tritonserver" <<-END
		#!/bin/sh
		export TUNER_ORT_LIBRARY=$ort ORT_DISABLE_TELEMETRY=1
		exec "$qa/python/bin/python" -S "$own/server.py" $1 "$program" $2 "\$@"
	END
	chmod +x "$3/bin/tritonserver"
}

replace() { # replace QA
	local file script
	while IFS=$'\t' read -r file script _; do
		[[ $file == \#* || ! -f $1/$file ]] || sed -i "$script" "$1/$file"
	done <"$own/replacements"
}

# one SERVER FOLDER: runs a folder. Files that grow beyond 400 MB end their writer.
one() {
	local run=$qa/runs/$1-$2 code=0
	rm -rf "$run"
	mkdir -p "$run/qa" /opt/tritonserver /opt/ml /data/inferenceserver
	cp -r "$qa/source/docs" "$run/"
	cp -r "$qa/source/qa"/{common,python_models,custom_models,ensemble_models,images,L0_infer,L0_sequence_batcher} "$run/qa/"
	[ -d "$run/qa/$2" ] || cp -r "$qa/source/qa/$2" "$run/qa/"
	image "$2" "$run/qa"
	replace "$run/qa"
	server "$1" "$2" "$run/server"
	touch "$run/results"
	env -u http_proxy -u https_proxy -u HTTP_PROXY -u HTTPS_PROXY PATH="$qa/python/bin:$PATH" TRITON_DIR=/opt/tritonserver \
		NVIDIA_TRITON_SERVER_VERSION=qa TRITON_SERVER_VERSION=2.51.0 BACKENDS=onnx CUDA_VISIBLE_DEVICES= SERVER_TIMEOUT=90 \
		QA_RESULTS="$run/results" QA_TRACE="$run/trace" PYTEST_ADDOPTS='-p pytest_results' \
		timeout -k 5 "$seconds" unshare --mount --net --pid --fork --mount-proc bash -c '
			set -e
			ip link set lo up
			for own in /data/inferenceserver /dev/shm /opt/ml /run /var/log; do mount -t tmpfs none "$own"; done
			mkdir /var/log/nginx
			mkdir /data/inferenceserver/qa
			mount --bind "$1/data" /data/inferenceserver/qa
			mount --bind "$2/server" /opt/tritonserver
			ulimit -f 400000
			cd "$2/qa/$3"
			exec env BASH_ENV="$4" bash -x ./test.sh qa' qa "$qa" "$run" "$2" "$own/prelude.sh" >"$run/script.log" 2>&1 || code=$?
	python3 "$own/checks.py" "$run/qa/$2/test.sh" "$run/trace" >"$run/checks"
	echo "$code" >"$run/code"
}

count() { grep -c "^$3 " "$qa/runs/$1/$2" || true; }

# passed FOLDER FILE: prints what Triton alone passes, each as often as it does.
passed() {
	comm -23 <(grep '^passed ' "$qa/runs/triton-$1/$2" | sort) <(grep '^passed ' "$qa/runs/tuner-$1/$2" | sort) |
		sed 's/^passed /  Triton alone passes /'
}

twins
for folder in "$@"; do
	for server in ${QA_SERVERS:-triton tuner}; do
		one "$server" "$folder"
		run=$server-$folder
		echo "$folder $server: tests $(count "$run" results passed) passed, $(count "$run" results failed) failed; checks" \
			"$(count "$run" checks passed) passed, $(count "$run" checks failed) failed; test.sh ended with $(cat "$qa/runs/$run/code")"
	done
	[ ! -d "$qa/runs/triton-$folder" ] || [ ! -d "$qa/runs/tuner-$folder" ] || { passed "$folder" results; passed "$folder" checks; }
done
