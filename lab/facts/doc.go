// Package facts pins what this project relies on and Kubernetes does not promise: bodies of answers, the order in which parts of
// an API server notice a change, what lies in etcd after a write. It holds nothing but tests. When a new release of Kubernetes
// changes a fact, this suite says so first; then the rule that rests on it has to be thought through again, and only then the test changed.
//
// Each file is one subject, and each subtest's name is the fact. What differs between releases stands in one table, in release_test.go.
// LAB_KUBERNETES=1.34 runs the suite on that release.
package facts
