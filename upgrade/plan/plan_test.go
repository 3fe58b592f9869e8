package plan_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/changeover-dev/changeover/upgrade/crd"
	"github.com/changeover-dev/changeover/upgrade/manifest"
	"github.com/changeover-dev/changeover/upgrade/plan"
)

// Each file of testdata is one case: prose that says why it matters, live.yaml (none: nothing on the cluster), wanted.yaml,
// and the plan or refusal in words.
func TestMake(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(strings.TrimSpace(string(archive.Comment))) == 0 {
				t.Error("the case does not say why it matters")
			}
			parts := map[string]string{}
			for _, f := range archive.Files {
				parts[f.Name] = string(f.Data)
			}
			live := map[string]*crd.Definition{}
			if parts["live.yaml"] != "" {
				for _, d := range read(t, parts["live.yaml"], "live.yaml") {
					live[d.Name()] = d
				}
			}
			got := inWords(plan.Make(read(t, parts["wanted.yaml"], "wanted.yaml"), live))
			if got != parts["want"] {
				t.Errorf("got:\n%s\nwant:\n%s", got, parts["want"])
			}
		})
	}
}

func read(t *testing.T, content, name string) []*crd.Definition {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Read([]string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range m.CRDs {
		d.Source = strings.TrimPrefix(d.Source, filepath.Dir(path)+"/")
	}
	return m.CRDs
}

func inWords(p *plan.Plan, err error) string {
	var b strings.Builder
	var refusal *plan.Refusal
	if errors.As(err, &refusal) {
		for _, f := range refusal.Findings {
			fmt.Fprintf(&b, "refused: crd %s (%s)\n  reason: %s\n  way out: %s\n", f.CRD, f.Source, f.Reason, f.WayOut)
		}
		return b.String()
	}
	if err != nil {
		return err.Error() + "\n"
	}
	for _, c := range p.Changes {
		fmt.Fprintf(&b, "%s %s: serves %v", c.Action, c.Name, c.Served)
		for _, part := range []struct {
			what string
			list []string
		}{{"starts", c.Starts}, {"stops", c.Stops}, {"removed", c.Removed}, {"untrimmed", c.Untrimmed}} {
			if len(part.list) > 0 {
				fmt.Fprintf(&b, ", %s %v", part.what, part.list)
			}
		}
		fmt.Fprintf(&b, ", storage %q to %q", c.StorageBefore, c.StorageAfter)
		if c.Conversion != "" {
			fmt.Fprintf(&b, ", conversion %s", c.Conversion)
		}
		b.WriteString("\n")
	}
	return b.String()
}
