// Package node is the lab's node agent: what a kubelet is on a machine, with processes in place of containers.
//
// It registers a Node, binds every Pod that has no node yet to it (a lab has no scheduler), and runs each container's
// command as a process of this machine. A Deployment that is scaled to zero therefore really stops a controller, and its
// Pods are gone from the API server only when their processes, and whatever those started in their process groups, are.
//
// What holds for a container:
//
//   - command is required, looked up on this machine, and runs with args; $(VAR) is expanded as Kubernetes does. The image is
//     documentation. A command that is missing, or is no executable file, leaves the container waiting with the reason
//     CommandNotFound, and is tried again with backoff.
//   - All Pods share 127.0.0.1. Each container gets LAB_PORT, a loopback port that was free when it started; a probe reaches it
//     by the port name "lab". Other port names are those of the container's own ports.
//   - Its environment is PATH, HOME and TMPDIR of the agent, HOSTNAME (the Pod's name), LAB_PORT, and env: literal values,
//     and fieldRefs to metadata.name, metadata.namespace, metadata.uid, spec.nodeName, spec.serviceAccountName, status.podIP and status.hostIP.
//   - When the Pod mounts its service account's token, as it does by default, KUBECONFIG names a file with such a token, bound to
//     the Pod and renewed. There are no files in /var/run/secrets and no KUBERNETES_SERVICE_HOST: rest.InClusterConfig does not work.
//   - It runs in workingDir, else in the Pod's own folder. Its output goes to a file, see [Node.LogPath].
//   - Readiness, liveness and startup probes by httpGet, tcpSocket and exec are real, with all their periods and thresholds.
//   - restartPolicy holds, with a shorter backoff than a kubelet's, see [Options].
//   - On deletion the process group gets SIGTERM, and after the grace period SIGKILL. When a container's main process ends, the
//     rest of its group is killed, as in a real container.
//
// What a process cannot have is refused with the waiting reason CreateContainerConfigError and a message: init containers,
// lifecycle hooks, gRPC probes, active deadlines, env from ConfigMaps and Secrets. Volumes, resources, security contexts, taints and
// node selectors are ignored.
//
// Processes never outlive the agent. When it is stopped it kills them. When the process that hosts it is killed, even with SIGKILL, the
// kernel kills each container's main process (Linux), and a watcher that the agent started kills each process group (any Unix). Only
// a process that leaves its process group can escape. The agent does not run on Windows.
//
// The package does without github.com/virtual-kubelet/virtual-kubelet. That removes a deleted Pod from the API server without asking its provider
// when no container status was written yet, and after the grace period whether or not the process has ended; when the process ends
// early, the Pod still stays for the whole grace period. "The Pod is gone" must mean "the process is gone" here. It would also raise 27
// modules below the lab's Kubernetes, gRPC and protobuf among them, so that the control plane were no longer the one that was released.
package node
