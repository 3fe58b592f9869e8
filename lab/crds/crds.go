// Package crds takes CustomResourceDefinitions (CRDs) out of published Go modules at run time, so that the lab upgrades what
// users upgrade without a copy of it.
package crds

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Source says where CRDs lie.
type Source struct {
	Module  string // path of a Go module, "sigs.k8s.io/cluster-api"
	Version string // its version, "v1.5.2"
	Dir     string // folder in the module, with slashes; all its *.yaml and *.yml files hold CRDs and nothing else
	// Kustomizations are folders in the module whose kustomization.yaml adds labels to every CRD (commonLabels and labels).
	// Nothing else of them is done: no patches, no name prefixes.
	Kustomizations []string
	// Labels are added on top.
	Labels map[string]string
}

// Load returns the CRDs of one source, in the order of their files' names. The module comes from the Go module cache, or is
// downloaded into it with the go command's usual settings (GOPROXY, GOSUMDB). The result belongs to the caller.
//
// Conversion is left as the files say; where a project adds its conversion webhook by a patch, that is None, and the API server
// changes nothing but apiVersion between versions.
func Load(ctx context.Context, s Source) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	module, err := download(ctx, s.Module, s.Version)
	if err != nil {
		return nil, err
	}
	return load(module, s)
}

// load is Load on a module that lies at root.
func load(root string, s Source) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	crds, err := readFolder(root, s.Dir)
	if err != nil {
		return nil, fmt.Errorf("module %s@%s: %w", s.Module, s.Version, err)
	}
	labels := map[string]string{}
	for _, dir := range s.Kustomizations {
		k, err := readKustomization(root, dir)
		if err != nil {
			return nil, fmt.Errorf("module %s@%s: %w", s.Module, s.Version, err)
		}
		maps.Copy(labels, k.labels())
	}
	maps.Copy(labels, s.Labels)
	for _, crd := range crds {
		if crd.Labels == nil && len(labels) > 0 {
			crd.Labels = map[string]string{}
		}
		maps.Copy(crd.Labels, labels)
	}
	return crds, nil
}

// readFolder reads every YAML file of a folder.
func readFolder(root, dir string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	path, err := inside(root, dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, pattern := range []string{"*.yaml", "*.yml"} {
		found, err := filepath.Glob(filepath.Join(escapeGlob(path), pattern))
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	if len(files) == 0 {
		return nil, fmt.Errorf("folder %s: no YAML files", dir)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		some, err := decode(data)
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", dir, filepath.Base(file), err)
		}
		crds = append(crds, some...)
	}
	return crds, nil
}

// inside joins a folder of a module to the module's root, and refuses what leads out of it.
func inside(root, dir string) (string, error) {
	local := filepath.FromSlash(dir)
	if !filepath.IsLocal(local) {
		return "", fmt.Errorf("folder %q: not inside the module", dir)
	}
	return filepath.Join(root, local), nil
}
