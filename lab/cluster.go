package lab

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Cluster is a running control plane. Its methods are safe for concurrent use.
type Cluster struct {
	options Options
	state   *state
	nursery *nursery
	secrets *secrets
	binary  string

	etcd              *Etcd
	servers           []*Server
	controllerManager *part // nil without one

	mu        sync.Mutex
	processes []*Process // those of Cluster.Process
	stopOnce  sync.Once
	stopErr   error
}

// Start builds what is missing, starts a control plane and returns when every part of it is ready. The first build takes minutes; a start after
// that a few seconds. Ending ctx ends the start, not the lab that was started. A start that fails leaves nothing behind.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	binary, err := Build(ctx, "controlplane-"+o.Kubernetes, o.Log)
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	c := &Cluster{options: o, binary: binary, nursery: newNursery()}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("lab: %w", err), c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) (err error) {
	begin := time.Now()
	if c.state, err = newState(); err != nil {
		return err
	}
	if c.secrets, err = newSecrets(c.Dir()); err != nil {
		return err
	}
	if c.etcd, err = startEtcd(ctx, c); err != nil {
		return err
	}
	// Seconds are usual; a machine with ten times more to do than it has cores took two minutes.
	ctx, cancel := context.WithTimeoutCause(ctx, 5*time.Minute, errors.New("5 minutes is the limit for a start"))
	defer cancel()
	if err := c.etcd.AwaitReady(ctx); err != nil {
		return err
	}
	for i := range c.options.APIServers {
		s, err := startServer(c, i, slices.Contains(c.options.Lag, i))
		if err != nil {
			return err
		}
		c.servers = append(c.servers, s)
	}
	for _, s := range c.servers {
		if err := s.AwaitReady(ctx); err != nil {
			return err
		}
	}
	if err := WriteKubeconfig(c.Kubeconfig(), c.Config()); err != nil {
		return err
	}
	if !c.options.NoControllerManager {
		if err := c.startControllerManager(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintf(c.options.Log, "started Kubernetes %s, %d API servers on one etcd, in %s\n", c.options.Kubernetes, len(c.servers), time.Since(begin).Round(100*time.Millisecond))
	return nil
}

// startControllerManager starts kube-controller-manager at server 0 and waits until its controllers run: until the default namespace
// has its service account.
func (c *Cluster) startControllerManager(ctx context.Context) error {
	kubeconfig := filepath.Join(c.Dir(), "controller-manager.kubeconfig")
	if err := WriteKubeconfig(kubeconfig, c.secrets.config(c.servers[0].url, controllerManager)); err != nil {
		return err
	}
	ready, err := defaultServiceAccount(c.Config())
	if err != nil {
		return err
	}
	c.controllerManager = &part{cluster: c, ready: ready, command: Command{Name: "kube-controller-manager", Path: c.binary, Args: []string{
		"kube-controller-manager",
		"--kubeconfig=" + kubeconfig,
		"--service-account-private-key-file=" + c.secrets.saKeyFile,
		"--root-ca-file=" + c.secrets.certFile,
		"--use-service-account-credentials",
		"--leader-elect=false",
		"--secure-port=0",
		"--concurrent-deployment-syncs=10",
	}}}
	if err := c.controllerManager.start(); err != nil {
		return err
	}
	return c.controllerManager.AwaitReady(ctx)
}

// Stop ends every process of the lab and removes its state folder. Calls after the first return what that returned.
func (c *Cluster) Stop() error {
	c.stopOnce.Do(func() {
		c.mu.Lock()
		processes := slices.Clone(c.processes)
		c.mu.Unlock()
		for _, p := range c.parts() {
			if process := p.Process(); process != nil {
				processes = append(processes, process)
			}
		}
		var wg sync.WaitGroup
		for _, p := range processes {
			wg.Go(p.Kill)
		}
		wg.Wait()
		c.nursery.close()
		for _, s := range c.servers {
			if s.lag != nil {
				s.lag.Close()
			}
			s.http.CloseIdleConnections()
		}
		if c.etcd != nil && c.etcd.client != nil {
			c.etcd.client.Close()
		}
		if c.state != nil {
			c.stopErr = c.state.remove()
		}
	})
	return c.stopErr
}

// parts lists what was started, in no order that matters.
func (c *Cluster) parts() []*part {
	var parts []*part
	if c.controllerManager != nil {
		parts = append(parts, c.controllerManager)
	}
	for _, s := range c.servers {
		parts = append(parts, &s.part)
	}
	if c.etcd != nil {
		parts = append(parts, &c.etcd.part)
	}
	return parts
}

// Process starts a child process that ends, at the latest, with the lab, or with the process that hosts the lab.
func (c *Cluster) Process(cmd Command) (*Process, error) {
	p, err := c.nursery.startProcess(c.Dir(), cmd)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes = append(c.processes, p)
	return p, nil
}

// Dir is the state folder; logs/ below it holds what each process printed. It is gone after Stop.
func (c *Cluster) Dir() string { return c.state.dir }

// Kubernetes is the minor release that runs.
func (c *Cluster) Kubernetes() string { return c.options.Kubernetes }

// Servers are the API servers; the slice is the caller's.
func (c *Cluster) Servers() []*Server { return slices.Clone(c.servers) }

// Server is the API server with index i, counted from 0.
func (c *Cluster) Server(i int) *Server { return c.servers[i] }

// Etcd is the store.
func (c *Cluster) Etcd() *Etcd { return c.etcd }

// Config is a client configuration for server 0, as an administrator; each call returns a copy.
func (c *Cluster) Config() *rest.Config { return c.servers[0].Config() }

// ConfigAs is a client configuration for server 0 as one of the users that a lab knows: "admin" may do everything; "nobody" and
// "someone" may do what RBAC grants them in the test.
func (c *Cluster) ConfigAs(user string) *rest.Config { return c.secrets.config(c.servers[0].url, user) }

// Kubeconfig is the path of a kubeconfig for server 0, as an administrator.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.Dir(), "kubeconfig") }
