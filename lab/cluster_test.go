package lab_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/changeover-dev/changeover/lab"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestMain makes this test binary a program that holds a lab when a test here asks for it: see TestKilledOwnerLeavesNothing.
func TestMain(m *testing.M) {
	if os.Getenv("LAB_TEST_HOLD") == "1" {
		hold()
		return
	}
	os.Exit(m.Run())
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func clientFor(t *testing.T, cfg *rest.Config) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"k": "v"}}
}

func TestServersShareOneStore(t *testing.T) {
	c := lab.ForTest(t, lab.Options{Kubernetes: "1.37"})
	ctx := within(t, time.Minute)
	first, second := clientFor(t, c.Server(0).Config()), clientFor(t, c.Server(1).Config())
	if _, err := first.CoreV1().ConfigMaps("default").Create(ctx, configMap("shared"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := second.CoreV1().ConfigMaps("default").Get(ctx, "shared", metav1.GetOptions{}); err != nil {
		t.Errorf("through the other server: %v", err)
	}
	raw, err := c.Etcd().Get(ctx, "/registry/configmaps/default/shared")
	if err != nil || !strings.Contains(string(raw), "shared") {
		t.Errorf("in etcd: %q, %v", raw, err)
	}
	v, err := first.Discovery().ServerVersion()
	if err != nil || v.GitVersion != "v1.37.2" {
		t.Errorf("version %v, %v; want v1.37.2", v, err)
	}

	t.Run("RBAC is on", func(t *testing.T) {
		_, err := clientFor(t, c.ConfigAs("nobody")).CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("user nobody lists config maps: %v; want forbidden", err)
		}
		stranger := c.Config()
		stranger.BearerToken = "wrong"
		_, err = clientFor(t, stranger).CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
		if !apierrors.IsUnauthorized(err) {
			t.Errorf("a wrong token: %v; want unauthorized", err)
		}
	})

	t.Run("a killed server comes back with its data and its address", func(t *testing.T) {
		c.Server(1).Kill()
		if _, err := second.CoreV1().ConfigMaps("default").Get(ctx, "shared", metav1.GetOptions{}); err == nil {
			t.Error("the killed server still answers")
		}
		if _, err := first.CoreV1().ConfigMaps("default").Get(ctx, "shared", metav1.GetOptions{}); err != nil {
			t.Errorf("its twin stopped answering: %v", err)
		}
		if err := c.Server(1).Restart(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := second.CoreV1().ConfigMaps("default").Get(ctx, "shared", metav1.GetOptions{}); err != nil {
			t.Errorf("after the restart: %v", err)
		}
	})
}

func TestLaggingServerSeesLater(t *testing.T) {
	c := lab.ForTest(t, lab.Options{Lag: []int{1}, NoControllerManager: true})
	ctx := within(t, time.Minute)
	w, err := clientFor(t, c.Server(1).Config()).CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	const lag = 2 * time.Second
	c.Server(1).SetLag(lag)
	begin := time.Now()
	if _, err := clientFor(t, c.Server(0).Config()).CoreV1().ConfigMaps("default").Create(ctx, configMap("late"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case e := <-w.ResultChan():
			if m, ok := e.Object.(*corev1.ConfigMap); !ok || m.Name != "late" {
				continue
			}
			if seen := time.Since(begin); seen < lag {
				t.Errorf("the lagging server showed the object after %s; want at least %s", seen, lag)
			}
			return
		case <-ctx.Done():
			t.Fatal("the lagging server never showed the object")
		}
	}
}

func TestBadOptionsSayWhatIsPossible(t *testing.T) {
	for want, o := range map[string]lab.Options{
		`Kubernetes "1.30": the lab has 1.34 and 1.37`: {Kubernetes: "1.30"},
		"12 API servers: from 1 to 9":                  {APIServers: 12},
		"lag of API server 5: there are 2":             {Lag: []int{5}},
	} {
		if _, err := lab.Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; want %q", o, err, want)
		}
	}
	if _, err := lab.Build(t.Context(), "peer-nobody", t.Output()); err == nil {
		t.Error("building a peer that does not exist: no error")
	}
}

func TestAwaitSaysWhatItSawLast(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 120*time.Millisecond)
	defer cancel()
	n := 0
	err := lab.Await(ctx, "the moon", func(context.Context) (string, bool) { n++; return fmt.Sprintf("cloud %d", n), false })
	if err == nil || !strings.Contains(err.Error(), "the moon: not so after ") || !strings.Contains(err.Error(), fmt.Sprintf("last seen: cloud %d", n)) {
		t.Errorf("got %v", err)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v does not unwrap to the deadline", err)
	}
}

