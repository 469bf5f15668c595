# Everything a developer or CI does, as thin lines that also work by hand. `make help` lists the targets.
# Benchmarks, conformance and the like are the laboratory's: `make -C lab help`.
SHELL := /bin/bash
.DEFAULT_GOAL := help

TUNER      := bin/tuner
MODELS     := models
# Makes sample models.
SAMPLES    := go -C lab run ./samplemodels -o "$(CURDIR)/$(MODELS)"
STATICCHECK := go tool -modfile=tools/go.mod staticcheck
# Checks the words of documents and comments, by the rules in tools/vale/Plain.
VALE       := go tool -modfile=tools/go.mod vale

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

# Packages that compute for long, in a few parallel loops. The race detector makes them ten times slower. So all their tests
# run without it, and the tests RACED, which go through the loops, run with it too. internal/floors checks these lists.
COMPUTED  := ./analyze ./capacity ./capacity/adaptation ./gate ./report ./report/html ./search/posterior ./search/queuesim
RACED     := TestRecordedGuidedJournal|TestPlanIsReadAgain|TestAnswersDoNotChange|TestGatesAtOnce|TestOutputsOfDividedCores|TestAnswersAreTheDecisions|TestGatheringIsTheSchedulers|TestAskedAgain
# The other packages with goroutines. Package internal/cli has targets of its own.
RACING     = tools/racing.sh | grep -vxF "$$(go list ./internal/cli $(COMPUTED))"
# `make lint` has vetted all packages, with more checks than go test.
VETTED    := -vet=off
# Puts ONNX Runtime's CPU build and the sample models into the environment of a program.
WITH_ORT   = TUNER_ORT_LIBRARY="$$($(TUNER) runtime install cpu)" TUNER_MODELS="$(CURDIR)/$(MODELS)"

.PHONY: test
test: setup lint ## All set-up, then all tests: unit and integration, with the race detector where there are goroutines
	@echo "==> test: making the sample models if needed"
	$(SAMPLES) all-small
	@echo "==> test: downloading ONNX Runtime with OpenVINO if needed"
	$(TUNER) runtime install openvino
	@echo "==> test: unit and integration tests"
	$(WITH_ORT) go test $(VETTED) -race -timeout 20m $$($(RACING))
	go test $(VETTED) -race -run '^($(RACED))$$' $(COMPUTED)
	@$(MAKE) --no-print-directory -j 2 test-verbs test-others
	@echo "==> test: what makes the packages"
	go -C tools/dist test ./...
	@echo "==> test: the laboratory's own tests"
	@$(MAKE) --no-print-directory -C lab test MODELS="$(CURDIR)/$(MODELS)"
	@echo "==> test: ONNX Runtime with OpenVINO"
	library="$$($(TUNER) runtime install openvino)" && LD_LIBRARY_PATH="$${library%/*}" TUNER_ORT_LIBRARY="$$library" TUNER_MODELS="$(CURDIR)/$(MODELS)" go test $(VETTED) -race -run OpenVINO ./ort ./engine/onnxruntime ./model/onnx/rewrite/...

