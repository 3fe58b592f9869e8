package discovery

import "strconv"

// State says how far a group-version's resources can be trusted.
type State int

const (
	// Current resources were read from whoever serves them.
	Current State = iota
	// Stale resources are the aggregator's last known ones: the server behind an aggregated API does not answer.
	Stale
	// Unavailable means that the group-version is listed, but its resources could not be read, or were not read yet.
	// The resources are those of an earlier snapshot, if there was one that had them. Reason says why.
	Unavailable
)

func (s State) String() string {
	switch s {
	case Current:
		return "current"
	case Stale:
		return "stale"
	case Unavailable:
		return "unavailable"
	}
	return "state " + strconv.Itoa(int(s))
}

// Form is one of the ways in which an API server says what it serves.
type Form string

const (
	// AggregatedV2 is one document for all groups, Kubernetes 1.30 and later.
	AggregatedV2 Form = "aggregated v2"
	// AggregatedV2Beta1 is its predecessor, Kubernetes 1.26 to 1.29.
	AggregatedV2Beta1 Form = "aggregated v2beta1"
	// Legacy is a list of groups and then one document for each group-version.
	Legacy Form = "legacy"
)

// A Resource is one top-level resource of a group-version. Subresources are left out: no mapping ever points to one.
type Resource struct {
	// Name is the plural, as it stands in a URL. Singular may be empty.
	Name, Singular, Kind string
	// Group and Version are those of Kind. They equal the group-version under which the resource is listed unless the
	// server says otherwise.
	Group, Version string
	Namespaced     bool

	Verbs, ShortNames, Categories []string
}

// A GroupVersion is one version of a group and what it serves.
type GroupVersion struct {
	Version string
	// State says whether Resources are current. Unless it is Current, Reason is not nil.
	State     State
	Reason    error
	Resources []Resource
}

// A Group is a group with its versions in the server's own order. The core group has an empty name.
type Group struct {
	Name string
	// Preferred is the version that the server prefers: the one it names as such in legacy form, the first one in an
	// aggregated document. It is empty only when the group has no versions.
	Preferred string
	Versions  []GroupVersion
}

// Version returns the given version of the group. What it points to is shared and must not be changed.
func (g Group) Version(version string) (GroupVersion, bool) {
	for i := range g.Versions {
		if g.Versions[i].Version == version {
			return g.Versions[i], true
		}
	}
	return GroupVersion{}, false
}
