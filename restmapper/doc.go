// Package restmapper provides a meta.RESTMapper that keeps up with the API server.
//
// A [Mapper] answers all lookups from one immutable index of what the server serves. A hit does no I/O, takes no lock and waits
// for nobody. The index is renewed as a whole, never patched, so that versions, kinds, scopes and preferences follow the
// server in both directions, and nothing sticks:
//
//   - A miss asks the server. All misses share one read at a time, and a storm of them costs at most 18 requests per second.
//     A miss comes back within one round trip; when another read began less than a quarter of a second ago, that one must do.
//   - What is known is revalidated while it is in use: see [Options.Interval]. It costs two conditional requests, mostly
//     answered by 304. Without [Mapper.Start] the first hit on old knowledge begins it, and does not wait.
//   - A 404 that says "page not found", instead of naming an object, on a resource that the mapper believes to be served, is
//     evidence that a version is gone. [Mapper.WrapTransport] sees it in passing; the mapper then reads anew until discovery
//     has caught up, for 15 s at most.
//
// What does not exist is always an error for which meta.IsNoMatchError is true: [NoMatchError] also names the versions that are
// served. What cannot be known now is an [UnknownError].
//
// # Servers without aggregated discovery
//
// There, the groups are listed and a group's versions are read when the group is first asked for, at most once at a time. A
// version that is listed but not served does no harm to the others, and its group is read again soon. A miss reads its group
// again, or the list when the group is not in it. A resource without a group can be anywhere: its miss reads every group,
// eight at a time, at most once per second.
//
// # Answers
//
// All answers are those of client-go's NewDiscoveryRESTMapper for the same discovery, and each call returns its own copy. Where
// client-go's answer varies from run to run, as it does when two resources of a version have the same singular, the mapper's
// does not.
package restmapper
