package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/changeover-dev/changeover"

// root is the repository's root as seen from this package, where the Go command runs the tests.
const root = "../.."

// source is one Go file of the repository, in whatever module.
type source struct {
	path    string // from the repository's root, with slashes
	pkg     string // import path of its folder
	test    bool
	set     *token.FileSet
	file    *ast.File
	imports []string
}

func (s source) at(n ast.Node) string {
	return s.path + ":" + strconv.Itoa(s.set.Position(n.Pos()).Line)
}

// parseAll reads every Go file of the repository.
func parseAll(t *testing.T) []source {
	t.Helper()
	var all []source
	walk(t, func(name string) {
		if !strings.HasSuffix(name, ".go") {
			return
		}
		s := source{path: name, pkg: path.Join(modulePath, path.Dir(name)), test: strings.HasSuffix(name, "_test.go"), set: token.NewFileSet()}
		var err error
		s.file, err = parser.ParseFile(s.set, filepath.Join(root, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range s.file.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			s.imports = append(s.imports, p)
		}
		all = append(all, s)
	})
	if len(all) < 20 {
		t.Fatalf("found only %d Go files below %s: the walk is broken", len(all), root)
	}
	return all
}

// walk calls f with the path of every file of the repository but those of .git and .build, relative to the root, with slashes.
func walk(t *testing.T, f func(name string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (name == ".git" || name == ".build") {
			return fs.SkipDir
		}
		if !d.IsDir() {
			f(name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
