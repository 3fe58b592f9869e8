package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

// Options describe a node agent. The zero value works.
type Options struct {
	// Name is the Node's name; default "lab-node". Two agents on one cluster need two names.
	Name string
	// Dir is where the Pods' folders go, with their logs; it is created when missing, and kept. Default: a temporary folder, which Stop removes.
	Dir string
	// PodConfig names the API server that the Pods' kubeconfigs point to, by Host and CA; its credentials are not used. Default: the
	// agent's own. It lets Pods go through a proxy while the agent does not.
	PodConfig *rest.Config
	// Backoff is the delay before a container's second restart; the first is immediate, and each further one waits twice as long, up to
	// 30 times Backoff. A container that ran for twice that maximum begins anew. Default 1 s (a kubelet's is 10 s).
	Backoff time.Duration
	// Log gets a line for each process that starts or ends; nil means silence.
	Log io.Writer
}

func (o *Options) validate() error {
	if o.Name == "" {
		o.Name = "lab-node"
	}
	if reasons := validation.IsDNS1123Subdomain(o.Name); len(reasons) > 0 {
		return fmt.Errorf("name %q: %s", o.Name, strings.Join(reasons, "; "))
	}
	if o.Backoff == 0 {
		o.Backoff = time.Second
	}
	if o.Backoff < 0 {
		return fmt.Errorf("backoff %s: must not be negative", o.Backoff)
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	return nil
}

// Node is a running agent. Its methods are safe for concurrent use.
type Node struct {
	options   Options
	dir       string
	client    kubernetes.Interface
	podConfig *rest.Config
	spawner   *spawner
	ports     ports
	events    record.EventRecorder
	lister    cache.Indexer // every Pod of the cluster
	binds     bindQueue

	logMu sync.Mutex // one line at a time to options.Log

	mu      sync.Mutex
	pods    map[podID]*pod
	stopped bool // no pod is added any more

	work sync.WaitGroup // every goroutine of the agent
	end  context.CancelFunc
	done chan struct{}
}

// Start registers the Node and starts to run Pods; cfg needs the rights of a cluster administrator. It returns when the Node is registered and
// the Pods are known. Ending ctx stops the agent just as Stop does.
func Start(ctx context.Context, cfg *rest.Config, o Options) (*Node, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	n := &Node{options: o, pods: map[podID]*pod{}, done: make(chan struct{})}
	if err := n.configure(cfg); err != nil {
		return nil, fmt.Errorf("node %s: %w", o.Name, err)
	}
	var err error
	if n.spawner, err = newSpawner(); err != nil {
		return nil, errors.Join(fmt.Errorf("node %s: %w", o.Name, err), n.removeDir())
	}
	// client-go says its piece to the same log; one that is full of watch errors while an API server is down helps nobody on standard error.
	ctx, n.end = context.WithCancel(klog.NewContext(ctx, funcr.New(func(_, line string) { n.logf("client: %s", line) }, funcr.Options{})))
	if err = n.start(ctx); err != nil {
		err = fmt.Errorf("node %s: %w", o.Name, err)
		n.end()
	}
	go n.finish(ctx)
	if err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

func (n *Node) configure(cfg *rest.Config) (err error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1 // one agent is the whole cluster's kubelet and scheduler
	cfg.UserAgent = "lab-node"
	if n.client, err = kubernetes.NewForConfig(cfg); err != nil {
		return err
	}
	if n.podConfig = n.options.PodConfig; n.podConfig == nil {
		n.podConfig = cfg
	}
	n.podConfig = rest.CopyConfig(n.podConfig)
	if err := rest.LoadTLSFiles(n.podConfig); err != nil {
		return err
	}
	if n.options.Dir == "" {
		n.dir, err = os.MkdirTemp("", "lab-node-")
		return err
	}
	if n.dir, err = filepath.Abs(n.options.Dir); err != nil {
		return err
	}
	return os.MkdirAll(n.dir, 0o755)
}

// start starts everything that ends with ctx.
func (n *Node) start(ctx context.Context) error {
	if err := n.register(ctx); err != nil {
		return err
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: n.client.CoreV1().Events("")})
	n.events = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "lab-node", Host: n.options.Name})
	n.work.Go(func() {
		<-ctx.Done()
		broadcaster.Shutdown()
	})
	n.work.Go(func() { n.keepAlive(ctx) })

	n.binds = newBindQueue()
	factory := informers.NewSharedInformerFactory(n.client, 0)
	informer := factory.Core().V1().Pods().Informer()
	n.lister = informer.GetIndexer()
	if _, err := informer.AddEventHandler(n.podEvents(ctx)); err != nil {
		return err
	}
	n.startBinding(ctx)
	factory.StartWithContext(ctx)
	n.work.Go(func() {
		<-ctx.Done()
		factory.Shutdown()
	})
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("reading the pods: %w", context.Cause(ctx))
	}
	return nil
}

// finish waits for the end of ctx and then for all that ends with it.
func (n *Node) finish(ctx context.Context) {
	<-ctx.Done()
	n.mu.Lock()
	n.stopped = true // from here on nothing is added to n.work but by what is already in it
	n.mu.Unlock()
	n.work.Wait()
	n.spawner.close()
	close(n.done)
}

// Stop kills all processes, waits until they are gone, and ends the agent. To the API server this is a machine that lost power: the Node and its
// Pods stay as they were last reported. An agent that starts later under the same name takes the Pods over and restarts their containers.
func (n *Node) Stop() error {
	n.end()
	<-n.done
	return n.removeDir()
}

// Done is closed when the agent has ended and no process of it is left.
func (n *Node) Done() <-chan struct{} { return n.done }

// Name is the Node's name.
func (n *Node) Name() string { return n.options.Name }

// Port returns LAB_PORT of a running container; false when there is no such container or it is not running now. A container that restarts
// gets another port.
func (n *Node) Port(namespace, pod, container string) (int, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, p := range n.pods {
		if id.namespace != namespace || id.name != pod {
			continue
		}
		if c := p.container(container); c != nil {
			if v := c.look(); v.running {
				return v.port, true
			}
		}
	}
	return 0, false
}

// LogPath is the file with what a container printed, all its restarts in one file. It stays when the Pod is gone.
func (n *Node) LogPath(p *corev1.Pod, container string) string {
	return filepath.Join(n.podDir(idOf(p)), container+".log")
}

func (n *Node) podDir(id podID) string {
	return filepath.Join(n.dir, fmt.Sprintf("%s_%s_%s", id.namespace, id.name, id.uid))
}

func (n *Node) removeDir() error {
	if n.options.Dir != "" {
		return nil
	}
	return os.RemoveAll(n.dir)
}

func (n *Node) logf(format string, args ...any) {
	n.logMu.Lock()
	defer n.logMu.Unlock()
	fmt.Fprintf(n.options.Log, "node "+n.options.Name+": "+format+"\n", args...)
}
