package demo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/changeover-dev/changeover/lab"
	"github.com/changeover-dev/changeover/lab/capi"
	"github.com/changeover-dev/changeover/lab/crds"
	"github.com/changeover-dev/changeover/lab/race"
)

// change runs the command as an operator would.
func (t *telling) change(ctx context.Context) error {
	t.say(`The same upgrade for all providers, as one changeover: first everything is looked at, then the controllers stop, all
CRDs change, and the controllers come back only when both API servers serve exactly the new versions. There is
no moment left at which a controller could ask and get an old answer.`)
	files, err := crds.Write(filepath.Join(t.cluster.Dir(), "release"), t.after)
	if err != nil {
		return err
	}
	args := []string{"upgrade", "--kubeconfig", t.cluster.Kubeconfig(), "--controller-selector", capi.ProviderLabel}
	for i, s := range t.cluster.Servers() {
		args = append(args, "--apiserver", fmt.Sprintf("server-%d=%s", i, s.URL()))
	}
	shown := "kubectl changeover upgrade --controller-selector " + capi.ProviderLabel
	for _, f := range files {
		args = append(args, "-f", f)
		shown += " \\\n      -f " + filepath.Base(f)
	}
	t.line("$ %s\n", shown)
	p, err := t.cluster.Process(lab.Command{Name: "kubectl-changeover", Path: t.command, Args: args, Stdout: t.quote(), Stderr: t.quote()})
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), p.Stop(context.WithoutCancel(ctx)))
	}
	if err := p.Wait(); err != nil {
		return fmt.Errorf("kubectl changeover upgrade: %w", err)
	}
	return nil
}

// conclude asks every controller once more, counts the objects, and ends with the table.
func (t *telling) conclude(ctx context.Context) (err error) {
	if err := t.controllers.AwaitReady(ctx); err != nil {
		return err
	}
	if t.changed, err = t.judge(ctx, t.after); err != nil {
		return err
	}
	lost, err := t.objects.Lost(ctx, t.cluster.Config(), t.after)
	if err != nil {
		return err
	}
	t.table()
	if len(lost) > 0 {
		return fmt.Errorf("%d of %d objects are lost: %s", len(lost), len(t.objects), strings.Join(lost, "; "))
	}
	t.line("All %d objects are there, each with the UID that it was created with. All %d controllers run with the %d replicas that they had.",
		len(t.objects), len(t.before), replicas)
	for _, peer := range race.Peers() {
		s := t.changed[peer.Name]
		if s.wrong() > 0 {
			return fmt.Errorf("after the changeover %d mappers of %s are stuck and %d stale of %d: %s", s.stuck, peer.Name, s.stale, s.mappers, s.sample)
		}
	}
	t.line("")
	t.say(`What to look at: on the left the stock mappers get stuck or stay stale, and Changeover's does not. That is the
library's half, for those who write controllers; its price are a few more requests while it makes sure that it saw the
end of a change. On the right nobody is stuck, whatever the mapper. That is the command's half, for those who run
clusters and cannot change the controllers.`)
	return nil
}
