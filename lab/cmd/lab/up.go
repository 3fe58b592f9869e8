package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/changeover-dev/changeover/lab"
	"github.com/changeover-dev/changeover/lab/node"
	"github.com/spf13/cobra"
)

const defaultName = "default"

// upOptions are the flags of up, and of serve, the process that up leaves behind.
type upOptions struct {
	name       string
	kubernetes string
	apiServers int
}

func (o *upOptions) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.name, "name", defaultName, "name of the lab; several can run at once")
	cmd.Flags().StringVar(&o.kubernetes, "kubernetes", "1.37", "Kubernetes release: "+strings.Join(lab.Releases(), " or "))
	cmd.Flags().IntVar(&o.apiServers, "apiservers", 2, "number of API servers on the one etcd")
}

func (o *upOptions) args() []string {
	return []string{"--name=" + o.name, "--kubernetes=" + o.kubernetes, fmt.Sprintf("--apiservers=%d", o.apiServers)}
}

func upCommand() *cobra.Command {
	var o upOptions
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a control plane and a node, and leave them running",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return up(cmd.Context(), o, os.Stdout, os.Stderr) },
	}
	o.register(cmd)
	return cmd
}

// up starts serve as a process of its own and waits until the lab is published.
func up(ctx context.Context, o upOptions, out, progress io.Writer) error {
	if n, err := lab.Lookup(o.name); err == nil {
		return fmt.Errorf("lab %q runs already: KUBECONFIG=%s; `lab down --name=%s` stops it", o.name, n.Kubeconfig, o.name)
	}
	// The build happens here, where its progress is seen; serve finds it done.
	if _, err := lab.Build(ctx, "controlplane-"+o.kubernetes, progress); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := lab.NamedLog(o.name)
	if err != nil {
		return err
	}
	defer log.Close()
	serve := exec.Command(self, append([]string{"serve"}, o.args()...)...)
	serve.Stdout, serve.Stderr = log, log
	serve.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives this terminal
	if err := serve.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- serve.Wait() }()
	ctx, cancel := context.WithTimeoutCause(ctx, 6*time.Minute, errors.New("6 minutes is the limit for a start"))
	defer cancel()
	var n *lab.Named
	err = lab.Await(ctx, "lab up", func(context.Context) (string, bool) {
		select {
		case err := <-ended:
			cancel()
			return fmt.Sprintf("the lab's process ended: %v", err), false
		default:
		}
		var err error
		n, err = lab.Lookup(o.name)
		return fmt.Sprint(err), err == nil
	})
	if err != nil {
		_ = serve.Process.Signal(syscall.SIGTERM)
		b, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%w\n%s", err, b)
	}
	explain(out, n)
	return nil
}

func explain(out io.Writer, n *lab.Named) {
	fmt.Fprintf(out, `Kubernetes %s is up: %d API servers on one etcd, a controller manager, and a node that runs Pods as processes.

  export KUBECONFIG=%s
  kubectl get nodes

API servers: %s
Logs:        %s/logs
Stop it:     go -C lab run ./cmd/lab down --name=%s
`, n.Kubernetes, len(n.Servers), n.Kubeconfig, strings.Join(n.Servers, " "), n.Dir, n.Name)
}

func serveCommand() *cobra.Command {
	var o upOptions
	cmd := &cobra.Command{
		Use:    "serve",
		Short:  "Run a lab until a signal comes; up starts this",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), o) },
	}
	o.register(cmd)
	return cmd
}

func serve(ctx context.Context, o upOptions) (err error) {
	release, err := lab.Claim(o.name)
	if err != nil {
		return err
	}
	defer release()
	c, err := lab.Start(ctx, lab.Options{Kubernetes: o.kubernetes, APIServers: o.apiServers, Log: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	agent, err := node.Start(ctx, c.Config(), node.Options{Dir: filepath.Join(c.Dir(), "node")})
	if err != nil {
		return err
	}
	defer agent.Stop()
	if err := c.Publish(o.name); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
