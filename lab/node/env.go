package node

import (
	"os"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// PortEnv is the environment variable with the container's own loopback port, and PortName the name by which its probes reach it.
const (
	PortEnv  = "LAB_PORT"
	PortName = "lab"
)

// environment is the whole environment of a container's process. Nothing but what is named here comes from the agent's own: a
// KUBECONFIG of whoever runs the lab must never reach a Pod.
func environment(p *corev1.Pod, c *corev1.Container, port int, kubeconfig string) ([]string, error) {
	var env []string
	values := map[string]string{}
	add := func(name, value string) {
		env = append(env, name+"="+value) // the last one of a name wins
		values[name] = value
	}
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			add(name, value)
		}
	}
	add("HOSTNAME", p.Name)
	add(PortEnv, strconv.Itoa(port))
	if kubeconfig != "" {
		add("KUBECONFIG", kubeconfig)
	}
	for _, e := range c.Env {
		switch {
		case e.ValueFrom == nil:
			add(e.Name, expand(e.Value, values))
		case e.ValueFrom.FieldRef == nil:
			return nil, refuse(reasonConfig, "env %s: the lab's node has values and fieldRefs only", e.Name)
		default:
			value, ok := field(p, e.ValueFrom.FieldRef.FieldPath)
			if !ok {
				return nil, refuse(reasonConfig, "env %s: the lab's node does not know the field %s", e.Name, e.ValueFrom.FieldRef.FieldPath)
			}
			add(e.Name, value)
		}
	}
	return env, nil
}

func field(p *corev1.Pod, path string) (value string, known bool) {
	switch path {
	case "metadata.name":
		return p.Name, true
	case "metadata.namespace":
		return p.Namespace, true
	case "metadata.uid":
		return string(p.UID), true
	case "spec.nodeName":
		return p.Spec.NodeName, true
	case "spec.serviceAccountName":
		return p.Spec.ServiceAccountName, true
	case "status.podIP", "status.hostIP":
		return loopback, true
	}
	return "", false
}

// variables turns an environment into a map.
func variables(env []string) map[string]string {
	values := map[string]string{}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		values[name] = value
	}
	return values
}

// expand replaces each $(NAME) that values has; others stay as they are, and $$ is a plain $.
func expand(s string, values map[string]string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || i == len(s)-1 {
			return b.String() + s
		}
		b.WriteString(s[:i])
		s = s[i:]
		name, rest, closed := strings.Cut(s[1:], ")")
		switch {
		case s[1] == '$':
			b.WriteByte('$')
			s = s[2:]
		case s[1] == '(' && closed:
			if value, ok := values[name[1:]]; ok {
				b.WriteString(value)
			} else {
				b.WriteString("$" + name + ")")
			}
			s = rest
		default:
			b.WriteByte('$')
			s = s[1:]
		}
	}
}
