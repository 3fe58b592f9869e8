package demo

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// narrator writes the story. Its methods are safe for concurrent use.
type narrator struct {
	mu    sync.Mutex
	out   io.Writer
	begin time.Time
}

func (n *narrator) print(s string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	fmt.Fprint(n.out, s)
}

func (n *narrator) title(i, of int, title string) {
	n.print(fmt.Sprintf("\n[%d/%d] %s   (%s)\n\n", i, of, title, time.Since(n.begin).Round(time.Second)))
}

// say writes a paragraph.
func (n *narrator) say(text string) {
	n.print("  " + strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  "), "\n  \n", "\n\n") + "\n\n")
}

// line writes one line of facts.
func (n *narrator) line(format string, args ...any) { n.print(fmt.Sprintf("  "+format+"\n", args...)) }

// quote returns a writer for what somebody else prints: each line is marked, and written when it is complete.
func (n *narrator) quote() io.Writer { return &quoter{narrator: n} }

type quoter struct {
	narrator *narrator
	mu       sync.Mutex
	rest     []byte
}

func (q *quoter) Write(p []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.rest = append(q.rest, p...)
	for {
		i := bytes.IndexByte(q.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		q.narrator.print("  | " + string(q.rest[:i+1]))
		q.rest = q.rest[i+1:]
	}
}
