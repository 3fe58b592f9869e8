package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// start starts the container's process and reports it running. It returns nil and no error when the container is no longer wanted.
func (c *container) start(ctx context.Context) (*process, error) {
	if err := unsupported(c.source, c.spec); err != nil {
		return nil, err
	}
	if !c.confirmed {
		wanted, err := c.pod.confirm(ctx)
		if err != nil {
			return nil, refuse(reasonUnconfirmed, "asking whether the Pod is still wanted: %v", err)
		}
		if !wanted {
			return nil, nil
		}
		c.confirmed = true
	}
	if err := os.MkdirAll(c.pod.node.podDir(c.pod.id), 0o755); err != nil {
		return nil, refuse(reasonConfig, "the pod's folder: %v", err)
	}
	kubeconfig, err := c.pod.account.kubeconfig(ctx, c.source)
	if err != nil {
		return nil, refuse(reasonConfig, "service account token: %v", err)
	}
	port, err := c.pod.node.ports.take()
	if err != nil {
		return nil, refuse(reasonConfig, "LAB_PORT: %v", err)
	}
	p, err := c.launch(port, kubeconfig)
	if err != nil || p == nil {
		c.pod.node.ports.release(port)
	}
	return p, err
}

// launch starts the process with a port and a kubeconfig ("" for none).
func (c *container) launch(port int, kubeconfig string) (*process, error) {
	env, err := environment(c.source, c.spec, port, kubeconfig)
	if err != nil {
		return nil, err
	}
	cmd, err := c.command(c.spec.Command, c.spec.Args, env)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(c.pod.node.LogPath(c.source, c.spec.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, refuse(reasonConfig, "log: %v", err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log

	// Under the lock, so that a stop comes either before, and nothing is started, or after, and finds the process.
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil, nil
	}
	p, err := c.pod.node.spawner.start(cmd)
	if err != nil {
		return nil, startRefusal(cmd.Path, err)
	}
	c.process = p
	c.now.running, c.now.pid, c.now.port, c.now.since = true, p.pid(), port, metav1.Now()
	c.now.reason, c.now.message = "", ""
	c.now.started = c.spec.StartupProbe == nil
	c.now.ready = c.now.started && c.spec.ReadinessProbe == nil
	c.pod.changed()
	return p, nil
}

// command prepares what a container, or an exec probe in it, runs.
func (c *container) command(command, args []string, env []string) (*exec.Cmd, error) {
	if len(command) == 0 {
		return nil, refuse(reasonCommand, "container %s names no command; the lab runs commands of this machine, not images", c.spec.Name)
	}
	dir := c.pod.node.podDir(c.pod.id)
	if c.spec.WorkingDir != "" {
		dir = c.spec.WorkingDir
	}
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
		return nil, refuse(reasonConfig, "workingDir %s: no such folder", dir)
	}
	values := variables(env)
	name := expand(command[0], values)
	if strings.ContainsRune(name, '/') && !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, startRefusal(name, err)
	}
	cmd := &exec.Cmd{Path: path, Args: []string{name}, Env: env, Dir: dir}
	for _, arg := range append(command[1:len(command):len(command)], args...) {
		cmd.Args = append(cmd.Args, expand(arg, values))
	}
	return cmd, nil
}

// startRefusal says why a program could not be started.
func startRefusal(name string, err error) error {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return refuse(reasonCommand, "command %q: not there", name)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC):
		return refuse(reasonCommand, "command %q: not executable", name)
	default:
		return fmt.Errorf("command %q: %w", name, err)
	}
}