// hold starts a lab, prints its folder and the ids of its processes, and waits to be killed.
func hold() {
	c, err := lab.Start(context.Background(), lab.Options{NoControllerManager: true})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println(c.Dir(), c.Etcd().Process().PID(), c.Server(0).Process().PID(), c.Server(1).Process().PID())
	select {}
}

// TestKilledOwnerLeavesNothing kills a process that holds a lab: its children end by themselves, and the next start
// removes the folder.
func TestKilledOwnerLeavesNothing(t *testing.T) {
	ctx := within(t, 2*time.Minute)
	t.Setenv("TMPDIR", t.TempDir()) // a place of its own: any other lab that starts meanwhile would remove the folder, too
	owner := exec.CommandContext(ctx, os.Args[0])
	owner.Env = append(os.Environ(), "LAB_TEST_HOLD=1")
	owner.Stderr = t.Output()
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	fields := strings.Fields(line)
	if err != nil || len(fields) != 4 {
		t.Fatalf("the owner said %q, %v", line, err)
	}
	_ = owner.Process.Kill()
	_ = owner.Wait()
	for _, f := range fields[1:] {
		pid, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		err = lab.Await(ctx, "child "+f+" gone", func(context.Context) (string, bool) {
			err := syscall.Kill(pid, 0)
			return fmt.Sprintf("signal 0: %v", err), errors.Is(err, syscall.ESRCH)
		})
		if err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(fields[0]); err != nil {
		t.Fatalf("the folder should still be there, to show that the next start removes it: %v", err)
	}
	lab.ForTest(t, lab.Options{APIServers: 1, NoControllerManager: true})
	if _, err := os.Stat(fields[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there after the next start: %v", fields[0], err)
	}
}

func TestStopLeavesNothing(t *testing.T) {
	c, err := lab.Start(within(t, 2*time.Minute), lab.Options{APIServers: 1, NoControllerManager: true})
	if err != nil {
		t.Fatal(err)
	}
	pid := c.Server(0).Process().PID()
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(c.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the state folder is still there: %v", err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the API server's process is still there: %v", err)
	}
	if _, err := c.Process(lab.Command{Name: "late", Path: "true"}); err == nil {
		t.Error("a stopped lab started a process")
	}
}

func TestNamedLabs(t *testing.T) {
	const name = "test-named"
	if _, err := lab.Lookup(name); !errors.Is(err, lab.ErrNotRunning) {
		t.Fatalf("before: %v; want ErrNotRunning", err)
	}
	release, err := lab.Claim(name)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err := lab.Claim(name); err == nil || !strings.Contains(err.Error(), "runs already") {
		t.Errorf("a second claim: %v", err)
	}
	c := lab.ForTest(t, lab.Options{APIServers: 1, NoControllerManager: true})
	if err := c.Publish(name); err != nil {
		t.Fatal(err)
	}
	n, err := lab.Lookup(name)
	if err != nil || n.PID != os.Getpid() || len(n.Servers) != 1 {
		t.Errorf("lookup: %+v, %v", n, err)
	}
	release()
	if _, err := lab.Lookup(name); !errors.Is(err, lab.ErrNotRunning) {
		t.Errorf("after the release: %v; want ErrNotRunning", err)
	}
	if _, err := lab.Claim("../evil"); err == nil {
		t.Error("a name that is a path was taken")
	}
}
