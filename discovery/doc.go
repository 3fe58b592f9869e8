// Package discovery reads what Kubernetes API servers say they serve, and waits until they serve what is wanted.
//
// A [Client] talks to one API server. [Client.Fetch] reads everything in two conditional requests where the server has
// aggregated discovery, and the mere list of groups where it has not; [Client.FetchGroup] reads one group by itself. Both
// return values that never change afterwards, so that they can be shared between goroutines without a lock.
//
// The package does its own parsing, because it must not lose what the generic client throws away: group-versions that the
// server marks as stale stay in the [Snapshot], flagged, and an ETag is sent back, so that nothing is transferred or parsed
// when nothing has changed.
//
// [Await] compares several API servers with what is wanted, in every form in which a client could ask: aggregated, legacy,
// and a real list request. It is what stands between "the CRD is updated" and "controllers may start".
package discovery
