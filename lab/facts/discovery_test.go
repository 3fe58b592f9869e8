package facts

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// document is the aggregated form of discovery, as far as the facts go.
type document struct {
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Versions []documentVersion `json:"versions"`
	} `json:"items"`
}

type documentVersion struct {
	Version   string `json:"version"`
	Freshness string `json:"freshness"`
	Resources []struct {
		Resource string `json:"resource"`
		Scope    string `json:"scope"`
	} `json:"resources"`
}

// document reads /apis in the aggregated form.
func (w wire) document(ctx context.Context) (d document, err error) {
	a, err := w.try(ctx, request{Path: "/apis", Accept: aggregated})
	if err != nil {
		return d, err
	}
	if a.Status != http.StatusOK || a.ContentType != aggregated {
		return d, fmt.Errorf("aggregated discovery: %v", a)
	}
	return d, json.Unmarshal([]byte(a.Body), &d)
}

// versionsOf lists the versions of a group in the server's order; nil when there is no such group.
func (d document) versionsOf(group string) []documentVersion {
	for _, g := range d.Items {
		if g.Metadata.Name == group {
			return g.Versions
		}
	}
	return nil
}

// version returns the entry of one group-version; its zero value when there is none.
func (d document) version(group, version string) documentVersion {
	for _, v := range d.versionsOf(group) {
		if v.Version == version {
			return v
		}
	}
	return documentVersion{}
}

func (v documentVersion) serves(resource string) bool {
	for _, r := range v.Resources {
		if r.Resource == resource {
			return true
		}
	}
	return false
}
