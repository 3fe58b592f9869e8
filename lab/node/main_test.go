package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// The test binary plays further parts, by the environment variable NODE_TEST_PART: the program in a Pod, and the process that hosts an agent.
func TestMain(m *testing.M) {
	var err error
	switch part := os.Getenv("NODE_TEST_PART"); part {
	case "":
		os.Exit(m.Run())
	case "pod":
		err = playPod(os.Getenv("NODE_TEST_NAME"))
	case "host":
		err = playHost()
	case "spawner":
		err = playSpawner()
	default:
		err = fmt.Errorf("no part %q", part)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// playPod calls the test's switchboard, says who it is, and does what it is told over that connection. The connection breaks when this process ends,
// which is how the test knows, without asking for process ids that may be somebody else's.
func playPod(name string) error {
	conn, err := net.Dial("tcp", os.Getenv("NODE_TEST_SWITCHBOARD"))
	if err != nil {
		return err
	}
	fmt.Fprintf(conn, "%s %d %s %s %s\n", name, os.Getpid(), os.Getenv(PortEnv), os.Getenv("POD_UID"), os.Getenv("KUBECONFIG"))
	var ready, live atomic.Bool
	live.Store(true)
	if port := os.Getenv(PortEnv); port != "" && name != "child" {
		http.HandleFunc("/readyz", statusOf(&ready))
		http.HandleFunc("/livez", statusOf(&live))
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, port))
		if err != nil {
			return err
		}
		go http.Serve(l, nil)
	}
	orders := bufio.NewScanner(conn)
	for orders.Scan() {
		switch verb, arg, _ := strings.Cut(orders.Text(), " "); verb {
		case "ready":
			ready.Store(arg == "true")
		case "live":
			live.Store(arg == "true")
		case "stubborn":
			signal.Ignore(syscall.SIGTERM)
		case "exit":
			code, _ := strconv.Atoi(arg)
			os.Exit(code)
		case "child":
			child := exec.Command(os.Args[0])
			child.Env = append(os.Environ(), "NODE_TEST_NAME=child")
			if err := child.Start(); err != nil {
				return err
			}
		}
		fmt.Fprintln(conn, "ok")
	}
	return errors.New("the switchboard hung up")
}

func statusOf(ok *atomic.Bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if !ok.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
}

// playHost runs an agent until it is killed.
func playHost() error {
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("NODE_TEST_KUBECONFIG"))
	if err != nil {
		return err
	}
	n, err := Start(context.Background(), cfg, Options{Name: os.Getenv("NODE_TEST_NAME"), Dir: os.Getenv("NODE_TEST_DIR"), Log: os.Stderr})
	if err != nil {
		return err
	}
	<-n.Done()
	return nil
}

// playSpawner starts one process with a spawner and waits to be killed.
func playSpawner() error {
	s, err := newSpawner()
	if err != nil {
		return err
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "NODE_TEST_PART=pod", "NODE_TEST_NAME=main")
	p, err := s.start(cmd)
	if err != nil {
		return err
	}
	<-p.done
	return nil
}
