package lab

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// EndWithParent ends this process when the Go command or the make that runs it ends, until stop is called. Somebody who kills
// `go test`, `go run` or `make` means what runs below it, but a signal like SIGKILL reaches only the one process. Outside of
// Linux, and when this process was started in another way, it does nothing.
func EndWithParent() (stop func()) {
	var watched []int
	for pid := os.Getppid(); len(watched) < 4; {
		name, parent := processStatus(pid)
		if !slices.Contains([]string{"go", "make"}, name) {
			break
		}
		watched = append(watched, pid)
		pid = parent
	}
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			for _, pid := range watched {
				if name, _ := processStatus(pid); name != "go" && name != "make" {
					fmt.Fprintf(os.Stderr, "the process that ran this one (%d) is gone: ending\n", pid)
					os.Exit(1)
				}
			}
		}
	}()
	return sync.OnceFunc(func() { close(done) })
}

// processStatus reads the name and the parent of a process; the name is "" when it is gone or a zombie.
func processStatus(pid int) (name string, parent int) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0
	}
	// pid (name) state parent …; the name may hold anything, also parentheses.
	s := string(b)
	open, end := strings.IndexByte(s, '('), strings.LastIndexByte(s, ')')
	fields := strings.Fields(s[end+1:])
	if len(fields) < 2 || fields[0] == "Z" {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return s[open+1 : end], parent
}
