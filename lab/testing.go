package lab

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// ForTest starts a lab that ends with the test. It fails the test when a process of the lab panicked or reported a data race, and when the test
// has failed it logs the end of each process's log. It allows 10 minutes for a start with a cold build cache.
//
// Where o leaves the Kubernetes release open, the environment variable LAB_KUBERNETES chooses it: one suite runs on every release.
func ForTest(t testing.TB, o Options) *Cluster {
	t.Helper()
	if o.Log == nil {
		o.Log = t.Output()
	}
	if o.Kubernetes == "" {
		o.Kubernetes = os.Getenv("LAB_KUBERNETES")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	stopWatching := EndWithParent()
	c, err := Start(ctx, o)
	if err != nil {
		stopWatching()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer stopWatching()
		c.report(t)
		if err := c.Stop(); err != nil {
			t.Errorf("stopping the lab: %v", err)
		}
	})
	return c
}

// report scans the logs for crashes, and shows their ends when the test has failed.
func (c *Cluster) report(t testing.TB) {
	logs, err := filepath.Glob(filepath.Join(c.Dir(), "logs", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Errorf("the lab in %s has no logs to scan: %v", c.Dir(), err)
	}
	for _, log := range logs {
		lines, err := crashes(log)
		if err != nil {
			t.Errorf("scanning %s: %v", log, err)
		}
		for _, line := range lines {
			t.Errorf("%s: %s", filepath.Base(log), line)
		}
	}
	if !t.Failed() {
		return
	}
	for _, log := range logs {
		p := Process{log: log}
		t.Logf("the end of %s:\n%s", filepath.Base(log), p.Tail(15))
	}
}
