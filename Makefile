# Everything a developer or CI does, as thin lines that also work by hand. `make help` lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help

TUNER      := bin/tuner
MODELS     := models
STATICCHECK := go tool -modfile=tools/go.mod staticcheck

# Fuzz targets run for this long each under `make fuzz`.
FUZZTIME ?= 20s

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-zA-Z_-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

.PHONY: demo
demo: setup ## Profile the MiniLM sentence encoder for about 3 minutes under p99 ≤ 50 ms, and analyze the result
	@echo "==> demo: profiling MiniLM (configs/minilm.profile.yaml)"
	$(TUNER) profile -f configs/minilm.profile.yaml
	@echo "==> demo: analyzing (configs/minilm.analyze.yaml)"
	$(TUNER) analyze -f configs/minilm.analyze.yaml

# Packages without a goroutine (internal/floors sees to it), tested by simulations: the race detector finds nothing in them and makes
# them ten times slower.
SIMULATED := ./gate/decide ./ortsweep/race ./search/... ./stats

.PHONY: test
test: setup lint ## All set-up, then all tests: unit and integration, with the race detector where there are goroutines
	@echo "==> test: making the sample models if needed"
	go run ./cmd/samplemodels -o $(MODELS) all-small
	@echo "==> test: downloading ONNX Runtime with OpenVINO if needed"
	$(TUNER) runtime install openvino
	@echo "==> test: unit and integration tests"
	TUNER_ORT_LIBRARY="$$($(TUNER) runtime install cpu)" TUNER_MODELS="$(CURDIR)/$(MODELS)" go test -race -timeout 20m \
		$$(go list ./... | grep -vxF "$$(go list ./internal/cli $(SIMULATED))")
	go test $(SIMULATED)
	go test -race ./internal/cli
	@echo "==> test: the verbs with ONNX Runtime, without the race detector, under which their many processes take four times as long"
	TUNER_ORT_LIBRARY="$$($(TUNER) runtime install cpu)" TUNER_MODELS="$(CURDIR)/$(MODELS)" go test -timeout 20m ./internal/cli
	cd search/landscape && go test -race ./bench && go test ./...
	@echo "==> test: ONNX Runtime with OpenVINO"
	library="$$($(TUNER) runtime install openvino)" && LD_LIBRARY_PATH="$${library%/*}" TUNER_ORT_LIBRARY="$$library" TUNER_MODELS="$(CURDIR)/$(MODELS)" go test -race -run OpenVINO ./ort ./engine/onnxruntime ./onnx/rewrite

.PHONY: unit
unit: ## The fast tests alone: no ONNX Runtime, no network
	go test ./...
	cd search/landscape && go test ./...

.PHONY: setup
setup: check-tools build ## Get what demo and test need: the binary, ONNX Runtime, the MiniLM model
	@echo "==> setup: downloading ONNX Runtime if needed"
	$(TUNER) runtime install cpu
	@$(MAKE) --no-print-directory $(MODELS)/minilm.onnx

.PHONY: check-tools
check-tools: ## Say which tools are missing
	@scripts/check-tools.sh

# The go command itself knows what has changed: also C, headers and embedded files.
.PHONY: build
build: check-tools ## Build bin/tuner
	@echo "==> build: compiling bin/tuner if needed (the first time takes a few minutes)"
	go build -o $(TUNER) ./cmd/tuner

$(MODELS)/minilm.onnx:
	@echo "==> setup: making the MiniLM model (83 MB download)"
	go run ./cmd/samplemodels -o $(MODELS) minilm

.PHONY: lint
lint: ## gofmt, go vet and staticcheck
	@echo "==> lint: gofmt, go vet, staticcheck"
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "not formatted (run gofmt -w): $$unformatted"; exit 1; }
	go vet ./...
	cd search/landscape && go vet ./...
	go vet -tags conformance ./internal/conformance
	$(STATICCHECK) ./...
	cd search/landscape && $(subst tools/,../../tools/,$(STATICCHECK)) ./...
	$(STATICCHECK) -tags conformance ./internal/conformance

