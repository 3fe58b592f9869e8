package node

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

func startPodProgram(t *testing.T) (*switchboard, *spawner, *process, *call) {
	t.Helper()
	board := newSwitchboard(t)
	s, err := newSpawner()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	cmd := exec.Command(self(t))
	cmd.Env = append(os.Environ(), "NODE_TEST_PART=pod", "NODE_TEST_NAME=main", "NODE_TEST_SWITCHBOARD="+board.addr())
	p, err := s.start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return board, s, p, board.await()
}

func awaitDone(t *testing.T, p *process) {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		t.Fatalf("process %d has not ended within %s", p.pid(), patience)
	}
}

// TestGroupEndsWithLeader: what a container's main process leaves behind ends with it, as in a container.
func TestGroupEndsWithLeader(t *testing.T) {
	board, _, p, program := startPodProgram(t)
	program.order(t, "child")
	child := board.await()
	program.exit(3)
	awaitDone(t, p)
	if code := p.exitCode(); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	child.awaitEnd(t)
}

func TestStopAsksFirst(t *testing.T) {
	_, _, p, _ := startPodProgram(t)
	p.stop(time.Hour)
	awaitDone(t, p)
	if code := p.exitCode(); code != 128+15 {
		t.Errorf("exit code %d, want 143: ended by SIGTERM", code)
	}
}

// TestStopKillsTheStubborn: a second stop shortens the grace of the first, as a second, forced deletion of a Pod does.
func TestStopKillsTheStubborn(t *testing.T) {
	_, _, p, program := startPodProgram(t)
	program.order(t, "stubborn")
	p.stop(time.Hour)
	program.order(t, "ready true") // it has seen SIGTERM, or will, and lives
	p.stop(time.Millisecond)
	awaitDone(t, p)
	if code := p.exitCode(); code != 128+9 {
		t.Errorf("exit code %d, want 137: ended by SIGKILL", code)
	}
}

// TestNothingOutlivesTheHost: SIGKILL gives the host no chance to clean up. The kernel ends its children, the warden what those started.
func TestNothingOutlivesTheHost(t *testing.T) {
	board := newSwitchboard(t)
	host := exec.Command(self(t))
	host.Env = append(os.Environ(), "NODE_TEST_PART=spawner", "NODE_TEST_SWITCHBOARD="+board.addr())
	host.Stderr = os.Stderr
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		host.Process.Kill()
		host.Wait()
	})
	program := board.await()
	program.order(t, "stubborn")
	program.order(t, "child")
	child := board.await()
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	program.awaitEnd(t)
	child.awaitEnd(t)
}

// TestSpawnerCloseEndsAll: a spawner that is closed leaves nothing, even what it was not asked to stop.
func TestSpawnerCloseEndsAll(t *testing.T) {
	board := newSwitchboard(t)
	s, err := newSpawner()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self(t))
	cmd.Env = append(os.Environ(), "NODE_TEST_PART=pod", "NODE_TEST_NAME=main", "NODE_TEST_SWITCHBOARD="+board.addr())
	p, err := s.start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	program := board.await()
	s.close()
	awaitDone(t, p)
	program.awaitEnd(t)
}
