package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/changeover-dev/changeover/upgrade/crd"
)

// again is the pause before a list that failed is tried once more: the conversion webhook of a controller that has just got
// ready may take a moment to be reached.
const again = 250 * time.Millisecond

// Report is what verify found. Lists come in the order of the CRDs.
type Report struct {
	Objects  int      `json:"objects"`  // before the changeover
	Deleted  int      `json:"deleted"`  // of these, seen being deleted meanwhile
	Versions int      `json:"versions"` // served versions in which all objects were read
	Lost     []string `json:"lost,omitempty"`
	// Unreadable names the versions in which a list did not answer 200, with the server's words.
	Unreadable []string `json:"unreadable,omitempty"`
	// Untrimmed names the stored versions beside the storage version. No failure: a later migration trims them.
	Untrimmed []Untrimmed `json:"untrimmed,omitempty"`
	// Restarting names containers of controllers that restarted since they were ready.
	Restarting []string `json:"restarting,omitempty"`
}

// Untrimmed is a CRD with stored versions in which objects may still lie beside the storage version.
type Untrimmed struct {
	CRD      string   `json:"crd"`
	Versions []string `json:"versions"`
}

// FailedError is a changeover that went through and whose result is not right.
type FailedError struct {
	Report Report
}

func (e *FailedError) Error() string {
	var lines []string
	for _, lost := range e.Report.Lost {
		lines = append(lines, lost+": lost: it was there before, and nobody was seen deleting it")
	}
	lines = append(lines, e.Report.Unreadable...)
	for _, container := range e.Report.Restarting {
		lines = append(lines, "container "+container+": restarting since it was ready")
	}
	return strings.Join(lines, "\n")
}

// Hints says what to do about it.
func (e *FailedError) Hints() []string {
	return []string{"mend what is named above; later runs cannot see again what was lost in this one"}
}

// Failed says whether anything in the report is a failure.
func (r Report) Failed() bool { return len(r.Lost)+len(r.Unreadable)+len(r.Restarting) > 0 }

// Objects reads every object of the CRDs, as they are now, in every served version, and compares with what the observation
// remembers. A list that fails is tried again until ctx ends, and then reported.
func Objects(ctx context.Context, client metadata.Interface, crds []*crd.Definition, before *Observation) Report {
	r := Report{Objects: before.Objects()}
	for _, d := range crds {
		resource := Resource{CRD: d.Name(), Group: d.Typed.Spec.Group, Plural: d.Typed.Spec.Names.Plural}
		var lost []string
		for _, version := range d.Served() {
			missing, err := compare(ctx, client, resource, version, before)
			if err != nil {
				r.Unreadable = append(r.Unreadable, fmt.Sprintf("crd %s: objects cannot be read in version %s: %v", d.Name(), version, err))
				continue
			}
			r.Versions++
			lost = append(lost, missing...)
		}
		slices.Sort(lost)
		for _, name := range slices.Compact(lost) {
			r.Lost = append(r.Lost, resource.Plural+"."+resource.Group+" "+name)
		}
		if u := untrimmed(d); len(u) > 0 {
			r.Untrimmed = append(r.Untrimmed, Untrimmed{CRD: d.Name(), Versions: u})
		}
	}
	r.Deleted = before.Deleted()
	return r
}

// compare lists until the list succeeds and either nothing is missing or has been missing for some looks: the event of a
// deletion may arrive after a list that lacks the object.
func compare(ctx context.Context, client metadata.Interface, r Resource, version string, before *Observation) ([]string, error) {
	const looks = 8
	for look := 1; ; look++ {
		now := map[types.UID]bool{}
		_, err := list(ctx, client, r.at(version), func(object *metav1.PartialObjectMetadata) { now[object.UID] = true })
		missing := before.lost(r.CRD, now)
		if err == nil && (len(missing) == 0 || look >= looks) {
			return missing, nil
		}
		select {
		case <-ctx.Done():
			return missing, err
		case <-time.After(again):
		}
	}
}

func untrimmed(d *crd.Definition) []string {
	var rest []string
	for _, version := range d.Typed.Status.StoredVersions {
		if !slices.Contains(d.Storage(), version) {
			rest = append(rest, version)
		}
	}
	return rest
}

// Restarting names the containers that restarted between two counts; a container that is new in after counts from zero.
func Restarting(before, after map[string]int32) []string {
	var names []string
	for name, n := range after {
		if n > before[name] {
			names = append(names, fmt.Sprintf("%s (%d times)", name, n-before[name]))
		}
	}
	slices.Sort(names)
	return names
}
