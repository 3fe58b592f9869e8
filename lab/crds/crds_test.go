package crds_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/changeover-dev/changeover/lab/crds"
)

func moduleCache(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// serveModule makes a GOPROXY in a folder that serves one module, with the given files in it, and a module cache of its own.
func serveModule(t *testing.T, module, version string, files map[string]string) {
	t.Helper()
	root := t.TempDir()
	versions := filepath.Join(root, module, "@v")
	goMod := "module " + module + "\n"
	write(t, filepath.Join(versions, version+".info"), `{"Version":"`+version+`"}`)
	write(t, filepath.Join(versions, version+".mod"), goMod)
	write(t, filepath.Join(versions, version+".zip"), zipModule(t, module+"@"+version, files))
	t.Setenv("GOPROXY", "file://"+filepath.ToSlash(root))
	t.Setenv("GONOSUMDB", "*")
	t.Setenv("GOFLAGS", "-modcacherw") // so that the test's folder can be removed
	t.Setenv("GOMODCACHE", filepath.Join(t.TempDir(), "cache [1]"))
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

const widget = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.com
  labels: {keep: mine, tier: file}
spec:
  group: example.com
`

// widgets is a module with folders that are right and folders that are wrong.
func widgets() map[string]string {
	return map[string]string{
		"good/b.yaml":                   strings.ReplaceAll(widget, "widgets", "others"),
		"good/a.yml":                    "# a comment alone\n---" + widget + "---" + strings.ReplaceAll(widget, "widgets", "gadgets"),
		"good/README.md":                "no YAML",
		"kustom/kustomization.yaml":     "commonLabels: {tier: common, from: common}\nlabels:\n- pairs: {from: labels}\n",
		"unknown/a.yaml":                strings.Replace(widget, "  group:", "  colour: red\n  group:", 1),
		"service/a.yaml":                "apiVersion: v1\nkind: Service\nmetadata: {name: x}\n",
		"garbage/a.yaml":                "a: b: c\n",
		"empty/README.md":               "nothing",
		"badkustom/kustomization.yaml":  "commonLabels: [a list]\n",
		"badkustom/nested/ignored.yaml": "",
	}
}

func TestLoad(t *testing.T) {
	const module, version = "example.com/widgets", "v1.0.0"
	serveModule(t, module, version, widgets())

	t.Run("files", func(t *testing.T) {
		have, err := crds.Load(t.Context(), crds.Source{
			Module: module, Version: version, Dir: "good",
			Kustomizations: []string{"kustom"}, Labels: map[string]string{"on": "top"},
		})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, crd := range have {
			names = append(names, crd.Name)
		}
		if want := "widgets.example.com gadgets.example.com others.example.com"; strings.Join(names, " ") != want {
			t.Errorf("CRDs %v, want %s", names, want)
		}
		for name, want := range map[string]string{"keep": "mine", "tier": "common", "from": "labels", "on": "top"} {
			if have[0].Labels[name] != want {
				t.Errorf("label %s: %q, want %q", name, have[0].Labels[name], want)
			}
		}
	})

	for _, tt := range []struct{ name, dir, kustomization, want string }{
		{"unknown field", "unknown", "", `unknown/a.yaml: error unmarshaling JSON: while decoding JSON: json: unknown field "colour"`},
		{"another kind", "service", "", "service/a.yaml: v1 Service is no apiextensions.k8s.io/v1 CustomResourceDefinition"},
		{"no YAML", "garbage", "", "garbage/a.yaml: "},
		{"empty folder", "empty", "", "folder empty: no YAML files"},
		{"no folder", "nowhere", "", "folder nowhere: no YAML files"},
		{"outside", "../other", "", `folder "../other": not inside the module`},
		{"no kustomization", "good", "good", "kustomization.yaml: no such file"},
		{"bad kustomization", "good", "badkustom", "badkustom/kustomization.yaml: "},
		{"kustomization outside", "good", "/etc", `folder "/etc": not inside the module`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := crds.Source{Module: module, Version: version, Dir: tt.dir}
			if tt.kustomization != "" {
				s.Kustomizations = []string{tt.kustomization}
			}
			have, err := crds.Load(t.Context(), s)
			if err == nil {
				t.Fatalf("no error but %d CRDs, want error with %q", len(have), tt.want)
			}
			if !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "module example.com/widgets@v1.0.0: ") {
				t.Errorf("error %q, want the module and %q", err, tt.want)
			}
		})
	}

	t.Run("no version", func(t *testing.T) {
		_, err := crds.Load(t.Context(), crds.Source{Module: module, Version: "v9.9.9", Dir: "good"})
		if err == nil || !strings.Contains(err.Error(), "module example.com/widgets@v9.9.9: ") {
			t.Errorf("error %v, want one that names module and version", err)
		}
	})
	t.Run("zero source", func(t *testing.T) {
		if _, err := crds.Load(t.Context(), crds.Source{}); err == nil {
			t.Error("no error for a source without a module")
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := crds.Load(ctx, crds.Source{Module: module, Version: version, Dir: "good"})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want the context's", err)
		}
	})
}

// TestNothingLeft: whether it works or not, the temporary folder goes, and so do those of owners that were killed. A folder whose
// owner lives, and what is not ours, stays.
func TestNothingLeft(t *testing.T) {
	const module, version = "example.com/widgets", "v1.0.0"
	serveModule(t, module, version, map[string]string{"good/a.yaml": widget})
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	dead := exec.Command("go", "version")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	living := fmt.Sprintf("changeover-crds-%d-1", os.Getpid())
	for _, dir := range []string{fmt.Sprintf("changeover-crds-%d-1", dead.Process.Pid), living, "changeover-crds-x-1", "other-1-1"} {
		write(t, filepath.Join(tmp, dir, "go.mod"), "module throwaway\n")
	}
	if _, err := crds.Load(t.Context(), crds.Source{Module: module, Version: version, Dir: "good"}); err != nil {
		t.Error(err)
	}
	if _, err := crds.Load(t.Context(), crds.Source{Module: module, Version: "v9.9.9", Dir: "good"}); err == nil {
		t.Error("no error for a version that does not exist")
	}
	left, err := os.ReadDir(tmp)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range left {
		names = append(names, entry.Name())
	}
	slices.Sort(names)
	if want := []string{living, "changeover-crds-x-1", "other-1-1"}; !slices.Equal(names, want) {
		t.Errorf("left behind: %v, want %v", names, want)
	}
}
