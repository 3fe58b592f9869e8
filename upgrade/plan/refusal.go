package plan

import (
	"fmt"
	"strings"

	"github.com/changeover-dev/changeover/upgrade/crd"
)

// Refusal is returned where no legal single step leads to what is wanted. Nothing was changed.
type Refusal struct {
	Findings []Finding
}

// Finding is one reason against the plan.
type Finding struct {
	CRD    string // the CRD's name
	Source string // where the wanted CRD was read
	Reason string
	WayOut string // what the operator can do instead
}

func (r *Refusal) Error() string {
	lines := make([]string, len(r.Findings))
	for i, f := range r.Findings {
		lines[i] = fmt.Sprintf("crd %s: %s (%s)", f.CRD, f.Reason, f.Source)
	}
	return strings.Join(lines, "\n")
}

// Hints gives the ways out, each once.
func (r *Refusal) Hints() []string {
	var hints []string
	seen := map[string]bool{}
	for _, f := range r.Findings {
		if f.WayOut != "" && !seen[f.WayOut] {
			seen[f.WayOut] = true
			hints = append(hints, f.WayOut)
		}
	}
	return hints
}

func (r *Refusal) add(wanted *crd.Definition, findings ...Finding) {
	for _, f := range findings {
		f.CRD, f.Source = wanted.Name(), wanted.Source
		r.Findings = append(r.Findings, f)
	}
}
