package lab

import (
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
)

// Options describe a control plane. The zero value is Kubernetes 1.37 with two API servers and a controller manager.
type Options struct {
	// Kubernetes is the minor release: "1.37" (the default) or "1.34".
	Kubernetes string
	// APIServers is the number of API servers on the one etcd; 0 means 2.
	APIServers int
	// Lag names, by index, the API servers that reach etcd through a proxy, so that Server.SetLag can delay what they see. They
	// do not lag until then.
	Lag []int
	// NoControllerManager leaves kube-controller-manager out: nothing reconciles Deployments or collects garbage, and a start is quicker.
	NoControllerManager bool
	// APIServerFlags are given to every API server, after the lab's own.
	APIServerFlags []string
	// Log gets a line for each thing that the lab does, and what a first build prints; nil means silence.
	Log io.Writer
}

// releases maps a minor release to the version that the lab builds. 1.34 has a module of its own because the
// staging modules of two releases cannot live in one.
var releases = map[string]struct{ version, dir, pkg string }{
	"1.37": {"v1.37.2", ".", "./cmd/controlplane"},
	"1.34": {"v1.34.4", "kubernetes-1.34", "."},
}

// Releases lists the Kubernetes minor releases that a lab can run, oldest first.
func Releases() []string {
	var r []string
	for minor := range releases {
		r = append(r, minor)
	}
	sort.Strings(r)
	return r
}

func (o *Options) validate() error {
	if o.Kubernetes == "" {
		o.Kubernetes = "1.37"
	}
	if o.APIServers == 0 {
		o.APIServers = 2
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	if _, ok := releases[o.Kubernetes]; !ok {
		return fmt.Errorf("Kubernetes %q: the lab has %s; a further release is a further module, see lab/kubernetes-1.34", o.Kubernetes, strings.Join(Releases(), " and "))
	}
	if o.APIServers < 0 || o.APIServers > 9 {
		return fmt.Errorf("%d API servers: from 1 to 9 are possible", o.APIServers)
	}
	for _, i := range o.Lag {
		if i < 0 || i >= o.APIServers {
			return fmt.Errorf("lag of API server %d: there are %d, counted from 0", i, o.APIServers)
		}
	}
	o.Lag = slices.Clone(o.Lag)
	return nil
}
