package facts

// release holds what differs between the releases of Kubernetes that the lab runs.
type release struct {
	// flags are given to the API servers.
	flags []string
	// betaForm is the content type of the answer to a request for aggregated discovery v2beta1, or legacy; betaFirst to one for v2beta1, v2, or legacy.
	betaForm, betaFirst string
	// managedFields of an object, one of whose entries is owner's at a version that is gone from the CRD: after somebody called writer
	// has changed another field, and after owner has applied at the new version.
	afterWrite  []string
	applyStatus int
	afterApply  []string
}

var releases = map[string]release{
	"1.34": {
		// Off by default since 1.33. With it 1.34 answers like 1.32 and before; 1.37 cannot be talked into it any more.
		flags:       []string{"--feature-gates=AggregatedDiscoveryRemoveBetaType=false"},
		betaForm:    aggregated1,
		betaFirst:   aggregated1,
		afterWrite:  nil,
		applyStatus: 200,
		afterApply:  []string{"owner v1"},
	},
	"1.37": {
		betaForm:    legacyForm,
		betaFirst:   aggregated,
		afterWrite:  []string{"owner v1beta1"},
		applyStatus: 500,
	},
}
