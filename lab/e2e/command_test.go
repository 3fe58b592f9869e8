package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/changeover-dev/changeover/lab"
)

// report is what -o json prints, as far as tests read it. It is written down anew here, because scripts rely on the names.
type report struct {
	Outcome string `json:"outcome"`
	Phases  []struct {
		Name    string `json:"name"`
		Outcome string `json:"outcome"`
	} `json:"phases"`
	CRDs []struct {
		Name   string   `json:"name"`
		Action string   `json:"action"`
		Stops  []string `json:"stops"`
	} `json:"crds"`
	Controllers []struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		Replicas  int32  `json:"replicas"`
		Held      bool   `json:"held"`
	} `json:"controllers"`
	APIServers []string `json:"apiServers"`
	Verify     *struct {
		Objects   int `json:"objects"`
		Versions  int `json:"versions"`
		Untrimmed []struct {
			CRD      string   `json:"crd"`
			Versions []string `json:"versions"`
		} `json:"untrimmed"`
	} `json:"verify"`
	Error *struct {
		Phase    string   `json:"phase"`
		Message  string   `json:"message"`
		Hints    []string `json:"hints"`
		ExitCode int      `json:"exitCode"`
	} `json:"error"`
}

// phases of a whole changeover, in order.
const phases = "read plan preflight quiesce apply converge resume verify"

// went gives the phases with one outcome, in order.
func (r report) went(outcome string) string {
	var names []string
	for _, p := range r.Phases {
		if p.Outcome == outcome {
			names = append(names, p.Name)
		}
	}
	return strings.Join(names, " ")
}

// running is the command while it runs, and after.
type running struct {
	*lab.Process
	stdout, stderr buffer
}

// start starts the command: a verb, JSON as output, and further arguments.
func (p *plane) start(t testing.TB, args ...string) *running {
	t.Helper()
	r := &running{}
	var err error
	r.Process, err = p.Process(lab.Command{
		Name: "kubectl-changeover", Path: p.program, Stdout: &r.stdout, Stderr: &r.stderr,
		Args: slices.Concat([]string{"upgrade", "-o", "json"}, args),
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// run starts the command and waits for its end.
func (p *plane) run(t testing.TB, args ...string) ended {
	t.Helper()
	return p.start(t, args...).wait(t)
}

// awaitLine waits until the command has said something on stderr. A command that ends without saying so fails the test.
func (r *running) awaitLine(t testing.TB, text string) {
	t.Helper()
	await(t, "the command says "+text, func(context.Context) (string, bool) {
		ended := false
		select {
		case <-r.Done():
			ended = true
		default:
		}
		said := r.stderr.String()
		return said, ended || strings.Contains(said, text)
	})
	if said := r.stderr.String(); !strings.Contains(said, text) {
		t.Fatalf("the command has ended without saying %q:\n%s", text, said)
	}
}

// ended is the command after its end.
type ended struct {
	exit           int
	report         report
	stdout, stderr string
}

func (r *running) wait(t testing.TB) ended {
	t.Helper()
	select {
	case <-r.Done():
	case <-time.After(limit):
		r.Kill()
		t.Fatalf("the command does not end; it said:\n%s", r.stderr.String())
	}
	e := ended{exit: exitCode(r.Wait()), stdout: r.stdout.String(), stderr: r.stderr.String()}
	if e.stdout == "" {
		return e
	}
	if err := json.Unmarshal([]byte(e.stdout), &e.report); err != nil {
		t.Fatalf("stdout is no JSON: %v\n%s", err, e.stdout)
	}
	switch failure := e.report.Error; {
	case (failure != nil) != (e.exit != 0):
		t.Errorf("exit code %d, and in JSON the error %+v", e.exit, failure)
	case failure != nil && failure.ExitCode != e.exit:
		t.Errorf("exit code %d, in JSON %d", e.exit, failure.ExitCode)
	}
	return e
}

// exitCode of a process that ended; -1 for one that a signal ended.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := err.(interface{ ExitCode() int }); ok {
		return e.ExitCode()
	}
	return -1
}

// wantExit demands an exit code, and on stderr each of the texts.
func (e ended) wantExit(t testing.TB, code int, texts ...string) {
	t.Helper()
	if e.exit != code {
		t.Fatalf("exit code %d, want %d; stderr:\n%s", e.exit, code, e.stderr)
	}
	for _, text := range texts {
		if !strings.Contains(e.stderr, text) {
			t.Errorf("stderr does not say %q:\n%s", text, e.stderr)
		}
	}
}

// wantFailedIn demands the phase that a run ended in.
func (e ended) wantFailedIn(t testing.TB, phase string) {
	t.Helper()
	if e.report.Error == nil || e.report.Error.Phase != phase {
		t.Errorf("error in JSON %+v; want phase %s", e.report.Error, phase)
	}
}

// buffer collects what a process prints, while others read it.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
