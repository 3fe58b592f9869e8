package node

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// patience bounds every wait of these tests.
const patience = 60 * time.Second

// A switchboard takes the calls of the programs in Pods.
type switchboard struct {
	t     *testing.T
	l     net.Listener
	calls chan *call
}

// A call is one program that runs.
type call struct {
	name, pid, port, uid, kubeconfig string
	conn                             net.Conn
	answers                          chan string // closed when the program has ended
}

func newSwitchboard(t *testing.T) *switchboard {
	t.Helper()
	l, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := &switchboard{t: t, l: l, calls: make(chan *call, 100)}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.take(conn)
		}
	}()
	return s
}

func (s *switchboard) addr() string { return s.l.Addr().String() }

func (s *switchboard) take(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	if !lines.Scan() {
		return
	}
	c := &call{conn: conn, answers: make(chan string, 10)}
	defer close(c.answers)
	for i, field := range strings.Split(lines.Text(), " ") {
		*[]*string{&c.name, &c.pid, &c.port, &c.uid, &c.kubeconfig}[i] = field
	}
	s.calls <- c
	for lines.Scan() {
		c.answers <- lines.Text()
	}
}

// await returns the next program that starts.
func (s *switchboard) await() *call {
	s.t.Helper()
	select {
	case c := <-s.calls:
		return c
	case <-time.After(patience):
		s.t.Fatalf("no program has started within %s", patience)
		return nil
	}
}

// order tells the program to do something and waits until it has.
func (c *call) order(t *testing.T, order string) {
	t.Helper()
	fmt.Fprintln(c.conn, order)
	select {
	case answer, ok := <-c.answers:
		if !ok || answer != "ok" {
			t.Fatalf("program %s: %s: answered %q", c.name, order, answer)
		}
	case <-time.After(patience):
		t.Fatalf("program %s: %s: no answer within %s", c.name, order, patience)
	}
}

// exit tells the program to end with a code, and does not wait.
func (c *call) exit(code int) { fmt.Fprintln(c.conn, "exit", code) }

// mustBeDead fails the test when the program's process group, if it leads one, has a living member: nothing is waited for.
func (c *call) mustBeDead(t *testing.T) {
	t.Helper()
	pid, err := strconv.Atoi(c.pid)
	if err != nil || pid <= 1 {
		t.Fatalf("program %s has process id %q", c.name, c.pid)
	}
	if groupAlive(pid) {
		t.Errorf("process group %d of program %s lives, and its Pod is gone", pid, c.name)
	}
}

// awaitEnd waits until the program has ended.
func (c *call) awaitEnd(t *testing.T) {
	t.Helper()
	select {
	case <-c.answers:
	case <-time.After(patience):
		t.Fatalf("program %s, process %s, still runs after %s", c.name, c.pid, patience)
	}
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
