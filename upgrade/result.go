package upgrade

import (
	"github.com/changeover-dev/changeover/upgrade/plan"
	"github.com/changeover-dev/changeover/upgrade/quiesce"
	"github.com/changeover-dev/changeover/upgrade/verify"
)

// Outcome says how a run or a phase ended.
type Outcome string

// The outcomes.
const (
	Done        Outcome = "done"
	Skipped     Outcome = "skipped" // a phase: there was nothing for it to do
	NothingToDo Outcome = "nothing to do"
	Failed      Outcome = "failed"
	Interrupted Outcome = "interrupted"
)

// Result of a run, as far as it came. It is filled in also when the run fails.
type Result struct {
	Outcome Outcome `json:"outcome"`
	// Phases that were begun, in order.
	Phases []PhaseResult `json:"phases"`
	CRDs   []plan.Change `json:"crds"`
	// Controllers as they are at the end.
	Controllers []*quiesce.Controller `json:"controllers"`
	// APIServers that had to agree, by name, and how sure it is that these are all.
	APIServers []string `json:"apiServers,omitempty"`
	Certainty  string   `json:"certainty,omitempty"`
	// DownSeconds from the first controller's scale-down until all were ready again; 0 when this run stopped none, or when an
	// earlier run had stopped some, as it is not known when.
	DownSeconds float64        `json:"downSeconds"`
	Verify      *verify.Report `json:"verify,omitempty"`
}

// PhaseResult is one phase that was begun.
type PhaseResult struct {
	Name    string  `json:"name"`
	Outcome Outcome `json:"outcome"`
	Seconds float64 `json:"seconds"`
	// Summary is what the phase did, in a few words.
	Summary string `json:"summary,omitempty"`
}
