package crds

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Provider is one provider's part of a Cluster API release.
type Provider struct {
	Name      string // as Cluster API names it in the label cluster.x-k8s.io/provider: "cluster-api", "infrastructure-docker"
	Namespace string // where its controller lives: "capi-system"
	CRDs      []*apiextensionsv1.CustomResourceDefinition
}

// clusterAPIProviders names where each provider's kustomize folder lies, in the order in which clusterctl installs them.
func clusterAPIProviders() []struct{ module, config string } {
	const core, test = "sigs.k8s.io/cluster-api", "sigs.k8s.io/cluster-api/test"
	return []struct{ module, config string }{
		{core, "config"},
		{core, "bootstrap/kubeadm/config"},
		{core, "controlplane/kubeadm/config"},
		{test, "infrastructure/docker/config"},
	}
}

// providerLabel names the provider on every object of its release.
const providerLabel = "cluster.x-k8s.io/provider"

// ClusterAPI returns core, kubeadm bootstrap, kubeadm control plane and docker provider of a Cluster API release ("v1.5.2"),
// in this order, labelled as its release manifests are: the provider, and for all but core the contract versions, all read
// from the release's kustomize files. The result belongs to the caller.
//
// The conversion webhooks, which kustomize patches in, are left out: nobody answers for them on the lab, and without
// them the API server converts by changing apiVersion alone.
func ClusterAPI(ctx context.Context, version string) ([]Provider, error) {
	roots := map[string]string{}
	var providers []Provider
	for _, p := range clusterAPIProviders() {
		if roots[p.module] == "" {
			root, err := download(ctx, p.module, version)
			if err != nil {
				return nil, err
			}
			roots[p.module] = root
		}
		provider, err := loadProvider(roots[p.module], p.config, Source{Module: p.module, Version: version})
		if err != nil {
			return nil, err
		}
		providers = append(providers, provider)
	}
	return providers, nil
}

// loadProvider reads the provider whose kustomize folder is config.
func loadProvider(root, config string, s Source) (Provider, error) {
	s.Dir = path.Join(config, "crd/bases")
	s.Kustomizations = []string{path.Join(config, "crd"), path.Join(config, "default")}
	crds, err := load(root, s)
	if err != nil {
		return Provider{}, err
	}
	release, err := readKustomization(root, path.Join(config, "default"))
	if err != nil {
		return Provider{}, fmt.Errorf("module %s@%s: %w", s.Module, s.Version, err)
	}
	name := release.labels()[providerLabel]
	if name == "" || release.Namespace == "" {
		return Provider{}, fmt.Errorf("module %s@%s: %s/default/kustomization.yaml names no provider or no namespace",
			s.Module, s.Version, config)
	}
	return Provider{Name: name, Namespace: release.Namespace, CRDs: crds}, nil
}

// All returns the CRDs of all providers, in their order, not copied.
func All(providers []Provider) []*apiextensionsv1.CustomResourceDefinition {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, p := range providers {
		all = append(all, p.CRDs...)
	}
	return all
}

// Write writes each provider's CRDs into a file of its own in dir, which it makes when needed, and returns the files' paths in
// the order of the providers. A file is named after its provider; one that exists is replaced.
func Write(dir string, providers []Provider) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var files []string
	for _, p := range providers {
		data, err := encode(p.CRDs)
		if err != nil {
			return nil, fmt.Errorf("provider %s: %w", p.Name, err)
		}
		file := filepath.Join(dir, p.Name+".yaml")
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}
