package crds

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// scratchPrefix begins the names of our temporary folders; the owner's process ID and a dash follow, then what makes it unique.
const scratchPrefix = "changeover-crds-"

// newScratch makes a temporary folder that the caller removes, and removes those whose owners were killed before they could.
func newScratch() (string, error) {
	sweepScratch()
	return os.MkdirTemp("", fmt.Sprintf("%s%d-", scratchPrefix, os.Getpid()))
}

// sweepScratch is best effort: what it cannot read or remove, the next one may.
func sweepScratch() {
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		return
	}
	for _, entry := range entries {
		rest, ours := strings.CutPrefix(entry.Name(), scratchPrefix)
		owner, _, named := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(owner)
		if ours && named && err == nil && pid > 0 && !alive(pid) {
			os.RemoveAll(filepath.Join(os.TempDir(), entry.Name()))
		}
	}
}

// alive takes a process that we may not signal for one that lives.
func alive(pid int) bool {
	process, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	err = process.Signal(syscall.Signal(0))
	return !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH)
}
