package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// Named is the record of a lab that runs in a process of its own, for other processes of the same user to find it.
type Named struct {
	Name       string   `json:"name"`
	PID        int      `json:"pid"`
	Kubernetes string   `json:"kubernetes"`
	Kubeconfig string   `json:"kubeconfig"`
	Servers    []string `json:"servers"` // URLs
	Dir        string   `json:"dir"`
}

// ErrNotRunning says that no lab of the name runs.
var ErrNotRunning = errors.New("no such lab runs")

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,30}$`)

func namedFiles(name string) (record, lock string, err error) {
	if !nameForm.MatchString(name) {
		return "", "", fmt.Errorf("lab name %q: want lower-case letters, digits and dashes, at most 31", name)
	}
	dir := filepath.Join(stateRoot(), "named")
	return filepath.Join(dir, name+".json"), filepath.Join(dir, name+".lock"), os.MkdirAll(dir, 0o700)
}

// Claim takes a name for this process, before a lab is started under it. The name is free again when release is called or this process ends.
func Claim(name string) (release func(), err error) {
	record, lockPath, err := namedFiles(name)
	if err != nil {
		return nil, err
	}
	lock, err := lockFile(lockPath, false)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("lab %q: runs already", name)
	}
	if err != nil {
		return nil, err
	}
	os.Remove(record) // of an owner that died
	return func() { os.Remove(record); lock.Close() }, nil
}

// NamedLog makes the file, empty, that takes what the process of a named lab prints. The next lab of that name gets the same file.
func NamedLog(name string) (*os.File, error) {
	record, _, err := namedFiles(name)
	if err != nil {
		return nil, err
	}
	return os.Create(strings.TrimSuffix(record, ".json") + ".log")
}

// Publish makes c known under a name that this process has claimed.
func (c *Cluster) Publish(name string) error {
	record, _, err := namedFiles(name)
	if err != nil {
		return err
	}
	n := Named{Name: name, PID: os.Getpid(), Kubernetes: c.Kubernetes(), Kubeconfig: c.Kubeconfig(), Dir: c.Dir()}
	for _, s := range c.servers {
		n.Servers = append(n.Servers, s.URL())
	}
	b, err := json.MarshalIndent(n, "", "  ")
	if err != nil {
		return err
	}
	// Readers must never see half a record.
	if err := os.WriteFile(record+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(record+".new", record)
}

// Lookup finds the lab that runs under a name. The error is ErrNotRunning when there is none, or when its process is gone.
func Lookup(name string) (*Named, error) {
	record, lockPath, err := namedFiles(name)
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(record)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("lab %q: %w", name, ErrNotRunning)
	}
	if err != nil {
		return nil, err
	}
	if lock, err := lockFile(lockPath, false); err == nil { // nobody holds it: the owner died
		lock.Close()
		return nil, fmt.Errorf("lab %q: %w", name, ErrNotRunning)
	}
	n := new(Named)
	if err := json.Unmarshal(b, n); err != nil {
		return nil, fmt.Errorf("%s: %w", record, err)
	}
	return n, nil
}

// Down asks the lab's process to stop it, and waits until that has happened.
func (n *Named) Down(ctx context.Context) error {
	if err := syscall.Kill(n.PID, syscall.SIGTERM); err != nil {
		return fmt.Errorf("lab %q, process %d: %w", n.Name, n.PID, err)
	}
	return Await(ctx, fmt.Sprintf("lab %q stopped", n.Name), func(context.Context) (string, bool) {
		_, err := Lookup(n.Name)
		_, statErr := os.Stat(n.Dir)
		gone := errors.Is(err, ErrNotRunning) && errors.Is(statErr, fs.ErrNotExist)
		return fmt.Sprintf("record: %v, folder: %v", err, statErr), gone
	})
}
