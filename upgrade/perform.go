package upgrade

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/changeover-dev/changeover/discovery"
	"github.com/changeover-dev/changeover/upgrade/apply"
	"github.com/changeover-dev/changeover/upgrade/converge"
	"github.com/changeover-dev/changeover/upgrade/crd"
	"github.com/changeover-dev/changeover/upgrade/plan"
	"github.com/changeover-dev/changeover/upgrade/quiesce"
	"github.com/changeover-dev/changeover/upgrade/verify"
)

// The phases that change the cluster, and those that wait for it.

func (c *changeover) quiesce(ctx context.Context) (string, error) {
	if !c.changesAnything() || len(c.fleet.Controllers) == 0 {
		return "", nil
	}
	writing, cancel := steady(ctx)
	defer cancel()
	c.stopped, c.downFrom = true, time.Now()
	if err := c.fleet.Stop(writing); err != nil {
		return "", err
	}
	if err := c.fleet.AwaitGone(ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d controllers at zero, their Pods gone", len(c.fleet.Controllers)), nil
}

func (c *changeover) apply(ctx context.Context) (string, error) {
	if !c.changesAnything() {
		return "", nil
	}
	if err := c.fleet.StillDown(ctx); err != nil {
		return "", err
	}
	writing, cancel := steady(ctx)
	defer cancel()
	var changed []*crd.Definition
	for i, change := range c.planned.Changes {
		if change.Action != plan.Unchanged {
			changed = append(changed, c.manifest.CRDs[i])
		}
	}
	c.applying = true
	if err := apply.All(writing, c.crds, changed, c.applyOptions(), c.Progress); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d CRDs written", len(changed)), nil
}

func (c *changeover) converge(ctx context.Context) (string, error) {
	// By name, not by listing anew: a group is judged as of all its CRDs, the new ones included.
	names := append(slices.Clone(c.siblings), c.wantedNames()...)
	slices.Sort(names)
	siblings, err := c.fetch(ctx, slices.Compact(names))
	if err != nil {
		return "", err
	}
	var before []*crd.Definition
	for _, d := range c.live {
		before = append(before, d)
	}
	wants := converge.Wants(c.groups(), before, overlaid(siblings, c.manifest.CRDs))
	if len(c.servers.Endpoints) == 0 { // there was no preflight
		if err := c.findServers(ctx); err != nil {
			return "", err
		}
	}
	c.Progress("asking " + c.servers.Certainty)
	var report discovery.Report
	await := func(ctx context.Context) error {
		report, err = discovery.Await(ctx, c.servers.Endpoints, wants, discovery.AwaitOptions{Interval: c.Interval, OnProgress: c.tellRounds()})
		return err
	}
	if c.fleet != nil {
		err = c.fleet.Guard(ctx, await)
	} else {
		err = await(ctx)
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d API servers serve %d groups as wanted, after %d rounds", len(c.servers.Endpoints), len(wants), report.Rounds), nil
}

// tellRounds says something when a round finds another number of differences than the one before.
func (c *changeover) tellRounds() func(discovery.Progress) {
	last := 0
	return func(p discovery.Progress) {
		if n := len(p.Differences); n != last && n > 0 {
			d := p.Differences[0]
			c.Progress(fmt.Sprintf("round %d: %d differences; the first: %s, %s %s: wanted %s, is %s", p.Round, n, d.Endpoint, d.Form, d.Path, d.Want, d.Have))
		}
		last = len(p.Differences)
	}
}

func (c *changeover) resume(ctx context.Context) (string, error) {
	if len(c.fleet.Controllers) == 0 {
		return "", nil
	}
	writing, cancel := steady(ctx)
	defer cancel()
	held := len(c.fleet.Held())
	// Since when those are down that an earlier run stopped is not known here.
	downBefore := slices.ContainsFunc(c.fleet.Controllers, func(controller *quiesce.Controller) bool { return controller.Earlier })
	if held > 0 {
		if err := c.fleet.StillDown(ctx); err != nil {
			return "", err
		}
		c.resumed = true
	}
	if err := c.fleet.Start(writing); err != nil {
		return "", err
	}
	if err := c.fleet.AwaitReady(ctx); err != nil {
		return "", err
	}
	if c.stopped && !downBefore {
		c.result.DownSeconds = time.Since(c.downFrom).Seconds()
	}
	var err error
	if c.restarts, err = c.fleet.Restarts(ctx); err != nil {
		return "", err
	}
	if held == 0 {
		return "", nil
	}
	return fmt.Sprintf("%d controllers at their replicas and ready", held), nil
}

// readableWithin bounds how long verify tries to read objects in one go: controllers are ready, so only the way to their
// conversion webhooks may need a moment.
const readableWithin = 30 * time.Second

func (c *changeover) verify(ctx context.Context) (string, error) {
	crds, err := c.fetch(ctx, c.wantedNames())
	if err != nil {
		return "", err
	}
	reading, cancel := context.WithTimeout(ctx, readableWithin)
	defer cancel()
	report := verify.Objects(reading, c.metadata, crds, c.before)
	after, err := c.fleet.Restarts(ctx)
	if err != nil {
		return "", err
	}
	report.Restarting = verify.Restarting(c.restarts, after)
	c.result.Verify = &report
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if report.Failed() {
		return "", &verify.FailedError{Report: report}
	}
	for _, u := range report.Untrimmed {
		c.Progress(fmt.Sprintf("crd %s: untrimmed: objects may still be stored in %v", u.CRD, u.Versions))
	}
	return fmt.Sprintf("%d objects readable in each of %d served versions, none lost, %d CRDs untrimmed",
		report.Objects-report.Deleted, report.Versions, len(report.Untrimmed)), nil
}
