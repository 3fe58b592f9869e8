// Package race sets mappers against the race that this project is about, on a real control plane: a CRD stops serving a version
// while mappers find out what is served.
//
// [Script] plays the race move by move, with proxies that hold a request or an answer until the CRD has changed, so that the
// same mappers lose it every time. [Storm] plays it as life does: mappers are created at a rate, the CRD changes, and whoever looks
// at the wrong moment loses.
//
// All peers run side by side against the same change. What they are asked, and when, is the same for all; see package probe.
// The CRD is Cluster API's dockermachines, v1.5.2 to v1.6.0, which stops serving v1alpha4.
package race
