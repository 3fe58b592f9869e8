// Package upgrade carries out a changeover: it brings CustomResourceDefinitions to new versions while the controllers behind
// them are down, and lets the controllers start only when every API server serves the new versions, so that no controller
// ever reads a half-changed discovery.
//
// The procedure is the list in procedure.go. Each phase has a package of its own, which knows nothing of the others:
// manifest, plan, access, quiesce, apply, converge, verify. A run that dies, is stopped or fails is continued by the same
// call again: what it has to remember stands on the cluster.
package upgrade
