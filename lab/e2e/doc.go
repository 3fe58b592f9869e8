// Package e2e runs the command kubectl-changeover as a process against real control planes, and judges it by its exit code, by what
// it prints as JSON, and by what then stands on the cluster. Nothing here knows the engine: what a test reads is what a script
// of an operator could read.
//
// TestChangeover is the upgrade that started the project, Cluster API v1.5.2 to v1.6.0. TestTrouble kills, interrupts and
// disturbs runs, and has the same command go on. TestInput gives it what must be refused before anything changes,
// and what must go through although it looks odd.
package e2e
