// Command bench measures this project's code beside its peers', in one run on one machine, and prints one JSON line per result.
//
//	go -C lab run ./cmd/bench                      all benches
//	go -C lab run ./cmd/bench -select race-storm   the ones named, separated by commas
//
// Lines go to standard output, progress to standard error.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/changeover-dev/changeover/lab"
)

// bench is one of the benches. It tells emit each result as soon as it has it.
type bench struct {
	name string
	run  func(ctx context.Context, log io.Writer, emit func(line) error) error
}

func benches() []bench {
	return []bench{
		{"race-storm", raceStorm},
	}
}

func main() {
	selected := flag.String("select", os.Getenv("BENCH"), "`names` of the benches to run, separated by commas; default $BENCH, else all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	defer lab.EndWithParent()()
	chosen, err := choose(benches(), *selected)
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(2)
	}
	lines := json.NewEncoder(os.Stdout)
	for _, b := range chosen {
		if err := b.run(ctx, os.Stderr, func(l line) error { return lines.Encode(l) }); err != nil {
			fmt.Fprintf(os.Stderr, "error: bench %s: %v\n", b.name, err)
			os.Exit(1)
		}
	}
}

// choose picks the benches that are named in selected, in their own order; an empty selection picks all.
func choose(all []bench, selected string) ([]bench, error) {
	if selected == "" {
		return all, nil
	}
	wanted := strings.Split(selected, ",")
	var chosen []bench
	var names []string
	for _, b := range all {
		names = append(names, b.name)
		if slices.Contains(wanted, b.name) {
			chosen = append(chosen, b)
		}
	}
	for _, name := range wanted {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("bench %q: there are %s", name, strings.Join(names, ", "))
		}
	}
	return chosen, nil
}
