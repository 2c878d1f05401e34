# Every target works in a fresh clone with Go only.
TOOL = go tool -modfile=tools.mod
FUZZTIME ?= 5000x

.PHONY: all build fmt lint test fuzz bench bench-peers stress release

all: fmt lint test

build:
	CGO_ENABLED=0 go build -trimpath -ldflags=-s -o toold ./cmd/toold

fmt:
	$(TOOL) gofumpt -w .

lint:
	@out=$$($(TOOL) gofumpt -l .); test -z "$$out" || { echo "not formatted (make fmt):"; echo "$$out"; exit 1; }
	go vet ./...
	$(TOOL) staticcheck ./...

# The tests, without and with the race detector, and which of them were skipped and why.
test:
	{ go test -json ./...; go test -race -short -json ./...; } | go run ./.ci/skipped

# Each fuzz target of every package for FUZZTIME, a number of
# inputs (5000x) or a time (1m).
fuzz:
	@.ci/fuzz $(FUZZTIME)

# Benchmarks as a table; a figure with the unit x-… is a ratio to a floor
# measured in the same run.
bench:
	@CGO_ENABLED=0 go test -run '^$$' -bench . -benchmem ./... | awk -f .ci/bench.awk

# toold beside Codex's exec-server (TOOLD_CODEX names the program), ssh on loopback and
# bubblewrap, as far as they are installed.
bench-peers:
	@CGO_ENABLED=0 go test -run '^$$' -bench '^BenchmarkPeers$$' ./conformance | awk -f .ci/bench.awk

# The daemon under load, and random scripts in real bash compared with what the
# analysis predicts. TOOLD_STRESS=exec, races, tiers, policy, order or analysis does one; .ci/stress
# tells how often they do what, and how to change it.
stress:
	@.ci/stress

# The last commit as programs, packages, SBOMs and checksums, in dist. Needs git.
release:
	rm -rf dist
	release/build dist
