// Package capi sets a lab up as a management cluster of Cluster API: the real CRDs of a release, an object of every kind,
// and for every provider a Deployment whose containers are the probes of lab/peers, one for each mapper. It is the setting of the report that
// started the project (kubernetes-sigs/cluster-api#10032), and the demo and the end-to-end tests share it.
package capi
