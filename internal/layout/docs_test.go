package layout

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
	// code is a path in backquotes: at least one slash, or a file of the root with an ending.
	code = regexp.MustCompile("`([A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.*-]+)*/?)`")
)

// TestDocsLinkToWhatExists follows the relative links of every Markdown file.
func TestDocsLinkToWhatExists(t *testing.T) {
	checked := 0
	walk(t, func(name string) {
		if !strings.HasSuffix(name, ".md") {
			return
		}
		for _, m := range link.FindAllStringSubmatch(read(t, name), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			checked++
			if _, err := os.Stat(filepath.Join(root, path.Join(path.Dir(name), m[1]))); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, m[1])
			}
		}
	})
	if checked == 0 {
		t.Error("no link in any Markdown file: the check checks nothing")
	}
}

// TestIndexNamesWhatExists checks each row of the table in docs/index.md: "I want to change … | file | its test".
func TestIndexNamesWhatExists(t *testing.T) {
	rows := 0
	for _, line := range strings.Split(read(t, "docs/index.md"), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(strings.TrimSpace(cells[1]), "---") || strings.TrimSpace(cells[2]) == "file" {
			continue
		}
		rows++
		for _, cell := range cells[2:4] {
			paths := code.FindAllStringSubmatch(cell, -1)
			if len(paths) == 0 {
				t.Errorf("docs/index.md: the row %q names no path in %q", strings.TrimSpace(cells[1]), cell)
			}
			for _, p := range paths {
				if found, err := filepath.Glob(filepath.Join(root, p[1])); err != nil || len(found) == 0 {
					t.Errorf("docs/index.md: %s does not exist", p[1])
				}
			}
		}
	}
	if rows < 10 {
		t.Errorf("docs/index.md has only %d rows that this test understands", rows)
	}
}

func TestArchitectureIsShort(t *testing.T) {
	if n := strings.Count(read(t, "docs/architecture.md"), "\n"); n >= 100 {
		t.Errorf("docs/architecture.md has %d lines; it stays under 100, so that people read it", n)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
