package lab

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestCrashesAreFound(t *testing.T) {
	log := filepath.Join(t.TempDir(), "x.log")
	text := `I1201 all is well, no panic: here
panic: runtime error: index out of range
E1201 "Observed a panic" panic="net/http: abort Handler"
E1201 "Observed a panic" panic="nil map"
WARNING: DATA RACE
fatal error: all goroutines are asleep`
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := crashes(log)
	want := []string{
		"panic: runtime error: index out of range",
		`E1201 "Observed a panic" panic="nil map"`,
		"WARNING: DATA RACE",
		"fatal error: all goroutines are asleep",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestProcessStatus(t *testing.T) {
	name, parent := processStatus(os.Getpid())
	if name == "" || parent != os.Getppid() {
		t.Errorf("this process: %q with parent %d; want parent %d", name, parent, os.Getppid())
	}
	if name, _ := processStatus(1 << 30); name != "" {
		t.Errorf("a process that does not exist has the name %q", name)
	}
}
