package layout

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A ban says that the packages below `in` do not import what lies below `what`, and why. Folders are relative to the repository's
// root; a package below one of `but` is exempt. Imports run downward only:
//
//	cmd -> internal/cli -> upgrade -> discovery        ctrlruntime -> guard -> restmapper -> discovery
type ban struct {
	in    string
	but   []string
	what  []string
	why   string
	tests bool // holds for test files, too
}

var own = func(dir string) string { return modulePath + "/" + dir }

func bans() []ban {
	return []ban{
		{in: "", but: []string{"lab/cmd/controlplane", "lab/kubernetes-1.34"}, tests: true,
			what: []string{"k8s.io/kubernetes", "go.etcd.io/etcd/server"},
			why:  "only the control plane's binary links Kubernetes; everything else must build in seconds"},
		{in: "discovery", tests: true, what: []string{own("restmapper"), own("guard"), own("ctrlruntime"), own("upgrade"), own("lab")},
			why: "discovery is the bottom: the mapper and the engine both stand on it"},
		{in: "restmapper", tests: true, what: []string{own("guard"), own("ctrlruntime"), own("upgrade"), own("lab")},
			why: "imports run downward only"},
		{in: "upgrade", tests: true, what: []string{own("lab"), own("restmapper"), own("guard"), own("ctrlruntime")},
			why: "the engine needs to know what is served, not a mapper; and users of the command must not download a control plane"},
		{in: "upgrade", but: []string{"upgrade/internal/cli", "upgrade/cmd"}, what: []string{own("upgrade/internal/cli"), "github.com/spf13/cobra", "github.com/spf13/pflag"},
			why: "the engine is a library: only the command knows of flags"},
		{in: "upgrade/cmd", what: []string{own("discovery"), "k8s.io"}, why: "main is a few lines: a verb parses flags and calls the engine"},
		{in: "discovery", what: heavy(), why: "whoever adopts the library pays for its dependencies"},
		{in: "restmapper", what: heavy(), why: "whoever adopts the library pays for its dependencies"},
		{in: "upgrade", what: []string{"k8s.io/klog"}, why: "the library and the engine log through what their callers pass in"},
	}
}

func heavy() []string {
	return []string{"sigs.k8s.io/controller-runtime", "github.com/prometheus", "k8s.io/apiextensions-apiserver", "k8s.io/klog", "github.com/go-logr"}
}

func below(pkg, dir string) bool { return dir == "" || pkg == dir || strings.HasPrefix(pkg, dir+"/") }

func TestImportsRunDownward(t *testing.T) {
	files := parseAll(t)
	for _, b := range bans() {
		seen := 0
		for _, f := range files {
			dir := strings.TrimPrefix(strings.TrimPrefix(f.pkg, modulePath), "/")
			if !below(dir, b.in) || f.test && !b.tests || slices.ContainsFunc(b.but, func(but string) bool { return below(dir, but) }) {
				continue
			}
			seen++
			for _, imported := range f.imports {
				for _, what := range b.what {
					if below(imported, what) {
						t.Errorf("%s imports %s: %s", f.path, imported, b.why)
					}
				}
			}
		}
		if seen == 0 {
			t.Errorf("the ban on %v in %q looks at no file: does the folder still exist?", b.what, b.in)
		}
	}
}

// TestLibraryStaysLight looks at everything that a user of the library links, not only at what the library imports itself.
func TestLibraryStaysLight(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "./discovery/...", "./restmapper/...")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, own("discovery")) {
		t.Fatalf("go list did not list the library itself: %s", out)
	}
	banned := []string{"sigs.k8s.io/controller-runtime", "github.com/prometheus", "k8s.io/apiextensions-apiserver", "k8s.io/apiserver", "k8s.io/client-go/informers", "k8s.io/client-go/kubernetes"}
	for _, dep := range deps {
		for _, b := range banned {
			if below(dep, b) {
				t.Errorf("the library links %s: whoever adopts it pays for that", dep)
			}
		}
	}
}
