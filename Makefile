# `make help` lists the targets. What a target needs beyond Go, git and make, it
# brings along: tools by exact version through Go modules (tools/*/go.mod, apart
# from the program's own), servers for the tests through apt-get (test-deps).

.DEFAULT_GOAL := help

VERSION      ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT       ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null)
SUITE        := CGO_ENABLED=0 go run ./test/suite
CHAOS_TIME   ?= 2m
CHAOS_FAULTS ?= 200
CHAOS_DESIGN ?=
CHAOS_TOPOLOGY ?=
CHAOS_POOLER ?=
CHAOS_CLUSTER ?=
CHAOS_RELEASE ?=
# A release of Debian that make test-versions has unpacked is entered for its Valkey; nothing there compiles C.
CHAOS_TEST = $(if $(CHAOS_RELEASE),BATON_TEST_REDIS_SERVER=valkey-server CGO_ENABLED=0 unshare -m go run ./test/versions inside ~/.cache/baton-servers/$(CHAOS_RELEASE) go test,CGO_ENABLED=1 go test -race)

# The version comes from git describe above. Stamping by the go command itself
# fails in a clone that belongs to somebody else.
export GOFLAGS := $(GOFLAGS) -buildvcs=false

GOLANGCI_LINT := go tool -modfile=tools/golangci-lint/go.mod golangci-lint
GOVULNCHECK   := go tool -modfile=tools/govulncheck/go.mod govulncheck

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the static binary bin/baton
	@scripts/build -trimpath -ldflags '-s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)'

.PHONY: packages
packages: ## build deb and rpm for amd64 and arm64 in dist/; the same commit gives the same bytes
	@VERSION='$(VERSION)' scripts/packages

.PHONY: test-packages
test-packages: packages ## what is in the packages, and that a second build gives the same bytes
	@scripts/test-deps packages
	BATON_PACKAGES=$(CURDIR)/dist BATON_VERSION='$(VERSION)' CGO_ENABLED=1 go test -race -count=1 -v ./test/packages

.PHONY: image
image: ## build dist/baton-image.tar, an OCI image for amd64 and arm64: no daemon, no registry
	@mkdir -p dist
	@for arch in amd64 arm64; do CGO_ENABLED=0 GOOS=linux GOARCH=$$arch go build -trimpath -ldflags '-s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)' -o dist/image-$$arch ./cmd/baton || exit; done
	@cd tools/image && go run . -version '$(VERSION)' -commit '$(COMMIT)' -epoch "$$(git log -1 --format=%ct)" -out ../../dist/baton-image.tar amd64=../../dist/image-amd64 arm64=../../dist/image-arm64
	@rm dist/image-amd64 dist/image-arm64

.PHONY: manifests
manifests: ## read deploy/kubernetes, deploy/compose and deploy/grafana by the types of their own projects, which it downloads
	cd tools/manifests && go run . ../../deploy/kubernetes ../../deploy/compose/compose.yaml ../../deploy/grafana/baton.json

.PHONY: release
release: ## build all files of VERSION=v1.2.3 in dist/v1.2.3: archives, deb, rpm, image, SBOM, checksums
	@VERSION='$(VERSION)' scripts/release

.PHONY: test-release
test-release: manifests ## build a release in two folders: the same bytes, and in them what belongs there
	@scripts/test-deps release
	BATON_RELEASE=v0.0.1-test CGO_ENABLED=0 go test -count=1 -timeout 40m -v ./test/release

.PHONY: demo
demo: build ## three nodes, Redis and SQLite in it: kill the leader and watch
	bin/baton demo $(DEMO_FLAGS)

.PHONY: picture
picture: build ## draw README's picture from a run of the demo, docs/demo.svg
	bin/baton demo --duration 40s --chaos 5s --picture docs/demo.svg

.PHONY: test
test: test-deps ## vet, and run the tests against real servers, in minutes; TEST=./internal/job: those
	@CGO_ENABLED=0 go vet ./...
	@$(SUITE) quick $(TEST)

.PHONY: test-long
test-long: test-deps ## tests that take long by nature: linearizability, slots, chaos, failovers, a browser, the walk of docs/
	@$(SUITE) long $(TEST)

.PHONY: test-race
test-race: test-deps ## what make test runs, with the race detector
	@$(SUITE) race $(TEST)

.PHONY: mutants
mutants: test-deps ## break the code behind each promise, one change at a time: a test must go red; MUTANTS=fence: that topic
	@go run ./test/mutants $(MUTANTS)

.PHONY: test-versions
test-versions: test-deps ## the suites against newer servers of Debian's next releases, which it unpacks; takes root; STANDS=sid: that one
	@scripts/test-deps versions
	@CGO_ENABLED=0 go run ./test/versions $(STANDS)

.PHONY: test-clients
test-clients: test-deps ## the files of clients/ in every language: installs Java, Node, PHP and their Redis clients
	@CGO_ENABLED=0 scripts/test-clients

.PHONY: test-systemd
test-systemd: test-deps ## boot hosts with a real systemd, and test the package there; takes root; SYSTEMD_RUN=TestX: that one
	@VERSION='$(VERSION)' SYSTEMD_RUN='$(SYSTEMD_RUN)' scripts/test-systemd

.PHONY: test-deps
test-deps: ## install the servers and the C compiler that tests need, if missing
	@scripts/test-deps

.PHONY: model
model: ## search all states of the models of lease, slots, flush and capture in bounds of minutes, and tell what happens without each rule
	MODEL=large CGO_ENABLED=0 go test -count=1 -timeout 60m -v ./test/model