# The scripts that do alike with ONNX Runtime and without, and run once: with the race detector.
WITHOUT_ORT = $(shell grep -L 'ort\]\|models\]' internal/cli/testdata/script/*.txtar | xargs -n 1 basename -s .txtar | grep -vxE '$(COMPUTING)' | paste -s -d '|')

# Of these, the scripts that compute for long, such as plans and charts. The race detector makes them ten times slower. So
# they run without it. The tests RACED go through the loops of what they compute.
COMPUTING = plan|model_analyzer

# The verbs wait for much of their time, such as for processes that start. What needs no race detector runs beside them,
# and at a lower priority: the verbs measure.
.PHONY: test-verbs
test-verbs:
	env -u TUNER_ORT_LIBRARY -u TUNER_MODELS go test $(VETTED) -race -skip '^TestScripts$$/^($(COMPUTING))$$' ./internal/cli
	@echo "==> test: the verbs with ONNX Runtime, without the race detector, under which their many processes take four times as long"
	$(WITH_ORT) go test $(VETTED) -timeout 20m -skip '^TestScripts$$/^($(WITHOUT_ORT))$$' ./internal/cli

# Simulations have heaps of some ten megabytes. Less garbage collection costs little memory there, and saves a tenth of the time.
.PHONY: test-others
test-others:
	$(WITH_ORT) GOGC=400 nice go test $(VETTED) -timeout 20m $$(go list ./... | grep -vxF "$$(go list ./internal/cli; $(RACING))")

.PHONY: unit
unit: ## The fast tests alone: no ONNX Runtime, no network
	go test ./...
	@$(MAKE) --no-print-directory -C lab unit

.PHONY: setup
setup: check-tools build ## Get what demo and test need: the binary, ONNX Runtime, the MiniLM model
	@echo "==> setup: downloading ONNX Runtime if needed"
	$(TUNER) runtime install cpu
	@$(MAKE) --no-print-directory $(MODELS)/minilm.onnx

.PHONY: check-tools
check-tools: ## Say which tools are missing
	@tools/check-tools.sh

# The go command itself knows what has changed: also C, headers and embedded files.
.PHONY: build
build: check-tools ## Build bin/tuner
	@echo "==> build: compiling bin/tuner if needed (the first time takes a few minutes)"
	go build -o $(TUNER) ./cmd/tuner

$(MODELS)/minilm.onnx:
	@echo "==> setup: making the MiniLM model (83 MB download)"
	$(SAMPLES) minilm

.PHONY: lint
lint: ## gofmt, go vet, staticcheck and govulncheck, of the laboratory too, and Vale for documents and comments
	@echo "==> lint: gofmt, go vet, staticcheck, govulncheck, Vale"
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "not formatted (run gofmt -w): $$unformatted"; exit 1; }
	go vet ./...
	$(STATICCHECK) ./...
	tools/vulncheck.sh ./...
	$(VALE) --output=line $$(git ls-files '*.md' '*.go' | grep -v 'testdata\|\.pb\.go$$')
	@$(MAKE) --no-print-directory -C lab lint

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (20s)
	go -C lab run ./fuzzing -ledger= -turn $(FUZZTIME) -enough 1s -for 12h

.PHONY: golden
golden: ## Rewrite the golden files from the present output; the journals first, which reports are made of
	go test -p 1 ./spec ./spec/modelanalyzer ./spec/reference ./model/modelconfig ./perf/output ./analyze ./report ./report/csv ./report/data ./report/html ./report/result ./pipeline/steps ./profile/journal ./model/precision/accuracy ./model/precision/conversion ./export ./export/verify ./gate/output ./ortsweep ./ortsweep/snippet ./internal/cli -update
	@$(MAKE) --no-print-directory -C lab golden

.PHONY: proto
proto: ## Generate the protocol buffer code again (needs Python 3 with pip)
	tools/proto.sh

# Packages are compiled by zig, which knows older versions of glibc and other architectures. It comes from the Python package index.
DIST_PYTHON := dist/work/tools/bin/python

$(DIST_PYTHON): tools/dist/requirements.txt
	python3 -m venv dist/work/tools
	$(DIST_PYTHON) -m pip install --quiet --disable-pip-version-check --requirement tools/dist/requirements.txt
	touch $(DIST_PYTHON)

.PHONY: dist
dist: $(DIST_PYTHON) ## Make the packages of all platforms in dist/: archives, wheels, .deb, images, checksums
	go -C tools/dist run . -o "$(CURDIR)/dist" -python "$(CURDIR)/$(DIST_PYTHON)"

.PHONY: dist-test
dist-test: ## Install each package that `make dist` made on an empty root and tune a model there (needs root)
	tools/dist/test.sh

.PHONY: cluster-test
cluster-test: ## Run fleets on a real Kubernetes control plane with process nodes (builds it the first time: minutes; needs root, no containers)
	@$(MAKE) --no-print-directory -C lab cluster-test

.PHONY: clean
clean: ## Remove build outputs, packages, generated models and results
	rm -rf bin dist models out
