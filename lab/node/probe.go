package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// probe runs the container's probes against one process until ctx ends: first the startup probe, then the others side by side.
func (c *container) probe(ctx context.Context, p *process, port int) {
	restart := func(kind string) {
		c.pod.node.events.Eventf(c.source, corev1.EventTypeNormal, "Killing", "container %s failed its %s probe and is restarted", c.spec.Name, kind)
		p.stop(probeGrace(c.source))
	}
	if c.spec.StartupProbe != nil {
		var passed bool
		c.repeat(ctx, "startup", c.spec.StartupProbe, port, func(ok bool) bool {
			passed = ok
			return false
		})
		if ctx.Err() != nil {
			return
		}
		if !passed {
			restart("startup")
			return
		}
		c.set(func(v *view) { v.started, v.ready = true, c.spec.ReadinessProbe == nil })
	}
	var both sync.WaitGroup
	if c.spec.ReadinessProbe != nil {
		both.Go(func() {
			c.repeat(ctx, "readiness", c.spec.ReadinessProbe, port, func(ok bool) bool {
				c.set(func(v *view) { v.ready = ok })
				return true
			})
		})
	}
	if c.spec.LivenessProbe != nil {
		both.Go(func() {
			c.repeat(ctx, "liveness", c.spec.LivenessProbe, port, func(ok bool) bool {
				if !ok {
					restart("liveness")
				}
				return ok
			})
		})
	}
	both.Wait()
}

// repeat runs one probe by its periods and calls verdict whenever a threshold is reached, until that returns false or ctx ends.
func (c *container) repeat(ctx context.Context, kind string, probe *corev1.Probe, port int, verdict func(ok bool) bool) {
	timer := time.NewTimer(seconds(probe.InitialDelaySeconds, 0))
	defer timer.Stop()
	var t threshold
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(seconds(probe.PeriodSeconds, 10))
		once, cancel := context.WithTimeout(ctx, seconds(probe.TimeoutSeconds, 1))
		err := c.check(once, probe, port)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			c.pod.node.events.Eventf(c.source, corev1.EventTypeWarning, "Unhealthy", "%s probe of container %s: %v", kind, c.spec.Name, err)
		}
		if t.reached(probe, err == nil) && !verdict(err == nil) {
			return
		}
	}
}

// threshold counts like results in a row.
type threshold struct {
	ok    bool
	count int32
}

func (t *threshold) reached(probe *corev1.Probe, ok bool) bool {
	if t.ok != ok {
		t.ok, t.count = ok, 0
	}
	t.count++
	if ok {
		return t.count >= max(probe.SuccessThreshold, 1)
	}
	return t.count >= orDefault(probe.FailureThreshold, 3)
}

// check runs a probe once; nil means success.
func (c *container) check(ctx context.Context, probe *corev1.Probe, port int) error {
	switch {
	case probe.HTTPGet != nil:
		return c.checkHTTP(ctx, probe.HTTPGet, port)
	case probe.TCPSocket != nil:
		number, err := c.port(probe.TCPSocket.Port, port)
		if err != nil {
			return err
		}
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(hostOr(probe.TCPSocket.Host), strconv.Itoa(number)))
		if err != nil {
			return err
		}
		return conn.Close()
	case probe.Exec != nil:
		return c.checkExec(ctx, probe.Exec.Command, port)
	}
	return errors.New("the probe does nothing")
}

func (c *container) checkHTTP(ctx context.Context, get *corev1.HTTPGetAction, labPort int) error {
	number, err := c.port(get.Port, labPort)
	if err != nil {
		return err
	}
	scheme := strings.ToLower(string(get.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	path := get.Path
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+net.JoinHostPort(hostOr(get.Host), strconv.Itoa(number))+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "kube-probe/lab")
	for _, h := range get.HTTPHeaders {
		if strings.EqualFold(h.Name, "Host") {
			req.Host = h.Value
			continue
		}
		req.Header.Add(h.Name, h.Value)
	}
	// One connection per probe, as a kubelet does it: a kept one would hide that nobody listens any more. And a probe does not verify certificates.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	answer, err := client.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode < 200 || answer.StatusCode >= 400 {
		body, _ := io.ReadAll(io.LimitReader(answer.Body, 200))
		return fmt.Errorf("HTTP status %d: %s", answer.StatusCode, strings.TrimSpace(string(body)))
	}
	return nil
}

// checkExec runs a command with the container's environment; its process group is gone when it returns.
func (c *container) checkExec(ctx context.Context, command []string, port int) error {
	kubeconfig, err := c.pod.account.kubeconfig(ctx, c.source)
	if err != nil {
		return err
	}
	env, err := environment(c.source, c.spec, port, kubeconfig)
	if err != nil {
		return err
	}
	cmd, err := c.command(command, nil, env)
	if err != nil {
		return err
	}
	p, err := c.pod.node.spawner.start(cmd)
	if err != nil {
		return startRefusal(cmd.Path, err)
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.stop(0)
		<-p.done
		return context.Cause(ctx)
	}
	if code := p.exitCode(); code != 0 {
		return fmt.Errorf("%s: exit code %d", command[0], code)
	}
	return nil
}

// port resolves a probe's port: a number, the container's LAB_PORT by the name "lab", or one of its own named ports.
func (c *container) port(p intstr.IntOrString, labPort int) (int, error) {
	if p.Type == intstr.Int {
		return p.IntValue(), nil
	}
	if p.StrVal == PortName {
		return labPort, nil
	}
	for _, named := range c.spec.Ports {
		if named.Name == p.StrVal {
			return int(named.ContainerPort), nil
		}
	}
	return 0, fmt.Errorf("port %q: the container has no port of that name", p.StrVal)
}

// probeGrace is the time a process gets that failed a probe.
func probeGrace(p *corev1.Pod) time.Duration {
	if p.Spec.TerminationGracePeriodSeconds == nil {
		return 30 * time.Second
	}
	return time.Duration(*p.Spec.TerminationGracePeriodSeconds) * time.Second
}

func hostOr(host string) string {
	if host == "" {
		return loopback
	}
	return host
}

func seconds(n, otherwise int32) time.Duration {
	return time.Duration(orDefault(n, otherwise)) * time.Second
}

// orDefault stands in for the API server's defaulting, should a field have slipped by it.
func orDefault(n, otherwise int32) int32 {
	if n == 0 {
		return otherwise
	}
	return n
}
