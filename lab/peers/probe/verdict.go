package probe

import (
	"net/url"
	"slices"
	"strings"
)

// Verdict is what a probe says of its mappers. Each mapper is counted once: Mappers = Stuck + Stale + Right.
type Verdict struct {
	Name    string `json:"name"`
	Mappers int    `json:"mappers"`
	// Stuck mappers answer with an error, or give no answer in time, for a kind that is served.
	Stuck int `json:"stuck"`
	// Stale mappers answer, and at least one answer names a version that is not served.
	Stale    int      `json:"stale"`
	Right    int      `json:"right"`
	Requests Requests `json:"requests"`
	// SampleError is the error of one stuck mapper; SampleStale a group-version that one stale mapper still answers with.
	SampleError string `json:"sampleError,omitempty"`
	SampleStale string `json:"sampleStale,omitempty"`
}

// Requests counts what was sent to the API server since the start: Discovery are the documents below /api and /apis
// that say what is served, Other is the rest.
type Requests struct {
	Discovery int64 `json:"discovery"`
	Other     int64 `json:"other"`
}

// Count is the number of mappers that there are, and of those among them that have answered at least once.
type Count struct {
	Mappers  int `json:"mappers"`
	Answered int `json:"answered"`
}

func (v *Verdict) add(f finding) {
	v.Mappers++
	switch {
	case f.err != nil:
		v.Stuck++
		if v.SampleError == "" {
			v.SampleError = f.err.Error()
		}
	case f.stale != "":
		v.Stale++
		if v.SampleStale == "" {
			v.SampleStale = f.stale
		}
	default:
		v.Right++
	}
}

// finding is what one mapper's last lookups came to. The zero value is right.
type finding struct {
	err   error
	stale string
}

// served is the set of versions to judge by: by group, and "" for the groups that are not named.
type served map[string][]string

func parseServed(query url.Values) served {
	s := served{}
	for _, value := range query["served"] {
		for _, entry := range strings.Split(value, ",") {
			group, version, found := strings.Cut(entry, "/")
			if !found {
				group, version = "", entry
			}
			if version != "" {
				s[group] = append(s[group], version)
			}
		}
	}
	return s
}

func (s served) has(group, version string) bool {
	versions, named := s[group]
	if !named {
		versions = s[""]
	}
	return slices.Contains(versions, version)
}
