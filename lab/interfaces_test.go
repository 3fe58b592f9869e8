package lab_test

import (
	"github.com/changeover-dev/changeover/restmapper"
	"k8s.io/apimachinery/pkg/api/meta"
)

// The library builds against client-go v0.28, which has no mapper interfaces with contexts. This module is on a release that has, and
// so this is the place to see that the mapper satisfies them, too.
var (
	_ meta.ResettableRESTMapper            = (*restmapper.Mapper)(nil)
	_ meta.RESTMapperWithContext           = (*restmapper.Mapper)(nil)
	_ meta.ResettableRESTMapperWithContext = (*restmapper.Mapper)(nil)
)
