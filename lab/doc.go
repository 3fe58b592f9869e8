// Package lab runs a real Kubernetes control plane on this machine: etcd, any number of kube-apiservers that share it, and
// kube-controller-manager, each the upstream program built from its Go modules and run as a child process on loopback.
//
// Nothing in it stands in for anything: TLS, bearer tokens, RBAC and storage are the real ones. What a lab adds is control over time:
// a server can be stopped, killed, restarted, or made to lag behind its twin ([Server.SetLag]), and the packages below hold or
// delay single requests (proxy), run Pods as processes (node) and bring real CRDs (crds).
//
// A test starts one with [ForTest]; a program with [Start] and [Cluster.Stop]. Whatever the ending of the process that started a lab,
// SIGKILL included, its children end too, and the next start removes the state folder that was left behind.
//
// A lab needs Linux or macOS; the guarantee about children of a killed process is strongest on Linux, where the kernel gives it.
package lab
