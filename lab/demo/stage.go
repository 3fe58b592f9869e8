package demo

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/changeover-dev/changeover/lab"
	"github.com/changeover-dev/changeover/lab/capi"
	"github.com/changeover-dev/changeover/lab/crds"
	"github.com/changeover-dev/changeover/lab/node"
	"github.com/changeover-dev/changeover/lab/race"
)

// dockerMachines is the number of objects at the version that goes away.
const dockerMachines = 5

// replicas of each controller: two, so that bringing back "one" would be noticed.
const replicas = 2

// prepare builds what is missing and takes both releases' CRDs out of their Go modules.
func (t *telling) prepare(ctx context.Context) (err error) {
	t.say(`Everything is the real thing, built from published Go modules: kube-apiserver, etcd, the controller manager, and
one small controller for each mapper. The first time this takes minutes, later seconds.`)
	log := t.quote()
	if _, err := lab.Build(ctx, "controlplane-"+t.options.Kubernetes, log); err != nil {
		return err
	}
	t.probes = map[string]string{}
	for _, peer := range race.Peers() {
		if t.probes[peer.Name], err = lab.Build(ctx, peer.Program(), log); err != nil {
			return err
		}
	}
	if t.command, err = lab.Build(ctx, "kubectl-changeover", log); err != nil {
		return err
	}
	if t.before, err = crds.ClusterAPI(ctx, oldRelease); err != nil {
		return err
	}
	if t.after, err = crds.ClusterAPI(ctx, newRelease); err != nil {
		return err
	}
	t.line("Cluster API %s: %d CRDs of %d providers; %s: %d CRDs.", oldRelease, len(crds.All(t.before)), len(t.before), newRelease, len(crds.All(t.after)))
	return nil
}

// start starts the lab, and a node on it.
func (t *telling) start(ctx context.Context) (err error) {
	begin := time.Now()
	if t.cluster, err = lab.Start(ctx, lab.Options{Kubernetes: t.options.Kubernetes}); err != nil {
		return err
	}
	if t.node, err = node.Start(ctx, t.cluster.Config(), node.Options{Dir: filepath.Join(t.cluster.Dir(), "node")}); err != nil {
		return err
	}
	t.line("Kubernetes %s: etcd, %d API servers, the controller manager and a node, up in %.1f s.",
		t.cluster.Kubernetes(), len(t.cluster.Servers()), time.Since(begin).Seconds())
	t.line("While this runs you can look at it:  kubectl --kubeconfig %s get crds", t.cluster.Kubeconfig())
	return nil
}

// showRace plays the race with one CRD, all mappers side by side.
func (t *telling) showRace(ctx context.Context) (err error) {
	t.say(`One CRD of the report, DockerMachine, goes from ` + oldRelease + ` to ` + newRelease + ` while controllers with four mappers start. A proxy in front
of the API server makes the bad moment certain. It is played three times: the mapper has read the list of versions
when v1alpha4 goes away ("version held"); the one big answer of newer API servers is on its way ("document held");
nothing is unlucky at all, the mapper just knew the old versions ("settled"). Five seconds later each mapper is asked:

  stuck   it answers with an error, for a kind that is served all the time
  stale   it answers with a version that is gone, so that the controller's next request fails`)
	if t.race, err = race.Script(ctx, t.cluster, race.ScriptOptions{}); err != nil {
		return err
	}
	if err := race.WriteTable(t.quote(), t.race); err != nil {
		return err
	}
	return t.checkRace()
}

func (t *telling) checkRace() error {
	happened := false
	for _, r := range t.race {
		if r.Peer == race.Ours() && r.Wrong() > 0 {
			return fmt.Errorf("%s: Changeover's own mapper was wrong: %d stuck, %d stale of %d", r.Mode, r.Verdict.Stuck, r.Verdict.Stale, r.Verdict.Mappers)
		}
		happened = happened || r.Peer != race.Ours() && r.Verdict.Stuck > 0
	}
	if !happened {
		return fmt.Errorf("no stock mapper got stuck: the race did not happen, so nothing was shown")
	}
	return nil
}

// install brings the cluster to the old release.
func (t *telling) install(ctx context.Context) (err error) {
	cfg := t.cluster.Config()
	if err := capi.RemoveCRD(ctx, cfg, "dockermachines.infrastructure.cluster.x-k8s.io"); err != nil {
		return err
	}
	if err := capi.InstallCRDs(ctx, cfg, t.before); err != nil {
		return err
	}
	if t.objects, err = capi.CreateObjects(ctx, cfg, t.before, dockerMachines); err != nil {
		return err
	}
	if err := capi.Namespaces(ctx, cfg, t.before); err != nil {
		return err
	}
	if t.controllers, err = capi.NewControllers(cfg, t.before, t.probes, replicas); err != nil {
		return err
	}
	if err := t.controllers.Create(ctx); err != nil {
		return err
	}
	if t.installed, err = t.judge(ctx, t.before); err != nil {
		return err
	}
	t.line("%d objects, %d of them DockerMachines made at v1alpha4.", len(t.objects), dockerMachines)
	t.line("%d Deployments of %d Pods, one per provider; each Pod runs one controller for each of the %d mappers.", len(t.before), replicas, len(t.probes))
	return nil
}
