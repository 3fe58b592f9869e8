// Command kubectl-changeover brings CustomResourceDefinitions and their controllers to new versions; as a kubectl plugin it is
// kubectl changeover.
package main

import (
	"os"

	"github.com/changeover-dev/changeover/upgrade/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
