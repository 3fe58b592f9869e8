package layout

import (
	"go/ast"
	"strings"
	"testing"
)

// TestNoCodeDoes looks for what no code here may do. Each finding names the place and the reason.
func TestNoCodeDoes(t *testing.T) {
	for _, f := range parseAll(t) {
		ast.Inspect(f.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil && n.Name.Name == "init" {
					t.Errorf("%s: func init: nothing happens by being imported", f.at(n))
				}
			case *ast.CallExpr:
				if why := bannedCall(f, n); why != "" {
					t.Errorf("%s: %s", f.at(n), why)
				}
			}
			return true
		})
	}
}

func bannedCall(f source, call *ast.CallExpr) string {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	x, ok := sel.X.(*ast.Ident)
	if !ok {
		return ""
	}
	switch name := x.Name + "." + sel.Sel.Name; {
	case f.test && name == "time.Sleep" && !importsAny(f, "testing/synctest"):
		return "time.Sleep in a test: wait for a condition with a deadline, or use testing/synctest"
	case f.test && (name == "t.Skip" || name == "t.Skipf" || name == "t.SkipNow" || name == "b.Skip"):
		return name + ": a test that does not run proves nothing"
	}
	return ""
}

func importsAny(f source, paths ...string) bool {
	for _, i := range f.imports {
		for _, p := range paths {
			if i == p {
				return true
			}
		}
	}
	return false
}

// TestPackagesHaveDocs: every package says in its own words what it is for.
func TestPackagesHaveDocs(t *testing.T) {
	documented, all := map[string]bool{}, map[string]string{}
	for _, f := range parseAll(t) {
		if f.test || strings.Contains(f.path, "/testdata/") {
			continue
		}
		all[f.pkg] = f.path
		if f.file.Doc != nil && len(f.file.Doc.Text()) > 20 {
			documented[f.pkg] = true
		}
	}
	for pkg, file := range all {
		if !documented[pkg] {
			t.Errorf("package %s (%s): no package comment", pkg, file)
		}
	}
}
