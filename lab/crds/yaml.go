package crds

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// decode reads the CRDs of one file. It is strict: a field that our types do not know would be lost without a word.
func decode(data []byte) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return crds, nil
		}
		if err != nil {
			return nil, err
		}
		crd, err := decodeOne(document)
		if err != nil {
			return nil, err
		}
		if crd != nil {
			crds = append(crds, crd)
		}
	}
}

// decodeOne reads one document; an empty one is nil.
func decodeOne(document []byte) (*apiextensionsv1.CustomResourceDefinition, error) {
	var content any
	if err := yaml.Unmarshal(document, &content); err != nil {
		return nil, err
	}
	if content == nil {
		return nil, nil
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(document, crd); err != nil {
		return nil, err
	}
	want := apiextensionsv1.SchemeGroupVersion.String()
	if crd.APIVersion != want || crd.Kind != "CustomResourceDefinition" {
		return nil, fmt.Errorf("%s %s is no %s CustomResourceDefinition", crd.APIVersion, crd.Kind, want)
	}
	return crd, nil
}

// encode writes CRDs as one file of YAML documents, without status and other fields that only an API server fills.
func encode(crds []*apiextensionsv1.CustomResourceDefinition) ([]byte, error) {
	var out bytes.Buffer
	for _, crd := range crds {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		if err != nil {
			return nil, fmt.Errorf("crd %s: %w", crd.Name, err)
		}
		delete(object, "status")
		if metadata, ok := object["metadata"].(map[string]any); ok {
			delete(metadata, "creationTimestamp")
		}
		document, err := yaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("crd %s: %w", crd.Name, err)
		}
		out.WriteString("---\n")
		out.Write(document)
	}
	return out.Bytes(), nil
}

// kustomization is the little that we need of kustomize's file.
type kustomization struct {
	Namespace    string            `json:"namespace"`
	CommonLabels map[string]string `json:"commonLabels"`
	Labels       []struct {
		Pairs map[string]string `json:"pairs"`
	} `json:"labels"`
	Resources []string `json:"resources"`
}

func readKustomization(root, dir string) (kustomization, error) {
	path, err := inside(root, dir)
	if err != nil {
		return kustomization{}, err
	}
	data, err := os.ReadFile(filepath.Join(path, "kustomization.yaml"))
	if err != nil {
		return kustomization{}, err
	}
	var k kustomization
	if err := yaml.Unmarshal(data, &k); err != nil {
		return kustomization{}, fmt.Errorf("%s/kustomization.yaml: %w", dir, err)
	}
	return k, nil
}

// labels returns what the file adds to each object: commonLabels, and the newer labels on top.
func (k kustomization) labels() map[string]string {
	all := map[string]string{}
	for name, value := range k.CommonLabels {
		all[name] = value
	}
	for _, l := range k.Labels {
		for name, value := range l.Pairs {
			all[name] = value
		}
	}
	return all
}

// escapeGlob makes a path stand for itself in a pattern: the module cache's paths hold user-chosen folders.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
