package node

import "time"

// observed is what a Pod's worker knows when it decides.
type observed struct {
	deleting  bool          // the API server asks for the Pod's end
	grace     time.Duration // how long the processes may take for it
	gone      bool          // the API server no longer has the Pod
	running   bool          // a container's loop has not ended; then a process of it may be there
	reported  bool          // the API server has the status that holds now
	finalised bool          // the API server was told to remove the Pod
}

// next is what a Pod's worker does, in this order.
type next struct {
	stop     bool // every container, with the grace given
	grace    time.Duration
	report   bool // write the status
	finalise bool // remove the Pod from the API server
	forget   bool // end the worker
}

// step decides. The invariant: it finalises, or forgets, only when nothing runs.
func step(o observed) next {
	switch {
	case o.gone:
		// The Pod was removed by force. Somebody may already take "gone" for "ended": no grace.
		return next{stop: o.running, forget: !o.running}
	case o.deleting && o.running:
		return next{stop: true, grace: o.grace, report: !o.reported}
	case o.deleting:
		return next{report: !o.reported && !o.finalised, finalise: !o.finalised}
	default:
		return next{report: !o.reported}
	}
}
