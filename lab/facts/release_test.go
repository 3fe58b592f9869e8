package facts

// release holds what differs between the releases of Kubernetes that the lab runs.
type release struct {
	// flags are given to the API servers.
	flags []string
	// betaForm is the content type of the answer to a request for aggregated discovery v2beta1, or legacy; betaFirst to one for v2beta1, v2, or legacy.
	betaForm, betaFirst string
	// managedFields of an object, one of whose entries is owner's at a version that is gone from the CRD: after a patch with nothing in it, and after
	// somebody called writer has changed another field.
	afterEmptyPatch, afterWrite []string
}

var releases = map[string]release{
	"1.34": {
		// Off by default since 1.33. With it 1.34 answers like 1.32 and before; 1.37 cannot be talked into it any more.
		flags:           []string{"--feature-gates=AggregatedDiscoveryRemoveBetaType=false"},
		betaForm:        aggregated1,
		betaFirst:       aggregated1,
		afterEmptyPatch: nil, // so it is a write, which wipes all ownership
		afterWrite:      nil,
	},
	"1.37": {
		betaForm:        legacyForm,
		betaFirst:       aggregated,
		afterEmptyPatch: []string{"owner v1beta1"}, // no write
		afterWrite:      []string{"owner v1beta1"}, // the writer's own entry is not recorded
	},
}