.PHONY: chaos
chaos: chaos-flush chaos-capture chaos-lock chaos-slots chaos-network ## all five of the following: break everything at random; CHAOS_SEED=N replays

.PHONY: crash
crash: test-deps ## stop every source in every database at every passing of every step; make test takes a sample
	@$(SUITE) crash

.PHONY: chaos-flush
chaos-flush: test-deps ## break a whole installation under traffic for CHAOS_TIME, and audit its database; CHAOS_POOLER=1: with PgBouncer before it; CHAOS_CLUSTER=1: its data in a Cluster whose slots move; CHAOS_RELEASE=sid: with its Valkey
	CHAOS_TIME=$(CHAOS_TIME) CHAOS_POOLER=$(CHAOS_POOLER) CHAOS_CLUSTER=$(CHAOS_CLUSTER) $(CHAOS_TEST) -count=1 -timeout 0 -run '^TestChaos' -v ./test/chaos

.PHONY: chaos-capture
chaos-capture: test-deps ## change a Redis behind Sentinels, and a Cluster, by every command, break all that captures it, and compare the tables; CHAOS_TOPOLOGY=cluster: that one; CHAOS_RELEASE=sid: with its Valkey
	CHAOS_TIME=$(if $(filter file,$(origin CHAOS_TIME)),30m,$(CHAOS_TIME)) $(CHAOS_TEST) -count=1 -timeout 0 -run '^TestCapture$$/$(CHAOS_TOPOLOGY)' -v ./test/chaos/capture

.PHONY: chaos-lock
chaos-lock: test-deps ## break each lock design CHAOS_FAULTS times, and check its history; CHAOS_DESIGN=quorum: that one
	CHAOS_FAULTS=$(CHAOS_FAULTS) CGO_ENABLED=1 go test -race -count=1 -timeout 0 -run '^TestLinear/$(CHAOS_DESIGN)' -v ./test/linear

.PHONY: chaos-slots
chaos-slots: test-deps ## break five nodes that run commands CHAOS_FAULTS times, step all clocks, and account for every slot
	CHAOS_FAULTS=$(CHAOS_FAULTS) CGO_ENABLED=1 go test -race -count=1 -timeout 0 -run '^TestSlots' -v ./test/slots

.PHONY: chaos-network
chaos-network: test-deps ## break the network of hosts with a real systemd CHAOS_FAULTS times under traffic, and audit; takes root
	@VERSION='$(VERSION)' CHAOS_FAULTS=$(CHAOS_FAULTS) SYSTEMD_RUN='^TestNetworkFaultsBreakNoPromise$$' SYSTEMD_TIMEOUT=0 scripts/test-systemd

.PHONY: failover
failover: test-deps ## measure failover times and what an idle standby costs, against the limits
	FAILOVER_ROUNDS=20 IDLE_SECONDS=60 OUTAGE_SECONDS=60 go test -count=1 -timeout 20m -run '^Test(Failover|Idle|Outage)' -v ./test/nodes

.PHONY: bench
bench: test-deps ## speed, latency and memory against real servers, as ratios in one run
	cd bench && go run . $(BENCH_FLAGS)

.PHONY: bench-pipeline
bench-pipeline: test-deps ## compare the flush with a stream processor and the naive program, in one run
	cd bench && go run ./pipeline $(BENCH_FLAGS)

.PHONY: bench-election
bench-election: test-deps ## compare the election with what else is used, in one run
	cd bench && go run ./election $(BENCH_FLAGS)

.PHONY: bench-jobs
bench-jobs: test-deps ## how late commands start when 200 of 2,000 jobs are due at once, and what idle jobs and idle flushes cost
	cd bench && go run ./jobs $(BENCH_FLAGS)

.PHONY: cover
cover: test-deps ## test coverage, written to .cache/cover.html
	@mkdir -p .cache
	go test -timeout 20m -coverpkg=./... -coverprofile=.cache/cover.out ./...
	go tool cover -html=.cache/cover.out -o .cache/cover.html
	go tool cover -func=.cache/cover.out | tail -n 1

.PHONY: lint
lint: test-deps ## static analysis (builds the linter at first: some minutes)
	scripts/test-subjects
	cd bench && go vet ./...
	cd clients/goredis && go vet ./...
	scripts/vale
	go run ./test/prose -check >/dev/null
	$(GOLANGCI_LINT) run

.PHONY: prose
prose: ## count the sentences that have to be read twice, by package and page; PROSE="-show 9 internal/job": see them
	@go run ./test/prose $(PROSE)

.PHONY: fmt
fmt: ## format the code
	$(GOLANGCI_LINT) fmt

.PHONY: vuln
vuln: ## look up known vulnerabilities (needs vuln.go.dev)
	$(GOVULNCHECK) ./...

.PHONY: docs
docs: ## write what is made from the code: pages of docs/reference, and the tables of docs/doctor.md
	go test -count=1 ./internal/config -run Reference -update
	go test -count=1 ./cmd/baton -run Reference -update
	go test -count=1 ./internal/doctor -run Reference -update

.PHONY: man
man: ## write the manual pages into bin/man
	@mkdir -p bin/man
	CGO_ENABLED=0 go test -count=1 -ldflags '-X baton/cmd/baton.version=$(VERSION)' ./cmd/baton -run '^TestManualPages$$' -man $(CURDIR)/bin/man

.PHONY: clean
clean: ## remove what was built
	rm -rf bin dist .cache
