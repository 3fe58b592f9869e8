package crds

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// download returns the folder of a module in the module cache, which is read-only and shared with everybody.
func download(ctx context.Context, module, version string) (string, error) {
	if module == "" || version == "" {
		return "", errors.New("crds: a source needs a module and a version")
	}
	// The go command needs a module to stand in, and must not touch the one that we are part of.
	tmp, err := newScratch()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	goMod := []byte("module throwaway\n\ngo 1.22\n")
	if err := os.WriteFile(filepath.Join(tmp, "go.mod"), goMod, 0o600); err != nil {
		return "", err
	}

	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module+"@"+version)
	cmd.Dir = tmp
	// The last flag wins: a caller's -mod=vendor or workspace says nothing about the throw-away module.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -mod=mod"))
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = 5 * time.Second
	runErr := cmd.Run()
	if ctx.Err() != nil {
		return "", fmt.Errorf("module %s@%s: %w", module, version, context.Cause(ctx))
	}

	// The go command says on standard output what was wrong with the module, and fails as well.
	var answer struct{ Dir, Error string }
	if err := json.Unmarshal(stdout.Bytes(), &answer); err != nil {
		if runErr != nil {
			return "", fmt.Errorf("module %s@%s: go mod download: %w: %s", module, version, runErr, strings.TrimSpace(stderr.String()))
		}
		return "", fmt.Errorf("module %s@%s: go mod download: %w", module, version, err)
	}
	if answer.Error != "" {
		return "", fmt.Errorf("module %s@%s: %s", module, version, answer.Error)
	}
	if runErr != nil {
		return "", fmt.Errorf("module %s@%s: go mod download: %w", module, version, runErr)
	}
	return answer.Dir, nil
}
