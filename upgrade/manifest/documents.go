package manifest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// documents calls each for every object of a stream, with a source that names the document. Empty documents count,
// so that the numbers are those that a reader of the file sees.
func documents(source string, r io.Reader, each func(string, *unstructured.Unstructured) error) error {
	buffered := bufio.NewReader(r)
	next := yamlDocuments(buffered)
	if isJSON(buffered) {
		next = jsonDocuments(buffered)
	}
	for n := 1; ; n++ {
		place := fmt.Sprintf("%s, document %d", source, n)
		content, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &Error{Source: place, Reason: "neither YAML nor JSON", Err: err}
		}
		if content == nil {
			continue
		}
		object, err := asObject(place, content)
		if err != nil {
			return err
		}
		if err := each(place, object); err != nil {
			return err
		}
	}
}

func asObject(place string, content any) (*unstructured.Unstructured, error) {
	fields, ok := content.(map[string]any)
	if !ok {
		return nil, &Error{Source: place, Reason: "not a Kubernetes object: it holds no fields"}
	}
	object := &unstructured.Unstructured{Object: fields}
	for _, field := range []string{"apiVersion", "kind"} {
		if s, _, err := unstructured.NestedString(fields, field); s == "" || err != nil {
			return nil, &Error{Source: place, Reason: "not a Kubernetes object: it has no " + field}
		}
	}
	return object, nil
}

// isJSON looks at the first character that is no white space.
func isJSON(r *bufio.Reader) bool {
	for n := 1; n <= r.Size(); n++ {
		head, err := r.Peek(n)
		if err != nil {
			return false
		}
		if c := head[n-1]; !bytes.ContainsRune([]byte(" \t\r\n"), rune(c)) {
			return c == '{'
		}
	}
	return false
}

func jsonDocuments(r io.Reader) func() (any, error) {
	decoder := json.NewDecoder(r)
	return func() (any, error) {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return nil, err
		}
		return parse(raw)
	}
}

func yamlDocuments(r *bufio.Reader) func() (any, error) {
	reader := utilyaml.NewYAMLReader(r)
	return func() (any, error) {
		raw, err := reader.Read()
		if err != nil {
			return nil, err
		}
		return parse(raw)
	}
}

// lineOfParser is how the YAML parser names itself; the reader of the message knows it by the file.
var lineOfParser = regexp.MustCompile(`^(error converting YAML to JSON: )?yaml: `)

// parse refuses a key that stands twice: files that were put together without a separator would hide all but the last
// object. It keeps whole numbers whole: Kubernetes' JSON has int64 where encoding/json would make a float.
func parse(raw []byte) (any, error) {
	asJSON, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return nil, errors.New(lineOfParser.ReplaceAllString(err.Error(), ""))
	}
	if string(asJSON) == "null" {
		return nil, nil
	}
	if asJSON[0] != '{' {
		return string(asJSON), nil
	}
	object := map[string]any{}
	if err := utiljson.Unmarshal(asJSON, &object); err != nil {
		return nil, err
	}
	return object, nil
}