# The campaign that `make bench` measures again: the demonstration's, unless you name another.
CAMPAIGN ?= out/minilm

.PHONY: bench
bench: build ## Measure the deployed repository of a campaign (the demo's) again, in turn with what was measured
	@test -f $(CAMPAIGN)/result.json || { echo "no analyzed campaign in $(CAMPAIGN): run 'make demo' first"; exit 2; }
	@echo "==> bench: $(CAMPAIGN), 8 alternating pairs (about 2 minutes)"
	go run ./internal/bench/redeploy -campaign $(CAMPAIGN) -tuner $(TUNER) -pairs 8 -window 3s

# What `make bench-peers` measures: frontend, latency, saturation, ranking or all; `make bench-perf`: closed, open, speed, pacing,
# scale or all; `make bench-campaign`: repeats, analyzer, neighbour, quiet, short,
# published or all.
WHAT ?= all

.PHONY: bench-peers
bench-peers: setup ## Measure the engine side by side with a real Triton (about half an hour; WHAT=frontend etc. for a part)
	@echo "==> bench-peers: installing the real peers if needed"
	scripts/peers.sh "$${TUNER_PEERS:-.peers}"
	go run ./cmd/samplemodels -o $(MODELS) simple
	@echo "==> bench-peers: measuring $(WHAT)"
	go run ./internal/bench/peers -what $(WHAT) -tuner $(TUNER) -models $(MODELS)

.PHONY: bench-perf
bench-perf: setup ## Measure `tuner perf` side by side with perf_analyzer (about half an hour; WHAT=speed etc. for a part)
	@echo "==> bench-perf: installing the real peers if needed"
	scripts/peers.sh "$${TUNER_PEERS:-.peers}"
	@echo "==> bench-perf: measuring $(WHAT)"
	go run ./internal/bench/perf -what $(WHAT) -tuner $(TUNER)

.PHONY: bench-ortsweep
bench-ortsweep: setup ## Race MiniLM's session settings ten times, and compare with exhaustive measurement (about 50 minutes)
	TUNER_ORT_LIBRARY="$$($(TUNER) runtime install cpu)" go run ./internal/bench/ortsweep -model $(MODELS)/minilm.onnx -tuner $(TUNER)

.PHONY: bench-gate
bench-gate: setup ## Gate MiniLM against itself, 5 % slower and with a slow tail, RUNS=20 times each (hours; WHAT=same, slow or tail for a part)
	TUNER_ORT_LIBRARY="$$($(TUNER) runtime install cpu)" go run ./internal/bench/gate -what $(WHAT) -runs $(or $(RUNS),20) -model $(MODELS)/minilm.onnx -tuner $(TUNER)

.PHONY: bench-turns
bench-turns: setup ## Compare MiniLM with itself in turns, two engines for 100 s: how precise turns are (about 2 minutes)
	TUNER_ORT_LIBRARY="$$($(TUNER) runtime install cpu)" go run ./internal/bench/turns -model $(MODELS)/minilm.onnx -tuner $(TUNER)

.PHONY: bench-campaign
bench-campaign: setup ## Campaigns on MiniLM and four published models, beside exhaustive ones and Model Analyzer (five hours; WHAT=repeats etc. for a part)
	@echo "==> bench-campaign: installing the real peers if needed"
	scripts/peers.sh "$${TUNER_PEERS:-.peers}"
	TUNER_ORT_LIBRARY="$$($(TUNER) runtime install cpu)" go run ./internal/bench/campaign -what $(WHAT) -tuner $(TUNER) -models $(MODELS)

# How many campaigns of each strategy on each landscape under each limit, and their virtual time.
SEEDS  ?= 50
BUDGET ?= 10m

.PHONY: bench-search
bench-search: ## Compare search strategies on all landscapes, on a virtual clock (SEEDS=50 campaigns each of BUDGET=10m; no engine runs)
	cd search/landscape && go run ./bench -seeds $(SEEDS) -budget $(BUDGET)

