package lab

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// program is something that Build can build: a main package, in the module at dir (relative to the lab's), with linker flags. Pinned says
// that it imports nothing of the repository but its own folder; the module's go.mod and go.sum pin all else.
type program struct {
	dir, pkg, ldflags string
	pinned            bool
}

// lookupProgram resolves a name that Build takes.
func lookupProgram(name string) (program, error) {
	if minor, ok := strings.CutPrefix(name, "controlplane-"); ok {
		if r, ok := releases[minor]; ok {
			// The upstream programs learn their version from the linker; without it they report v0.0.0.
			return program{r.dir, r.pkg, "-s -w -X k8s.io/component-base/version.gitVersion=" + r.version, true}, nil
		}
	}
	if peer, ok := strings.CutPrefix(name, "peer-"); ok {
		return program{dir: "peers/" + peer, pkg: "."}, nil
	}
	if name == "kubectl-changeover" {
		return program{dir: "../upgrade", pkg: "./cmd/kubectl-changeover"}, nil
	}
	return program{}, fmt.Errorf("program %q: the lab builds controlplane-RELEASE, peer-NAME and kubectl-changeover", name)
}

// Build builds a program into the repository's .build folder, unless it is up to date there, and returns its path. Names are
// "controlplane-1.37", "controlplane-1.34", "kubectl-changeover", and "peer-" with a folder of lab/peers, such as
// "peer-controller-runtime-v0.16.3". Log gets what the Go command prints; a first build of a control plane takes minutes. Concurrent builds, also by
// other processes, take turns.
func Build(ctx context.Context, name string, log io.Writer) (string, error) {
	p, err := lookupProgram(name)
	if err != nil {
		return "", err
	}
	root, err := moduleDir(ctx)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, p.dir)
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		return "", fmt.Errorf("program %q: %w", name, err)
	}
	target := filepath.Join(root, "..", ".build", name)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return "", err
	}
	lock, err := lockFile(target+".lock", true)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if !p.pinned {
		return target, p.build(ctx, dir, name, target, log)
	}
	// Asking the Go command whether a control plane is up to date takes seconds, for every lab that starts. What it is made of says so at once.
	inputs, err := p.inputs(dir)
	if err != nil {
		return "", err
	}
	if built, err := os.ReadFile(target + ".inputs"); err == nil && string(built) == inputs {
		if _, err := os.Stat(target); err == nil {
			return target, nil
		}
	}
	if err := p.build(ctx, dir, name, target, log); err != nil {
		return "", err
	}
	return target, os.WriteFile(target+".inputs", []byte(inputs), 0o644)
}

// build runs the Go command.
func (p program) build(ctx context.Context, dir, name, target string, log io.Writer) error {
	begin := time.Now()
	if _, err := os.Stat(target); err != nil {
		fmt.Fprintf(log, "building %s for the first time\n", name)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags", p.ldflags, "-o", target, p.pkg)
	cmd.Dir = dir
	// A build that is killed leaves its temporary folder; here the next build of the same program finds and removes it.
	tmp := target + ".tmp"
	if err := errors.Join(os.RemoveAll(tmp), os.Mkdir(tmp, 0o755)); err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOTMPDIR="+tmp)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	n := newNursery()
	defer n.close()
	if err := n.start(cmd); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", name, err, out.String())
	}
	if took := time.Since(begin); took > 5*time.Second {
		fmt.Fprintf(log, "built %s in %s\n", name, took.Round(time.Second))
	}
	return nil
}

// inputs is a digest of what a pinned program is built from: its source, its modules, the flags and the compiler.
func (p program) inputs(dir string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, p.ldflags, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	sources, err := filepath.Glob(filepath.Join(dir, p.pkg, "*.go"))
	if err != nil {
		return "", err
	}
	for _, file := range append(sources, filepath.Join(dir, "go.mod"), filepath.Join(dir, "go.sum")) {
		b, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", filepath.Base(file), len(b), b)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// moduleDir finds the lab's module on disk: this source belongs to it, so the Go command knows where it is.
func moduleDir(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/changeover-dev/changeover/lab")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("the lab's module: run this from a folder of the repository's lab: %w: %s", err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}
