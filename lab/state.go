package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A state folder belongs to the process that holds the lock file in it. The kernel drops the lock when that process ends,
// in whatever way, and so a folder whose lock is free has been left behind.
type state struct {
	dir  string
	lock *os.File
}

// stateRoot is the folder of all labs of this user.
func stateRoot() string {
	return filepath.Join(os.TempDir(), "changeover-lab-"+strconv.Itoa(os.Getuid()))
}

// newState removes what dead labs left behind, then makes a folder for a new one.
func newState() (*state, error) {
	root := stateRoot()
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, err
	}
	// Creating a folder and locking it are two steps; the lock on the root keeps sweepers out in between.
	rootLock, err := lockFile(filepath.Join(root, "lock"), true)
	if err != nil {
		return nil, err
	}
	defer rootLock.Close()
	if err := sweep(root); err != nil {
		return nil, fmt.Errorf("removing what an earlier lab left in %s: %w", root, err)
	}
	dir, err := os.MkdirTemp(root, "lab-")
	if err != nil {
		return nil, err
	}
	lock, err := lockFile(filepath.Join(dir, "lock"), false)
	if err != nil {
		return nil, err
	}
	return &state{dir: dir, lock: lock}, nil
}

func (s *state) remove() error {
	err := os.RemoveAll(s.dir)
	s.lock.Close()
	return err
}

// lockFile takes the exclusive lock on path; it is held until the file is closed or the process ends.
func lockFile(path string, wait bool) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		err = syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// sweep ends the processes and removes the folders of labs whose owner is gone.
func sweep(root string) error {
	dirs, err := filepath.Glob(filepath.Join(root, "lab-*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		lock, err := lockFile(filepath.Join(dir, "lock"), false)
		if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, fs.ErrNotExist) {
			continue // in use, or removed this moment
		}
		if err != nil {
			return err
		}
		endLeftovers(dir)
		err = os.RemoveAll(dir)
		lock.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// recordPID notes a child for a later sweep.
func recordPID(dir string, pid int) {
	f, err := os.OpenFile(filepath.Join(dir, "pids"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return // the lifeline remains
	}
	defer f.Close()
	fmt.Fprintln(f, pid)
}

// endLeftovers kills those of the recorded processes that still belong to the lab in dir, and waits until they are gone. Process ids are
// used again, so a process is only taken for ours when its environment names dir.
func endLeftovers(dir string) {
	b, err := os.ReadFile(filepath.Join(dir, "pids"))
	if err != nil {
		return
	}
	for _, field := range strings.Fields(string(b)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			continue
		}
		for deadline := time.Now().Add(5 * time.Second); belongsTo(pid, dir) && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
	}
}

func belongsTo(pid int, dir string) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && strings.Contains(string(env), "LAB_DIR="+dir+"\x00")
}
