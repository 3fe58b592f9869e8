# What each target needs: Go, git and make. No C compiler, no container engine, no cluster.
.PHONY: help demo test bench lint facts

# Packages that start labs run one after another: a lab with two API servers wants both cores and a gigabyte.
# They run programs of other modules, which the Go command does not see when it asks whether a result still holds: hence -count=1. The control plane's
# own package has no tests, and vetting all of Kubernetes below it would take longer than they do.
LAB_TEST = go -C lab test -p 1 -count=1 -timeout 20m

help:
	@echo 'make demo   the whole story on a real control plane: the race, and a changeover without it'
	@echo 'make test   every test, on a real control plane of Kubernetes 1.37'
	@echo 'make bench  the benches, one JSON line per result; BENCH=race-storm selects'
	@echo 'make lint   formatters, vet, staticcheck, import bans, links of the docs'

demo:
	go -C lab run ./cmd/lab demo

test:
	go test ./...
	go -C upgrade test ./...
	go -C lab/peers/probe test ./...
	$(LAB_TEST) $$(go -C lab list ./... | grep -v /cmd/controlplane$$)

# BENCH selects results by name, separated by commas; empty means all.
bench:
	@go -C lab run ./cmd/bench -select '$(BENCH)'

lint:
	@.ci/lint
