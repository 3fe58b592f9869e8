// Package probe is the main program that all peers share: it does with a RESTMapper what a controller does, and tells
// how the mapper fared.
//
// A probe creates mappers, at once (--mappers) or at a rate (--rate, up to --max), since a mapper is most easily misled
// while it is young. For each mapper, again and again (--interval), it maps every --kind without naming a version,
// asks for the mappings of all its versions, and lists through each mapping that it got. Lists ask for one object's
// metadata, so that an upgrade of many mappers stays cheap for the API server.
//
// Each program stands for one mapper and is told apart by nothing else: requests are counted below the mapper, by an
// http.RoundTripper that all of them share the code of.
//
// # Endpoints
//
// A probe serves HTTP at --listen:
//
//   - GET /readyz answers 200 while the API server answers. A controller whose mapper is stuck is still ready: that is
//     why such a controller goes unnoticed, and why readiness does not ask the mappers.
//   - GET /mappers answers with a [Count].
//   - POST /start lets a probe with --wait begin to create at its rate, so that several can be made to begin together.
//   - POST /freeze stops creating mappers, and answers with a [Count].
//   - GET /verdict?served=v1beta1 lets each mapper do one last lookup and list, and answers with a [Verdict]. Served names
//     the versions that the API server serves, separated by commas or repeated; an entry such as example.com/v1 speaks
//     for one group, and then alone for that group.
package probe
