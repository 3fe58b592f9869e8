package upgrade

import (
	"errors"
	"io"
	"time"

	"github.com/changeover-dev/changeover/upgrade/converge"
	"github.com/changeover-dev/changeover/upgrade/quiesce"
)

// Options of Run, Plan and Wait. Sources are required.
type Options struct {
	// Sources are files, folders or "-" for Stdin, read as one changeover.
	Sources []string
	Stdin   io.Reader
	// Namespace of the manifests' Deployments that name none; "default" when empty.
	Namespace string

	// Controllers to stop beside the Deployments that the sources hold. They must exist.
	Controllers []quiesce.Ref
	// ControllerSelector matches further Deployments to stop, by label, in all namespaces.
	ControllerSelector string

	// APIServers that have to agree; found by themselves when empty.
	APIServers []converge.Address

	// ForceConflicts writes fields of CRDs that another manager keeps by server-side apply.
	ForceConflicts bool

	// Timeout of each phase; 5 min when zero.
	Timeout time.Duration
	// Interval between two looks at what is waited for; 200 ms when zero.
	Interval time.Duration
	// Progress gets a line, without its end, for each thing that happens; it is called from one goroutine at a time.
	Progress func(string)
}

func (o Options) withDefaults() Options {
	if o.Namespace == "" {
		o.Namespace = "default"
	}
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Minute
	}
	if o.Interval == 0 {
		o.Interval = 200 * time.Millisecond
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o
}

func (o Options) validate() error {
	switch {
	case len(o.Sources) == 0:
		return errors.New("upgrade: no source of CRDs is given")
	case o.Timeout < 0 || o.Interval < 0:
		return errors.New("upgrade: a negative duration")
	}
	return nil
}
