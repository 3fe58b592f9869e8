package crds_test

import (
	"archive/zip"
	"bytes"
	"testing"
)

// zipModule returns files as a module proxy serves them, each below the module's path and version.
func zipModule(t *testing.T, prefix string, files map[string]string) string {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, content := range files {
		file, err := w.Create(prefix + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
