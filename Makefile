# Everything that is done to this project has its command here; `make help` lists them.

GO ?= go
export CGO_ENABLED = 0
CACHE := $(or $(DPTRACE_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/dptrace)

# The one place where the version of a tool is set; those of Go modules are in go.mod,
# those of the Pythons in tools/torch-env, those of the examples in examples/requirements.txt,
# those of the data libraries in e2e/libraries/requirements.txt.
GOLANGCI_VERSION := v2.15.0
GOLANGCI := $(CACHE)/golangci-lint-$(GOLANGCI_VERSION)/golangci-lint

.PHONY: help build demo test test-all test-go test-python test-native test-e2e lint fmt bpf native fixtures matrix libraries backends gpu-check kernel-check growth-check bench bench-gate fuzz clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## bin/dptrace: one static program, the Python hook inside
	$(GO) build -trimpath -tags grpcnotrace -o bin/dptrace ./cmd/dptrace

demo: build ## record a small training with a silent bug, on real torch, and print the report
	@python=$$(tools/find-torch) && rm -rf demo.dptrace demo-fixed.dptrace && \
	echo "\$$ dptrace record -o demo.dptrace -- $$python examples/denoise/train.py" && \
	bin/dptrace record -o demo.dptrace -- $$python examples/denoise/train.py && \
	printf '\nThe same program with the fix applied:\n\n$$ dptrace record -o demo-fixed.dptrace -- %s examples/denoise/train_fixed.py\n' "$$python" && \
	bin/dptrace record -o demo-fixed.dptrace -- $$python examples/denoise/train_fixed.py

# Which of the tests that start PyTorch: all, or often (e2e's cases that say so, and the hook's that run.py does not call rare).
CASES ?= all
test: CASES = often
test: ## the tests, in five minutes: all but most of the whole programs; finds or installs what they need
test-all: CASES = all
test-all: ## all tests, as CI runs them
test test-all:
	@tools/parts go '$(MAKE) test-go' python '$(MAKE) test-python CASES=$(CASES)' e2e '$(MAKE) test-e2e CASES=$(CASES)'

test-go: ## the Go tests: analysis, traces, recorder, command line; no torch needed
	@code=0; tools/go-test $$($(GO) list ./... | grep -v '/e2e$$') || code=1; \
	echo "the trace's files beside arrow-go's, which has a module of its own"; \
	cd traces/conformance && ../../tools/go-test ./... || code=1; exit $$code

# Names of tools/torch-env; empty: the one Python that tools/find-torch finds.
PYTHONS ?=
# Parts of names of tests; empty: all.
TESTS ?=
test-python: ## the hook's own tests; PYTHONS="torch1.13 torch2.15-py3.11" names interpreters to make and use
	@code=0; for name in $(or $(PYTHONS),here); do \
		if [ $$name = here ]; then python=$$(tools/find-torch); else python=$$(tools/torch-env $$name); fi || { code=1; continue; }; \
		echo "hook's tests with $$python"; \
		$$python shim/python/tests/run.py $(if $(filter often,$(CASES)),--often) $(TESTS) || code=1; \
	done; exit $$code

test-native: ## the native helper beside its Python twin: each Python here, all references counted, AddressSanitizer; no torch needed
	tools/native-test $(TESTS)

test-e2e: build ## whole programs on real torch: what is found, what is left alone, that nothing changes; CASES=often as `make test`
	@python=$$(tools/find-torch) && DPTRACE_PYTHON=$$python DPTRACE_BIN=$(CURDIR)/bin/dptrace \
		tools/go-test -count=1 $(if $(filter often,$(CASES)),-short) -timeout 60m -parallel $$(($$(nproc) + 1)) ./e2e/

lint: $(GOLANGCI) ## the linters of .golangci.yaml, shell syntax, and whether all compiles for arm64
	$(GOLANGCI) run ./...
	GOARCH=arm64 $(GO) vet ./...
	@for f in $$(grep -lE -d skip '^#!.*[ /](sh|bash)$$' tools/* .ci/run); do $$(sed -n '1s/^#!.*[ /]//p' $$f) -n $$f || exit 1; done

fmt: ## gofmt everything
	gofmt -w $$(git ls-files '*.go')

bpf: ## compile the kernel side (bpf/*.bpf.c) anew; wants Debian's clang-14
	tools/bpf-generate

native: ## compile the hook's native helper (shim/native) anew; wants Debian's clang-14 and lld-14
	tools/native-generate

fixtures: build ## record the rules' fixtures anew (analyze/detect/*/testdata)
	DPTRACE_PYTHON=$$(tools/find-torch) tools/fixtures

MATRIX ?=
matrix: build ## a table of python x torch x start method x verdict; makes the Pythons it can
	@tools/matrix bin/dptrace $(MATRIX)

# Options of tools/libraries: --table NAME..., --only PART..., --write.
LIBRARIES ?=
libraries: build ## tables of real data libraries and trainers x how they are used x verdict; makes their Python
	@tools/libraries bin/dptrace $(LIBRARIES)

# Backends that tests send to, from the Go module proxy: modules of their own under tools/, kept outside of the tree.
COLLECTOR := $(CACHE)/backends/collector-$(shell sed -n 's|.*collector/otelcol \(v[0-9.]*\)$$|\1|p' tools/collector/go.mod)
JAEGER := $(CACHE)/backends/jaeger-$(shell sed -n 's|.*jaegertracing/jaeger \(v[0-9.]*\).*|\1|p' tools/jaeger/go.mod)
BACKENDS ?= collector jaeger
# How many spans are sent to the Collector in each of its tests; empty: 100,000.
SPANS ?=
gpu-check: build ## copies to a real CUDA device, beside what CUPTI says of them; writes docs/gpu-check.md
	@python=$$(tools/find-torch) && DPTRACE_PYTHON=$$python DPTRACE_BIN=$(CURDIR)/bin/dptrace DPTRACE_GPU_PAGE=$(CURDIR)/docs/gpu-check.md \
		tools/go-test -count=1 -v -timeout 60m -run 'TestGPU' ./e2e/

# Debian's packages of kernels; empty: the newest of this release.
KERNELS ?=
kernel-check: build ## the kernel tier on another kernel, in an emulator: does all of it load; KERNELS="linux-image-6.1.0-51-cloud-amd64"
	tools/kernel-check bin/dptrace $(KERNELS)

# How many random programs, or the numbers of some (3,17), and of which seed; empty: of one that is drawn, and printed.
PROGRAMS ?= 60
SEED ?=
growth-check: build ## random programs in which a container grows, or stops: is it named, is nothing else; SEED=7 PROGRAMS=3,17
	@python=$$(tools/find-torch) && DPTRACE_PYTHON=$$python DPTRACE_BIN=$(CURDIR)/bin/dptrace DPTRACE_GROWTH_PROGRAMS=$(PROGRAMS) \
		DPTRACE_GROWTH_SEED=$(or $(SEED),$$(date +%s)) $(GO) test -count=1 -v -timeout 3h -run '^TestRandomGrowth$$' ./e2e/

backends: build $(if $(filter collector,$(BACKENDS)),$(COLLECTOR)) $(if $(filter jaeger,$(BACKENDS)),$(JAEGER)) ## what is sent, to a real OpenTelemetry Collector and to Jaeger; BACKENDS=collector one of them; SPANS=1000000
	@python=$$(tools/find-torch) && SPANS=$(SPANS) DPTRACE_PYTHON=$$python DPTRACE_BIN=$(CURDIR)/bin/dptrace \
		$(if $(filter collector,$(BACKENDS)),DPTRACE_COLLECTOR=$(COLLECTOR)) $(if $(filter jaeger,$(BACKENDS)),DPTRACE_JAEGER=$(JAEGER)) \
		tools/go-test -count=1 -v -timeout 60m ./tools/backends

# The modules' sums are committed, and of some the checksum database knows nothing.
$(COLLECTOR) $(JAEGER): MODULE = tools/$(firstword $(subst -, ,$(@F)))
$(COLLECTOR): PACKAGE = .
$(JAEGER): PACKAGE = github.com/jaegertracing/jaeger/cmd/jaeger
$(COLLECTOR) $(JAEGER):
	@mkdir -p $(@D)
	cd $(MODULE) && GONOSUMDB='*' $(GO) build -trimpath -ldflags='-s -w' -o $@ $(PACKAGE) || \
		{ echo "$(@F) was not built: its modules come from $$($(GO) env GOPROXY), which has to be reached the first time"; exit 1; }

BENCH ?=
bench: build ## what recording costs: loaders, start-up, recorder, a long run
	@tools/bench bin/dptrace $$(tools/find-torch) $(BENCH)

# --write: what is found becomes what is committed.
GATE ?=
bench-gate: build ## what recording costs, in numbers that do not depend on the machine: fails if one has grown
	@command -v strace >/dev/null || { apt-get update >&2; DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends strace >&2; }
	@python3 tools/bench-gate bin/dptrace $$(tools/find-torch) $(GATE)

FUZZTIME ?= 10m
fuzz: ## fuzz the trace reader, its rows through all rules and forms, and the hook's records, FUZZTIME each (default 10m)
	$(GO) test -run '^$$' -fuzz '^FuzzReader$$' -fuzztime $(FUZZTIME) -fuzzminimizetime 10x -parallel 1 ./traces
	$(GO) test -run '^$$' -fuzz '^FuzzRows$$' -fuzztime $(FUZZTIME) ./analyze
	$(GO) test -run '^$$' -fuzz '^FuzzDrain$$' -fuzztime $(FUZZTIME) ./probes/hook

$(GOLANGCI):
	GOBIN=$(@D) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)

clean: ## remove what make has built and recorded here (.venv and the cache stay)
	rm -rf bin demo.dptrace demo-fixed.dptrace
