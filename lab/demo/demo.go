// Package demo tells the project's story on a lab, from the race to a changeover without it, and fails when the story does not hold.
package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/changeover-dev/changeover/lab"
	"github.com/changeover-dev/changeover/lab/capi"
	"github.com/changeover-dev/changeover/lab/crds"
	"github.com/changeover-dev/changeover/lab/node"
	"github.com/changeover-dev/changeover/lab/race"
)

// The upgrade that started the project.
const (
	oldRelease = "v1.5.2"
	newRelease = "v1.6.0"
)

// Options of a demo. Out is required.
type Options struct {
	Out        io.Writer
	Kubernetes string // "1.37", the default, or "1.34"
}

// telling is one demo on its way; each step fills in what the next ones need.
type telling struct {
	*narrator
	options Options

	probes      map[string]string // path of each peer's program, by mapper
	command     string            // path of kubectl-changeover
	cluster     *lab.Cluster
	node        *node.Node
	before      []crds.Provider // the old release
	after       []crds.Provider // the new one
	race        []race.Result
	controllers *capi.Controllers
	objects     capi.Objects
	installed   map[string]mapperState // verdicts on the old release
	changed     map[string]mapperState // verdicts after the changeover
}

type step struct {
	title string
	run   func(*telling, context.Context) error
}

// steps is the whole story.
func steps() []step {
	return []step{
		{"What this needs", (*telling).prepare},
		{"A real control plane", (*telling).start},
		{"The race: a version goes away while controllers run", (*telling).showRace},
		{"Cluster API " + oldRelease + ", with objects and running controllers", (*telling).install},
		{"The changeover to " + newRelease, (*telling).change},
		{"What became of it all", (*telling).conclude},
	}
}

// Run tells the story. The error says which part of it did not hold: a mapper of ours that was stuck or stale, an object that was lost,
// a controller that did not come back, or a race that did not happen.
func Run(ctx context.Context, o Options) (err error) {
	if o.Out == nil {
		return errors.New("demo: Options.Out is required")
	}
	o.Kubernetes = cmp.Or(o.Kubernetes, "1.37")
	t := &telling{narrator: &narrator{out: o.Out, begin: time.Now()}, options: o}
	defer func() { err = errors.Join(err, t.end()) }()
	t.opening()
	all := steps()
	for i, s := range all {
		t.title(i+1, len(all), s.title)
		if err := s.run(t, ctx); err != nil {
			return fmt.Errorf("%s: %w", s.title, err)
		}
	}
	return nil
}

func (t *telling) end() error {
	var err error
	if t.node != nil {
		err = t.node.Stop()
	}
	if t.cluster != nil {
		err = errors.Join(err, t.cluster.Stop())
	}
	return err
}

func (t *telling) opening() {
	t.say(`A Kubernetes controller asks the API server which kinds it serves, and keeps the answer. Custom resources change
their versions, and a controller that asked at the wrong moment keeps an answer that is wrong. When Cluster API
went from ` + oldRelease + ` to ` + newRelease + ` and stopped serving v1alpha4, controllers got stuck that way until somebody restarted them
(kubernetes-sigs/cluster-api#10032). You will see this happen, side by side, with the mappers that controllers
use and with Changeover's; and then the same upgrade done so that it cannot happen.`)
}
