package probe

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

type options struct {
	kubeconfig  string
	listen      string
	addressFile string
	kinds       kinds
	mappers     int
	rate        float64
	max         int
	wait        bool
	interval    time.Duration
}

// parseOptions reads the flags in args. Errors and usage go to out.
func parseOptions(name string, args []string, out io.Writer) (options, error) {
	o := options{kubeconfig: os.Getenv("KUBECONFIG"), listen: "127.0.0.1:0"}
	if port := os.Getenv("LAB_PORT"); port != "" {
		o.listen = "127.0.0.1:" + port
	}
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(out)
	fs.StringVar(&o.kubeconfig, "kubeconfig", o.kubeconfig, "`file` that names the API server; default $KUBECONFIG")
	fs.StringVar(&o.listen, "listen", o.listen, "`address` to serve HTTP at; the default takes the port from $LAB_PORT, else a free one")
	fs.StringVar(&o.addressFile, "address-file", "", "`file` to write the address to, once it is served")
	fs.Var(&o.kinds, "kind", "`group/Kind` to map; may be repeated")
	fs.IntVar(&o.mappers, "mappers", 0, "`number` of mappers to create at the start")
	fs.Float64Var(&o.rate, "rate", 0, "mappers to create per second after that")
	fs.IntVar(&o.max, "max", 0, "`number` of mappers at which to stop creating; 0: no limit")
	fs.BoolVar(&o.wait, "wait", false, "create at --rate only after POST /start")
	fs.DurationVar(&o.interval, "interval", 200*time.Millisecond, "`pause` between two lookups of a mapper")
	if err := fs.Parse(args); err != nil {
		return options{}, err
	}
	if fs.NArg() > 0 {
		return options{}, fmt.Errorf("arguments %q: there are only flags", fs.Args())
	}
	return o, o.validate()
}

func (o options) validate() error {
	switch {
	case o.kubeconfig == "":
		return errors.New("--kubeconfig: missing, and $KUBECONFIG is empty")
	case len(o.kinds) == 0:
		return errors.New("--kind: missing: name at least one group/Kind")
	case o.mappers < 0 || o.max < 0 || o.rate < 0:
		return errors.New("--mappers, --max and --rate: must not be negative")
	case o.mappers == 0 && o.rate == 0:
		return errors.New("--mappers and --rate: both are zero: there would be no mapper")
	case o.interval <= 0:
		return errors.New("--interval: must be positive")
	}
	return nil
}

// kinds is a flag that may be repeated.
type kinds []schema.GroupKind

func (k *kinds) String() string {
	var names []string
	for _, gk := range *k {
		names = append(names, gk.Group+"/"+gk.Kind)
	}
	return strings.Join(names, ",")
}

func (k *kinds) Set(value string) error {
	group, kind, found := strings.Cut(value, "/")
	if !found || kind == "" || strings.Contains(kind, "/") {
		return fmt.Errorf("%q: want group/Kind", value)
	}
	*k = append(*k, schema.GroupKind{Group: group, Kind: kind})
	return nil
}
