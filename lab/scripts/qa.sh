#!/usr/bin/env bash
# Runs folders of Triton's own tests (server's qa/) on the real Triton and on tuner, and prints how many
# of their unit tests pass. Each run has its own network, so that the fixed ports are free, and its own
# /opt/tritonserver and /data. That needs root.
#
# usage: lab/scripts/qa.sh FOLDER...      for instance L0_infer L0_batcher
#
# TUNER_PEERS names the folder of lab/scripts/peers.sh, which must have run with the word qa. TUNER_BINARY
# is the binary to test. The tests are unchanged but for: BACKENDS is onnx; KIND_GPU is KIND_CPU; a Triton
# older than its tests does not get --allow-client-shm; and in the folders of LENIENT both servers start
# although models of other backends fail. What a run leaves is in DIR/qa/runs.
set -euo pipefail
cd "$(dirname "$0")/../.."
peers=$(cd "${TUNER_PEERS:-.peers}" && pwd)
tuner=$(realpath "${TUNER_BINARY:-bin/tuner}")
ort=${TUNER_ORT_LIBRARY:-$("$tuner" runtime install cpu)}
seconds=${QA_SECONDS:-600} # the longest time that one server gets for one folder
qa=$peers/qa
[ -d "$qa/data" ] || { echo "qa: no tests in $qa: run 'lab/scripts/peers.sh $peers qa' first" >&2; exit 2; }

LENIENT=' L0_string_io L0_simple_ensemble L0_http L0_grpc L0_infer L0_response_cache L0_model_update L0_parameters
	L0_query L0_shared_memory L0_metrics L0_model_queue L0_optional_input L0_scalar_io L0_trace L0_logging '

# server SERVER FOLDER TO: writes the program that the tests start as tritonserver.
server() {
	local options=() line
	if [[ $LENIENT == *[[:space:]]$2[[:space:]]* ]]; then
		options=(--exit-on-error=false --strict-readiness=false)
	fi
	mkdir -p "$3/bin"
	ln -sfn "$peers/backends" "$3/backends"
	if [ "$1" = tuner ]; then
		line="exec $tuner serve ${options[*]} \"\$@\""
	else
		line="exec $peers/tritonserver ${options[*]} \"\${arguments[@]}\""
	fi
	cat >"$3/bin/tritonserver" <<-EOF
		#!/bin/bash
		export TUNER_ORT_LIBRARY=$ort ORT_DISABLE_TELEMETRY=1
		arguments=()
		for argument in "\$@"; do
			[[ \$argument == --allow-client-shm* ]] || arguments+=("\$argument")
		done
		$line
	EOF
	chmod +x "$3/bin/tritonserver"
}

# one SERVER FOLDER: runs a folder. Files that grow beyond 400 MB end their writer.
one() {
	local run=$qa/runs/$1-$2 code=0
	rm -rf "$run"
	mkdir -p "$run/qa" /opt/tritonserver /data/inferenceserver
	cp -r "$qa/source/docs" "$run/"
	cp -r "$qa/source/qa"/{common,python_models,custom_models,ensemble_models,"$2"} "$run/qa/"
	grep -rl KIND_GPU "$run/qa" | xargs -r sed -i 's/KIND_GPU/KIND_CPU/g'
	server "$1" "$2" "$run/server"
	touch "$run/results"
	env -u http_proxy -u https_proxy -u HTTP_PROXY -u HTTPS_PROXY PATH="$qa/python/bin:$PATH" TRITON_DIR=/opt/tritonserver \
		NVIDIA_TRITON_SERVER_VERSION=qa BACKENDS=onnx CUDA_VISIBLE_DEVICES= QA_RESULTS="$run/results" \
		timeout -k 5 "$seconds" unshare --mount --net --pid --fork --mount-proc bash -c '
			set -e
			ip link set lo up
			mount -t tmpfs none /data/inferenceserver
			mkdir /data/inferenceserver/qa
			mount --bind "$1/data" /data/inferenceserver/qa
			mount --bind "$2/server" /opt/tritonserver
			ulimit -f 400000
			cd "$2/qa/$3"
			exec bash -x ./test.sh qa' qa "$qa" "$run" "$2" >"$run/script.log" 2>&1 || code=$?
	echo "$code" >"$run/code"
}

count() { grep -c "^$2 " "$qa/runs/$1/results" || true; }

for folder in "$@"; do
	for server in triton tuner; do
		one "$server" "$folder"
		echo "$folder $server: $(count "$server-$folder" passed) passed, $(count "$server-$folder" failed) failed, test.sh ended with $(cat "$qa/runs/$server-$folder/code")"
	done
	comm -23 <(grep '^passed ' "$qa/runs/triton-$folder/results" | sort) <(grep '^passed ' "$qa/runs/tuner-$folder/results" | sort) |
		sed 's/^passed /  Triton alone passes /'
done
