// Package manifest reads what an operator hands to a changeover: files, folders and standard input with YAML or JSON
// in any number of documents. CustomResourceDefinitions are the changeover's wish, Deployments name its controllers,
// and everything else is counted, so that the command can say that it leaves it alone.
package manifest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/changeover-dev/changeover/upgrade/crd"
)

// Manifest is what all sources of one run hold together, in the order of reading.
type Manifest struct {
	CRDs        []*crd.Definition
	Deployments []Deployment
	// Others counts the objects that a changeover does not apply, by kind.
	Others map[string]int
}

// Deployment names a Deployment that a manifest carries.
type Deployment struct {
	Namespace string // "" where the manifest leaves it to the command
	Name      string
	Source    string
}

// Error is input that cannot be understood. Nothing was sent anywhere when it is returned.
type Error struct {
	Source string // file and document
	Reason string
	Hint   string // what to do about it, may be ""
	Err    error  // the cause, may be nil
}

func (e *Error) Error() string {
	text := e.Source + ": " + e.Reason
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// Hints says what to do about it.
func (e *Error) Hints() []string {
	if e.Hint == "" {
		return nil
	}
	return []string{e.Hint}
}

// Read reads every source: a file, a folder (its *.yaml, *.yml and *.json, not the folders below it) or "-" for stdin.
// A CRD that appears twice with the same content counts once; two that disagree are an error, as is input without any
// CRD. Errors are of type *Error.
func Read(sources []string, stdin io.Reader) (*Manifest, error) {
	m := &Manifest{Others: map[string]int{}}
	for _, source := range sources {
		if err := m.readSource(source, stdin); err != nil {
			return nil, err
		}
	}
	if len(m.CRDs) == 0 {
		return nil, &Error{Source: strings.Join(sources, ", "), Reason: "no CustomResourceDefinition in it" + m.butOthers(),
			Hint: "a changeover needs the new CRDs; give their files or folder with -f"}
	}
	return m, nil
}

// butOthers says what a manifest without CRDs holds instead.
func (m *Manifest) butOthers() string {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(m.Others)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", m.Others[kind], kind))
	}
	if n := len(m.Deployments); n > 0 {
		kinds = append(kinds, fmt.Sprintf("%d Deployment", n))
	}
	if len(kinds) == 0 {
		return ""
	}
	return ", but " + strings.Join(kinds, ", ")
}

func (m *Manifest) readSource(source string, stdin io.Reader) error {
	switch {
	case source == "-":
		if stdin == nil {
			return &Error{Source: "standard input", Reason: "there is none"}
		}
		return m.readStream("standard input", stdin)
	case strings.HasPrefix(source, "https://") || strings.HasPrefix(source, "http://"):
		return &Error{Source: source, Reason: "addresses are not read",
			Hint: "download it first: curl -fL " + source + " | kubectl changeover … -f -"}
	}
	info, err := os.Stat(source)
	if err != nil {
		return &Error{Source: source, Reason: "cannot be read", Err: pathless(err)}
	}
	if !info.IsDir() {
		return m.readFile(source)
	}
	entries, err := os.ReadDir(source)
	if err != nil {
		return &Error{Source: source, Reason: "cannot be read", Err: pathless(err)}
	}
	found := false
	for _, entry := range entries {
		if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
			continue
		}
		found = true
		if err := m.readFile(filepath.Join(source, entry.Name())); err != nil {
			return err
		}
	}
	if !found {
		return &Error{Source: source, Reason: "no *.yaml, *.yml or *.json in this folder",
			Hint: "folders below it are not read; name them with further -f"}
	}
	return nil
}

func (m *Manifest) readFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return &Error{Source: path, Reason: "cannot be read", Err: pathless(err)}
	}
	defer file.Close()
	return m.readStream(path, file)
}

// pathless takes the path off an error of package os: the source already names it.
func pathless(err error) error {
	if p, ok := err.(*os.PathError); ok {
		return p.Err
	}
	return err
}

func (m *Manifest) readStream(source string, r io.Reader) error {
	return documents(source, r, func(source string, object *unstructured.Unstructured) error {
		return m.add(source, object)
	})
}

// add sorts one object into the manifest; a List is taken apart.
func (m *Manifest) add(source string, object *unstructured.Unstructured) error {
	if object.IsList() && strings.HasSuffix(object.GetKind(), "List") {
		i := 0
		err := object.EachListItem(func(item runtime.Object) error {
			i++
			return m.add(fmt.Sprintf("%s, item %d", source, i), item.(*unstructured.Unstructured))
		})
		var known *Error
		if err != nil && !errors.As(err, &known) {
			return &Error{Source: source, Reason: fmt.Sprintf("item %d of the %s is no object", i+1, object.GetKind()), Hint: "correct the manifest; nothing was changed"}
		}
		return err
	}
	gvk := object.GroupVersionKind()
	switch {
	case gvk.Group == crd.Resource.Group && gvk.Kind == "CustomResourceDefinition":
		return m.addCRD(source, object)
	case gvk.Group == "apps" && gvk.Kind == "Deployment":
		if object.GetName() == "" {
			return &Error{Source: source, Reason: "a Deployment without metadata.name"}
		}
		m.addDeployment(Deployment{Namespace: object.GetNamespace(), Name: object.GetName(), Source: source})
	default:
		m.Others[gvk.Kind]++
	}
	return nil
}

func (m *Manifest) addCRD(source string, object *unstructured.Unstructured) error {
	if v := object.GroupVersionKind().Version; v != crd.Resource.Version {
		return &Error{Source: source, Reason: fmt.Sprintf("crd %s: apiVersion %s is not understood", object.GetName(), object.GetAPIVersion()),
			Hint: "API servers take apiextensions.k8s.io/v1 only since 1.22; use a release of the provider that ships it"}
	}
	definition, err := crd.Parse(object, source)
	if err != nil {
		return &Error{Source: source, Reason: "not a valid CustomResourceDefinition", Err: err}
	}
	if definition.Name() == "" {
		return &Error{Source: source, Reason: "a CustomResourceDefinition without metadata.name"}
	}
	for _, other := range m.CRDs {
		if other.Name() != definition.Name() {
			continue
		}
		if sameWish(other, definition) {
			return nil
		}
		return &Error{Source: source, Reason: fmt.Sprintf("crd %s: differs from the one in %s", definition.Name(), other.Source),
			Hint: "one changeover brings each CRD to one state; take one of the two out"}
	}
	m.CRDs = append(m.CRDs, definition)
	return nil
}

func sameWish(a, b *crd.Definition) bool {
	return reflect.DeepEqual(a.Object.Object["spec"], b.Object.Object["spec"]) &&
		reflect.DeepEqual(a.Object.GetLabels(), b.Object.GetLabels()) &&
		reflect.DeepEqual(a.Object.GetAnnotations(), b.Object.GetAnnotations())
}

func (m *Manifest) addDeployment(d Deployment) {
	same := func(o Deployment) bool { return o.Namespace == d.Namespace && o.Name == d.Name }
	if !slices.ContainsFunc(m.Deployments, same) {
		m.Deployments = append(m.Deployments, d)
	}
}
