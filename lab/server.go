package lab

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/changeover-dev/changeover/lab/proxy"
	"k8s.io/client-go/rest"
)

// Server is one kube-apiserver.
type Server struct {
	part
	url  string
	lag  *proxy.Lag // nil unless Options.Lag asked for it
	http *http.Client
}

// startServer starts the API server with index i. Its port is its own for the life of the lab.
func startServer(c *Cluster, i int, lags bool) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &Server{url: fmt.Sprintf("https://127.0.0.1:%d", port)}
	etcd := c.etcd.url
	if lags {
		s.lag, err = proxy.StartLag(c.etcd.url[len("http://"):])
		if err != nil {
			return nil, err
		}
		etcd = "http://" + s.lag.Addr()
	}
	s.http, err = rest.HTTPClientFor(c.secrets.config(s.url, admin))
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("kube-apiserver-%d", i)
	s.part = part{cluster: c, command: Command{Name: name, Path: c.binary, Args: append([]string{
		"kube-apiserver",
		"--etcd-servers=" + etcd,
		fmt.Sprintf("--secure-port=%d", port),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none", // Endpoints refuse loopback addresses
		"--cert-dir=" + filepath.Join(c.Dir(), name),
		"--tls-cert-file=" + c.secrets.certFile,
		"--tls-private-key-file=" + c.secrets.keyFile,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.secrets.saKeyFile,
		"--service-account-signing-key-file=" + c.secrets.saKeyFile,
		"--token-auth-file=" + c.secrets.tokenFile,
		"--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--profiling=false",
	}, c.options.APIServerFlags...)}}
	s.ready = s.readyNow
	return s, s.start()
}

func (s *Server) readyNow(ctx context.Context) (string, bool) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/readyz", nil)
	if err != nil {
		return err.Error(), false
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return err.Error(), false
	}
	resp.Body.Close()
	return "/readyz: " + resp.Status, resp.StatusCode == http.StatusOK
}

// URL is the address of the server, https on loopback.
func (s *Server) URL() string { return s.url }

// Config is a client configuration for this server, as an administrator; each call returns a copy.
func (s *Server) Config() *rest.Config { return s.cluster.secrets.config(s.url, admin) }

// SetLag delays all that the server hears from etcd by d; 0 ends the lag. It panics on a server that Options.Lag did not name.
func (s *Server) SetLag(d time.Duration) {
	if s.lag == nil {
		panic("lab: SetLag on " + s.command.Name + ", which Options.Lag does not name")
	}
	s.lag.SetDelay(d)
}