# Which profile of testdata/landscapes is recorded: minilm, cnn, mlp, lstm, detector, encoder.
LANDSCAPE ?= mlp

.PHONY: record-landscape
record-landscape: setup ## Record LANDSCAPE (minilm, cnn, mlp, lstm, detector, encoder) on this machine for bench-search: one to three hours; goes on where it stopped
	go run ./cmd/samplemodels -o $(MODELS) all-small
	@test $(LANDSCAPE) != detector || go run ./cmd/samplemodels -o $(MODELS) published
	@test $(LANDSCAPE) != minilm -a $(LANDSCAPE) != encoder || test -f $(MODELS)/minilm.int8.onnx || $(TUNER) convert $(MODELS)/minilm.onnx --precision int8 -o $(MODELS) --data testdata/accuracy/minilm_sentences.npz
	mkdir -p out/landscapes
	TUNER_ORT_LIBRARY="$$($(TUNER) runtime install cpu)" go run ./internal/bench/landscape -profile testdata/landscapes/$(LANDSCAPE).profile.yaml \
		-tuner $(TUNER) -o out/landscapes/$(LANDSCAPE).jsonl -save testdata/landscapes/$(LANDSCAPE).jsonl.gz

# What is compared: all, or the tests that a regular expression names.
RUN ?= .

.PHONY: conformance
conformance: setup ## Compare the engine with a real Triton, and run Triton's own tools on it (installs them: minutes)
	scripts/peers.sh "$${TUNER_PEERS:-.peers}"
	scripts/browser.sh "$${TUNER_PEERS:-.peers}"
	go run ./cmd/samplemodels -o $(MODELS) all-small
	@echo "==> conformance: requests, loads, perf_analyzer, tritonclient, Model Analyzer, exports (about 10 minutes)"
	go vet -tags conformance ./internal/conformance
	TUNER_BINARY="$(CURDIR)/$(TUNER)" TUNER_MODELS="$(CURDIR)/$(MODELS)" go test -tags conformance -count=1 -timeout 20m -run '$(RUN)' ./internal/conformance
	@$(MAKE) --no-print-directory conformance-deployment

# Where the validators of deployment files are built.
CONTROLPLANE ?= $(CURDIR)/.controlplane

.PHONY: conformance-deployment
conformance-deployment: build ## The part of conformance that validates exports by a real Kubernetes API server, helm and others (builds them: minutes)
	scripts/controlplane.sh "$(CONTROLPLANE)"
	@echo "==> conformance: exports by the Kubernetes API server, helm, compose-go and Prometheus (about a minute)"
	cd internal/conformance/deployment && go vet ./... && \
		TUNER_BINARY="$(CURDIR)/$(TUNER)" TUNER_CONTROLPLANE="$(CONTROLPLANE)" go test -count=1 -timeout 10m -run '$(RUN)' ./...

# How long the engine is under load in `make soak`.
SOAKTIME ?= 30m

.PHONY: soak
soak: setup ## Mixed load on the engine for SOAKTIME (30m): every answer checked, nothing may be lost or grow
	go run ./cmd/samplemodels -o $(MODELS) all-small
	@echo "==> soak: $(SOAKTIME) of clients, reloads and vandals"
	go run ./internal/soak -duration $(SOAKTIME) -tuner $(TUNER) -models $(MODELS)

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (20s)
	scripts/fuzz.sh $(FUZZTIME)

.PHONY: golden
golden: ## Rewrite the golden files from the present output; the journals first, which reports are made of
	go test -p 1 ./spec ./spec/modelanalyzer ./modelconfig ./perf/output ./internal/bench/redeploy ./analyze ./report ./export ./gate/output ./ortsweep ./ortsweep/snippet ./internal/cli -update

.PHONY: proto
proto: ## Generate the protocol buffer code again (needs Python 3 with pip)
	scripts/proto.sh

.PHONY: clean
clean: ## Remove build outputs, generated models and results
	rm -rf bin models out
