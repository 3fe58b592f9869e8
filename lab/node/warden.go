package node

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
)

// wardenScript reads "+ GROUP" and "- GROUP" from its input. The input ends when the agent's process does, in whatever way; then it kills the groups
// that are left. It ignores the signals of a terminal and of an orderly end, because it has to outlive the agent by a moment.
const wardenScript = `trap '' HUP INT TERM
groups=
while read -r op group; do
	case $op in
	+) groups="$groups $group" ;;
	-)
		rest=
		for g in $groups; do
			[ "$g" = "$group" ] || rest="$rest $g"
		done
		groups=$rest
		;;
	esac
done
for g in $groups; do
	kill -s KILL -- "-$g" 2>/dev/null
done
`

// A warden is a shell that kills process groups when this process has ended. The kernel's own help (Linux) reaches only the children, not what
// they started in turn. Its methods are safe for concurrent use.
type warden struct {
	cmd *exec.Cmd

	mu    sync.Mutex
	input io.WriteCloser
}

func newWarden() (*warden, error) {
	w := &warden{cmd: exec.Command("/bin/sh", "-c", wardenScript)}
	w.cmd.SysProcAttr = wardenAttributes()
	w.cmd.Env = []string{}
	w.cmd.Dir = "/" // it keeps no folder busy
	var err error
	if w.input, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the watcher of process groups: %w", err)
	}
	return w, nil
}

func (w *warden) watch(pgid int)  { w.tell("+", pgid) }
func (w *warden) forget(pgid int) { w.tell("-", pgid) }

// tell ignores errors: a warden that was killed is worse protection, not a reason to stop what runs.
func (w *warden) tell(op string, pgid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = fmt.Fprintf(w.input, "%s %d\n", op, pgid)
}

// close lets the warden end, which kills the groups it still watches, and waits for that.
func (w *warden) close() {
	w.mu.Lock()
	w.input.Close()
	w.mu.Unlock()
	_ = w.cmd.Wait() // how it ended tells nothing
}
