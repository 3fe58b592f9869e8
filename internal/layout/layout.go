// Package layout holds the tests that keep the repository in shape: which package may import which, what no code here may do, and that
// the documentation names files that exist. It has no code of its own.
package layout
