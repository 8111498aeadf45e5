# ddp: `make` builds, `make run` trains the main job, `make test` tests.
GO      ?= go
CC      ?= cc
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -X ddp/internal/cli.Version=$(VERSION)
CORPUS  := corpus/opticks.txt
OPTICKS := $(shell $(GO) env GOROOT 2>/dev/null)/src/testdata/Isaac.Newton-Opticks.txt

.PHONY: all found build corpus run test race lint fuzz bench bench-published clean

all: found build corpus

found:
	@command -v $(GO) >/dev/null || { echo "missing: go (1.26 or newer)"; exit 1; }
	@command -v $(CC) >/dev/null || { echo "missing: a C compiler ($(CC)); set CC=..."; exit 1; }
	@echo "found: $$($(GO) version | cut -d' ' -f3), $$($(CC) --version | head -1)"
	@if command -v nvidia-smi >/dev/null; then echo "found: an NVIDIA driver (not used yet: this version trains on CPUs)"; else echo "no NVIDIA driver: training on CPUs"; fi
	@if python3 -c 'import torch' 2>/dev/null; then echo "found: PyTorch (make bench compares with it)"; else echo "no PyTorch: make bench measures ddp alone"; fi

build:
	$(GO) build -ldflags '$(LDFLAGS)' -o ddp .

corpus: $(CORPUS)

# The sample corpus is the public-domain text that ships with Go.
$(CORPUS):
	@test -f "$(OPTICKS)" || { echo "missing: $(OPTICKS) (a Go without its source tree?); put any text at $(CORPUS)"; exit 1; }
	@mkdir -p $(@D) && cp "$(OPTICKS)" $@.tmp && mv $@.tmp $@

run: all
	./ddp run jobs/mingpt.toml

test: all
	$(GO) vet ./...
	$(GO) test -timeout 20m ./...

race: all
	$(GO) test -race -timeout 40m ./data/... ./jobs/... ./spmd/... ./runtime/... ./model/train/...

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run gofmt -w on these"; exit 1; }
	$(GO) vet ./...
	$(GO) mod tidy -diff

# A few seconds for each parser; longer with FUZZTIME=10m.
FUZZTIME ?= 5s
fuzz:
	@for pkg in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$pkg || exit 1; \
	  done; \
	done

# ddp and, where PyTorch is installed, its DDP on the same step, by turns.
RUNS ?= 5
bench: all
	./ddp bench kernels
	./ddp bench collectives
	./ddp bench recovery
	@for i in $$(seq $(RUNS)); do \
	  ./ddp bench step --json; \
	  if python3 -c 'import torch' 2>/dev/null; then \
	    python3 -m torch.distributed.run --standalone --nproc-per-node 2 internal/bench/torch_ddp.py 2>/dev/null; \
	  fi; \
	done

# Published results: minutes each.
bench-published: all
	$(GO) test -count 1 -v -timeout 60m -run 'Sort|Adder|Shakespeare' ./internal/cli

clean:
	rm -rf ddp corpus
	$(GO) clean -testcache
