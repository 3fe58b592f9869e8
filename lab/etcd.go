package lab

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Etcd is the lab's store. Reading it shows what really lies on disk, in which version, whatever an API server makes of it.
type Etcd struct {
	part
	client *clientv3.Client
	url    string
}

// startEtcd starts etcd without fsync: a lab survives the death of every process, not that of the machine.
func startEtcd(ctx context.Context, c *Cluster) (*Etcd, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	peer, err := freePort()
	if err != nil {
		return nil, err
	}
	e := &Etcd{url: fmt.Sprintf("http://127.0.0.1:%d", port)}
	peerURL := fmt.Sprintf("http://127.0.0.1:%d", peer)
	e.part = part{cluster: c, command: Command{Name: "etcd", Path: c.binary, Args: []string{
		"etcd", "--name=lab", "--data-dir=" + filepath.Join(c.Dir(), "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls=" + e.url, "--advertise-client-urls=" + e.url,
		"--listen-peer-urls=" + peerURL, "--initial-advertise-peer-urls=" + peerURL, "--initial-cluster=lab=" + peerURL,
	}}}
	e.ready = e.readyNow
	e.client, err = clientv3.New(clientv3.Config{Endpoints: []string{e.url}, DialTimeout: time.Minute, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	return e, e.start()
}

func (e *Etcd) readyNow(ctx context.Context) (string, bool) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := e.client.Get(ctx, "/"); err != nil {
		return err.Error(), false
	}
	return "answers", true
}

// Endpoint is the URL at which etcd serves clients.
func (e *Etcd) Endpoint() string { return e.url }

// Get returns the bytes stored under key, or an error when there are none.
// Custom resources lie as JSON under /registry/GROUP/PLURAL/NAMESPACE/NAME.
func (e *Etcd) Get(ctx context.Context, key string) ([]byte, error) {
	r, err := e.client.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("etcd key %s: %w", key, err)
	}
	if len(r.Kvs) == 0 {
		return nil, fmt.Errorf("etcd key %s: not there", key)
	}
	return r.Kvs[0].Value, nil
}

// List returns the values below prefix by key.
func (e *Etcd) List(ctx context.Context, prefix string) (map[string][]byte, error) {
	r, err := e.client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("etcd prefix %s: %w", prefix, err)
	}
	m := make(map[string][]byte, len(r.Kvs))
	for _, kv := range r.Kvs {
		m[string(kv.Key)] = kv.Value
	}
	return m, nil
}
