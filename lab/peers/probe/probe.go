package probe

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// NewMapper makes a mapper as a controller would at its start. Hc talks to the API server of cfg and counts; the mapper must
// use it, or a client on top of its transport. The client that it returns is the one to list through: hc itself, unless the
// mapper wants to see what becomes of list requests.
type NewMapper func(cfg *rest.Config, hc *http.Client) (meta.RESTMapper, *http.Client, error)

// Main runs the peer of that name with the flags of the command line until SIGTERM, an interrupt or, where
// LAB_LIFELINE=stdin is set, the end of standard input. It does not return.
func Main(name string, newMapper NewMapper) {
	o, err := parseOptions(name, os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if os.Getenv("LAB_LIFELINE") == "stdin" {
		go endWithParent(stop)
	}
	if err := run(ctx, name, o, newMapper); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// endWithParent calls stop when the other end of standard input, held by the starting process, is closed.
func endWithParent(stop func()) {
	var b [1]byte
	for {
		if _, err := os.Stdin.Read(b[:]); err != nil {
			stop()
			return
		}
	}
}

func run(ctx context.Context, name string, o options, newMapper NewMapper) error {
	cfg, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", o.kubeconfig, err)
	}
	cfg.UserAgent = "changeover-peer/" + name
	// HTTPClientFor shares connections among all clients of equal configurations, as the processes of a controller do.
	plain, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", o.kubeconfig, err)
	}
	counter := &counter{next: plain.Transport}
	p := &program{name: name, cfg: cfg, options: o, newMapper: newMapper, plain: plain, counter: counter,
		started: make(chan struct{}), frozen: make(chan struct{})}

	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: p.handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	if err := announce(o.addressFile, listener.Addr().String()); err != nil {
		return err
	}
	fmt.Printf("%s: serving at http://%s\n", name, listener.Addr())
	return p.createMappers(ctx)
}

// announce writes address to file, in one step, so that a reader never meets half of it.
func announce(file, address string) error {
	if file == "" {
		return nil
	}
	if err := os.WriteFile(file+".new", []byte(address), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// program is one running probe.
type program struct {
	name      string
	cfg       *rest.Config
	options   options
	newMapper NewMapper
	plain     *http.Client // does not count: for /readyz
	counter   *counter

	// Each is closed once, by a request: started, where --wait is set, lets the creation at a rate begin; frozen ends it.
	started, frozen chan struct{}
	start, freeze   sync.Once

	mu       sync.Mutex
	subjects []*subject
}

// createMappers creates mappers as the options say and then waits for ctx to end, and for all of their work with it.
func (p *program) createMappers(ctx context.Context) error {
	for range p.options.mappers {
		if err := p.createMapper(ctx); err != nil {
			return err
		}
	}
	if p.options.rate > 0 {
		if err := p.createAtRate(ctx); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

func (p *program) createAtRate(ctx context.Context) error {
	if p.options.wait {
		select {
		case <-p.started:
		case <-p.frozen:
		case <-ctx.Done():
			return nil
		}
	}
	ticker := time.NewTicker(time.Duration(float64(time.Second) / p.options.rate))
	defer ticker.Stop()
	for p.options.max == 0 || len(p.all()) < p.options.max {
		select {
		case <-ctx.Done():
			return nil
		case <-p.frozen:
			return nil
		case <-ticker.C:
		}
		if err := p.createMapper(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) createMapper(ctx context.Context) error {
	s, err := newSubject(p.cfg, &http.Client{Transport: p.counter}, p.options.kinds, p.newMapper)
	if err != nil {
		return fmt.Errorf("creating a mapper: %w", err)
	}
	p.mu.Lock()
	p.subjects = append(p.subjects, s)
	p.mu.Unlock()
	go s.work(ctx, p.options.interval)
	return nil
}

// all returns the mappers that there are now. The slice is never written to.
func (p *program) all() []*subject {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.subjects[:len(p.subjects):len(p.subjects)]
}
