package race

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/changeover-dev/changeover/lab"
	"github.com/changeover-dev/changeover/lab/peers/probe"
)

// Peer is a program with a mapper of its own.
type Peer struct {
	Name   string // as in results
	Folder string // below lab/peers
}

// Program is the peer's name for lab.Build.
func (p Peer) Program() string { return "peer-" + p.Folder }

// Ours is the peer with this project's mapper.
func Ours() Peer { return Peer{Name: "changeover", Folder: "changeover"} }

// Peers lists all peers: the stock ones from old to new, then ours.
func Peers() []Peer {
	var peers []Peer
	for _, version := range []string{"v0.16.3", "v0.17.0", "v0.25.3"} {
		peers = append(peers, Peer{Name: "controller-runtime " + version, Folder: "controller-runtime-" + version})
	}
	return append(peers, Ours())
}

// build builds the programs of peers, one after another, and returns their paths by the peers' names.
func build(ctx context.Context, peers []Peer, log io.Writer) (map[string]string, error) {
	paths := map[string]string{}
	for _, p := range peers {
		path, err := lab.Build(ctx, p.Program(), log)
		if err != nil {
			return nil, err
		}
		paths[p.Name] = path
	}
	return paths, nil
}

// runner is a running peer.
type runner struct {
	peer    Peer
	process *lab.Process
	dir     string // of its own, removed by stop
	address string
}

// start starts a peer that works against the API server of cfg, and returns when it answers.
func start(ctx context.Context, c *lab.Cluster, peer Peer, path string, cfg *rest.Config, flags ...string) (*runner, error) {
	dir, err := os.MkdirTemp(c.Dir(), peer.Folder+"-")
	if err != nil {
		return nil, err
	}
	r := &runner{peer: peer, dir: dir}
	kubeconfig, addressFile := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "address")
	if err := lab.WriteKubeconfig(kubeconfig, cfg); err != nil {
		return nil, err
	}
	args := append([]string{"--kubeconfig=" + kubeconfig, "--address-file=" + addressFile, "--listen=127.0.0.1:0", "--kind=" + group + "/" + kind}, flags...)
	r.process, err = c.Process(lab.Command{Name: peer.Program(), Path: path, Args: args})
	if err != nil {
		return nil, err
	}
	err = lab.Await(ctx, peer.Name+" serves", func(context.Context) (string, bool) {
		b, err := os.ReadFile(addressFile)
		r.address = string(b)
		select {
		case <-r.process.Done():
			return "it has ended", true
		default:
			return fmt.Sprint(err), err == nil
		}
	})
	if err == nil && r.address == "" {
		err = fmt.Errorf("peer %s: ended: %v\n%s", peer.Name, r.process.Wait(), r.process.Tail(5))
	}
	if err != nil {
		return nil, errors.Join(err, r.stop(ctx))
	}
	return r, nil
}

// count asks how many mappers there are.
func (r *runner) count(ctx context.Context) (c probe.Count, err error) {
	err = r.ask(ctx, http.MethodGet, "/mappers", &c)
	return c, err
}

// begin lets a peer that was started with --wait create mappers.
func (r *runner) begin(ctx context.Context) error {
	return r.ask(ctx, http.MethodPost, "/start", &probe.Count{})
}

// freeze ends the creation of mappers.
func (r *runner) freeze(ctx context.Context) error {
	return r.ask(ctx, http.MethodPost, "/freeze", &probe.Count{})
}

// verdict has each mapper do one last lookup and list, with served as what the API server serves.
func (r *runner) verdict(ctx context.Context, served []string) (v probe.Verdict, err error) {
	err = r.ask(ctx, http.MethodGet, "/verdict?served="+strings.Join(served, ","), &v)
	return v, err
}

// ask sends a request to the peer and decodes its answer.
func (r *runner) ask(ctx context.Context, method, path string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+r.address+path, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("peer %s: %w", r.peer.Name, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	if err == nil {
		err = json.Unmarshal(body, answer)
	}
	if err != nil {
		return fmt.Errorf("peer %s: %s: %w", r.peer.Name, path, err)
	}
	return nil
}

// stop ends the peer.
func (r *runner) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(r.process.Stop(ctx), os.RemoveAll(r.dir))
}

// stopAll ends peers, all at the same time.
func stopAll(ctx context.Context, runners []*runner) error {
	errs := make(chan error, len(runners))
	for _, r := range runners {
		go func() { errs <- r.stop(ctx) }()
	}
	var all []error
	for range runners {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}
