package crds_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/changeover-dev/changeover/lab/crds"
)

// These tests read the real releases: what the demo and the documents say about them is pinned here.

func clusterAPI(t *testing.T, version string) []crds.Provider {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	providers, err := crds.ClusterAPI(ctx, version)
	if err != nil {
		t.Fatal(err)
	}
	return providers
}

// shape writes a CRD's versions as one line: un-served ones in brackets, the storage version with a star.
func shape(crd *apiextensionsv1.CustomResourceDefinition) string {
	var words []string
	for _, v := range crd.Spec.Versions {
		word := v.Name
		if !v.Served {
			word = "(" + word + ")"
		}
		if v.Storage {
			word += "*"
		}
		words = append(words, word)
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

func TestClusterAPIVersions(t *testing.T) {
	const (
		oldAll    = "(v1alpha3) v1alpha4 v1beta1*"
		oldLater  = "v1alpha4 v1beta1*" // kinds that came after v1alpha3
		newAll    = "(v1alpha4) v1beta1*"
		untouched = "v1alpha1*"
		oldIPAM   = "v1alpha1*"
		newIPAM   = "v1alpha1 v1beta1*"
	)
	want := []struct{ name, before, after string }{
		{"clusterresourcesetbindings.addons.cluster.x-k8s.io", oldAll, newAll},
		{"clusterresourcesets.addons.cluster.x-k8s.io", oldAll, newAll},
		{"clusterclasses.cluster.x-k8s.io", oldLater, newAll},
		{"clusters.cluster.x-k8s.io", oldAll, newAll},
		{"machinedeployments.cluster.x-k8s.io", oldAll, newAll},
		{"machinehealthchecks.cluster.x-k8s.io", oldAll, newAll},
		{"machinepools.cluster.x-k8s.io", oldAll, newAll},
		{"machines.cluster.x-k8s.io", oldAll, newAll},
		{"machinesets.cluster.x-k8s.io", oldAll, newAll},
		{"ipaddressclaims.ipam.cluster.x-k8s.io", oldIPAM, newIPAM},
		{"ipaddresses.ipam.cluster.x-k8s.io", oldIPAM, newIPAM},
		{"extensionconfigs.runtime.cluster.x-k8s.io", untouched, untouched},
		{"kubeadmconfigs.bootstrap.cluster.x-k8s.io", oldAll, newAll},
		{"kubeadmconfigtemplates.bootstrap.cluster.x-k8s.io", oldAll, newAll},
		{"kubeadmcontrolplanes.controlplane.cluster.x-k8s.io", oldAll, newAll},
		{"kubeadmcontrolplanetemplates.controlplane.cluster.x-k8s.io", oldLater, newAll},
		{"dockerclusters.infrastructure.cluster.x-k8s.io", oldAll, newAll},
		{"dockerclustertemplates.infrastructure.cluster.x-k8s.io", oldLater, newAll},
		{"dockermachinepools.infrastructure.cluster.x-k8s.io", oldAll, newAll},
		{"dockermachinepooltemplates.infrastructure.cluster.x-k8s.io", "", "v1beta1*"},
		{"dockermachines.infrastructure.cluster.x-k8s.io", oldAll, newAll},
		{"dockermachinetemplates.infrastructure.cluster.x-k8s.io", oldAll, newAll},
	}
	shapes := func(version string) map[string]string {
		m := map[string]string{}
		for _, crd := range crds.All(clusterAPI(t, version)) {
			m[crd.Name] = shape(crd)
		}
		return m
	}
	before, after := shapes("v1.5.2"), shapes("v1.6.0")
	for _, w := range want {
		if before[w.name] != w.before {
			t.Errorf("%s in v1.5.2: %q, want %q", w.name, before[w.name], w.before)
		}
		if after[w.name] != w.after {
			t.Errorf("%s in v1.6.0: %q, want %q", w.name, after[w.name], w.after)
		}
	}
	if len(before) != 21 || len(after) != 22 {
		t.Errorf("%d CRDs in v1.5.2 and %d in v1.6.0, want 21 and 22", len(before), len(after))
	}
}

func TestClusterAPIProviders(t *testing.T) {
	for _, release := range []struct {
		version string
		docker  int
		labels  string
	}{
		{"v1.5.2", 5, "v1alpha3 v1alpha4 v1beta1"},
		{"v1.6.0", 6, "v1alpha4 v1beta1"},
	} {
		t.Run(release.version, func(t *testing.T) {
			want := []struct {
				name, namespace string
				crds            int
				labels          string
			}{
				{"cluster-api", "capi-system", 12, ""}, // core has no contract with itself
				{"bootstrap-kubeadm", "capi-kubeadm-bootstrap-system", 2, release.labels},
				{"control-plane-kubeadm", "capi-kubeadm-control-plane-system", 2, release.labels},
				{"infrastructure-docker", "capd-system", release.docker, release.labels},
			}
			have := clusterAPI(t, release.version)
			if len(have) != len(want) {
				t.Fatalf("%d providers, want %d", len(have), len(want))
			}
			for i, w := range want {
				p := have[i]
				if p.Name != w.name || p.Namespace != w.namespace || len(p.CRDs) != w.crds {
					t.Errorf("provider %s in %s with %d CRDs, want %s in %s with %d",
						p.Name, p.Namespace, len(p.CRDs), w.name, w.namespace, w.crds)
				}
				for _, crd := range p.CRDs {
					if labels := contractLabels(t, crd, w.name); labels != w.labels {
						t.Errorf("%s: contract labels %q, want %q", crd.Name, labels, w.labels)
					}
				}
			}
		})
	}
}

// contractLabels writes the contract labels of a CRD as one line, and checks that there is no other but the provider's.
func contractLabels(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, provider string) string {
	t.Helper()
	var words []string
	for name, value := range crd.Labels {
		contract, ok := strings.CutPrefix(name, "cluster.x-k8s.io/")
		switch {
		case ok && contract == "provider" && value == provider:
		case ok && contract == value:
			words = append(words, value)
		default:
			t.Errorf("%s: label %s=%s", crd.Name, name, value)
		}
	}
	if crd.Labels["cluster.x-k8s.io/provider"] != provider {
		t.Errorf("%s: no label for provider %s", crd.Name, provider)
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// TestWriteLosesNothing compares the files with the release's own, field by field.
func TestWriteLosesNothing(t *testing.T) {
	dir := t.TempDir()
	providers := clusterAPI(t, "v1.6.0")
	files, err := crds.Write(filepath.Join(dir, "new"), providers)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(providers) {
		t.Fatalf("files %v, want one for each of %d providers", files, len(providers))
	}
	bases := originals(t)
	seen := 0
	for i, file := range files {
		if name := filepath.Base(file); name != providers[i].Name+".yaml" {
			t.Errorf("provider %s went into %s", providers[i].Name, name)
		}
		for name, object := range documents(t, file) {
			seen++
			metadata := object["metadata"].(map[string]any)
			if metadata["labels"] == nil {
				t.Errorf("%s: no labels in the file", name)
			}
			delete(metadata, "labels")
			have, want := mustYAML(t, object), mustYAML(t, bases[name])
			if !bytes.Equal(have, want) {
				t.Errorf("%s: differs from the release beyond labels (%d bytes, want %d)", name, len(have), len(want))
			}
		}
	}
	if seen != 22 {
		t.Errorf("%d documents, want 22", seen)
	}
}

// originals reads the release's own files of v1.6.0, by CRD name.
func originals(t *testing.T) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for _, folder := range []string{
		"sigs.k8s.io/cluster-api@v1.6.0/config/crd/bases",
		"sigs.k8s.io/cluster-api@v1.6.0/bootstrap/kubeadm/config/crd/bases",
		"sigs.k8s.io/cluster-api@v1.6.0/controlplane/kubeadm/config/crd/bases",
		"sigs.k8s.io/cluster-api/test@v1.6.0/infrastructure/docker/config/crd/bases",
	} {
		files, err := filepath.Glob(filepath.Join(moduleCache(t), folder, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			for name, object := range documents(t, file) {
				all[name] = object
			}
		}
	}
	return all
}

func documents(t *testing.T, file string) map[string]map[string]any {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]map[string]any{}
	for _, document := range strings.Split("\n"+string(data), "\n---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		objects[object["metadata"].(map[string]any)["name"].(string)] = object
	}
	return objects
}

func mustYAML(t *testing.T, object any) []byte {
	t.Helper()
	data, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
