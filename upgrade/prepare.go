package upgrade

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/changeover-dev/changeover/upgrade/access"
	"github.com/changeover-dev/changeover/upgrade/apply"
	"github.com/changeover-dev/changeover/upgrade/converge"
	"github.com/changeover-dev/changeover/upgrade/crd"
	"github.com/changeover-dev/changeover/upgrade/manifest"
	"github.com/changeover-dev/changeover/upgrade/plan"
	"github.com/changeover-dev/changeover/upgrade/quiesce"
	"github.com/changeover-dev/changeover/upgrade/verify"
)

// The phases that change nothing.

func (c *changeover) read(ctx context.Context) (string, error) {
	var err error
	if c.manifest, err = manifest.Read(c.Sources, c.Stdin); err != nil {
		return "", err
	}
	c.sayIgnored()
	// What is wrong without any cluster is said without any cluster.
	if err := plan.Check(c.manifest.CRDs); err != nil {
		return "", err
	}
	if err := access.Check(ctx, c.authorization, c.firstRules()); err != nil {
		return "", err
	}
	if c.siblings, err = c.findSiblings(ctx); err != nil {
		return "", err
	}
	live, err := c.fetch(ctx, c.wantedNames())
	if err != nil {
		return "", err
	}
	for _, d := range live {
		c.live[d.Name()] = d
	}
	return fmt.Sprintf("%d CRDs in %d groups, %d of them on the cluster", len(c.manifest.CRDs), len(c.groups()), len(live)), nil
}

func (c *changeover) sayIgnored() {
	for _, kind := range slices.Sorted(maps.Keys(c.manifest.Others)) {
		c.Progress(fmt.Sprintf("%d %s in the manifests: not applied, a changeover changes CRDs only", c.manifest.Others[kind], kind))
	}
	for _, d := range c.manifest.Deployments {
		c.Progress(fmt.Sprintf("deployment %s (%s): taken for a controller to stop and start; its manifest is not applied", c.shipped(d), d.Source))
	}
}

func (c *changeover) shipped(d manifest.Deployment) quiesce.Ref {
	if d.Namespace == "" {
		return quiesce.Ref{Namespace: c.Namespace, Name: d.Name}
	}
	return quiesce.Ref{Namespace: d.Namespace, Name: d.Name}
}

// firstRules are all rules that are known to be needed before anything of the cluster is.
func (c *changeover) firstRules() []access.Rule {
	rules := crdRules(c.wantedNames(), !c.readOnly)
	if c.readOnly {
		return rules
	}
	refs := slices.Clone(c.Controllers)
	for _, d := range c.manifest.Deployments {
		refs = append(refs, c.shipped(d))
	}
	if rules = append(rules, controllerRules(refs)...); c.ControllerSelector != "" {
		rules = append(rules, selectorRule())
	}
	return append(rules, objectRules(c.wantedNames(), nil)...)
}

func (c *changeover) plan(ctx context.Context) (string, error) {
	shipped := make([]quiesce.Ref, len(c.manifest.Deployments))
	for i, d := range c.manifest.Deployments {
		shipped[i] = c.shipped(d)
	}
	// Before the planner can refuse: a refusal has to say which controllers an earlier run left stopped.
	fleet, err := quiesce.Find(ctx, c.apps, c.core, quiesce.Options{
		Named: c.Controllers, Shipped: shipped, Selector: c.ControllerSelector,
		FieldManager: FieldManager, Interval: c.Interval, Progress: c.Progress,
	})
	if err != nil {
		return "", err
	}
	c.fleet = fleet
	c.result.Controllers = append(c.result.Controllers, fleet.Controllers...)
	if c.planned, err = plan.Make(c.manifest.CRDs, c.live); err != nil {
		return "", err
	}
	c.result.CRDs = c.planned.Changes
	return fmt.Sprintf("one stage: %d CRDs, %d controllers", len(c.planned.Changes), len(fleet.Controllers)), nil
}

func (c *changeover) preflight(ctx context.Context) (string, error) {
	if err := access.Check(ctx, c.authorization, c.laterRules()); err != nil {
		return "", err
	}
	// Before controllers are stopped is the time to learn that a server will never agree.
	if err := c.findServers(ctx); err != nil {
		return "", err
	}
	if err := c.servers.Check(ctx); err != nil {
		return "", err
	}
	actions, err := apply.DryRun(ctx, c.crds, c.manifest.CRDs, c.applyOptions())
	if err != nil {
		return "", err
	}
	counts := map[plan.Action]int{}
	for i := range c.planned.Changes {
		change := &c.planned.Changes[i]
		change.Action = actions[change.Name]
		counts[change.Action]++
	}
	c.before = verify.Observe(ctx, c.metadata, c.observed())
	if err := c.judgeUnreadable(); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d CRDs to create, %d to update, %d unchanged; %d objects",
		counts[plan.Create], counts[plan.Update], counts[plan.Unchanged], c.before.Objects()), nil
}

// findServers finds the API servers that have to agree.
func (c *changeover) findServers(ctx context.Context) (err error) {
	if c.servers, err = converge.FindServers(ctx, c.config, c.APIServers); err != nil {
		return err
	}
	c.result.Certainty = c.servers.Certainty
	for _, e := range c.servers.Endpoints {
		c.result.APIServers = append(c.result.APIServers, e.Name)
	}
	return nil
}

// laterRules are those that are needed because of what the cluster holds.
func (c *changeover) laterRules() []access.Rule {
	refs := make([]quiesce.Ref, len(c.fleet.Controllers))
	for i, controller := range c.fleet.Controllers {
		refs[i] = controller.Ref
	}
	rules := append(controllerRules(refs), objectRules(nil, c.siblings)...)
	if slices.ContainsFunc(c.planned.Changes, func(change plan.Change) bool { return change.Action == plan.Create }) {
		rules = append(rules, createRule())
	}
	return rules
}

func (c *changeover) applyOptions() apply.Options {
	return apply.Options{FieldManager: FieldManager, ForceConflicts: c.ForceConflicts}
}

// observed chooses, for each CRD that exists, the versions to watch in: first those served before and after, as their
// watches can go on.
func (c *changeover) observed() []verify.Resource {
	var resources []verify.Resource
	for _, w := range c.manifest.CRDs {
		live := c.live[w.Name()]
		if live == nil || len(live.Served()) == 0 {
			continue
		}
		r := verify.Resource{CRD: w.Name(), Group: w.Typed.Spec.Group, Plural: w.Typed.Spec.Names.Plural}
		var passing []string
		for _, version := range live.Served() {
			if slices.Contains(w.Served(), version) {
				r.Observed = append(r.Observed, version)
			} else {
				passing = append(passing, version)
			}
		}
		r.Observed = append(r.Observed, passing...)
		// Where no version is served before and after, the watch moves on to the new ones.
		for _, version := range w.Served() {
			if !slices.Contains(r.Observed, version) {
				r.Observed = append(r.Observed, version)
			}
		}
		resources = append(resources, r)
	}
	return resources
}

// judgeUnreadable refuses to begin where objects cannot be read before anything has changed. When an earlier run left the
// controllers down, their conversion webhooks are down too: then it goes on, or it could never.
func (c *changeover) judgeUnreadable() error {
	if len(c.before.Unreadable) == 0 {
		return nil
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(c.before.Unreadable)) {
		lines = append(lines, c.before.Unreadable[name].Error())
	}
	text := strings.Join(lines, "; ")
	if len(c.fleet.Held()) == 0 {
		return &UnreadableError{Reason: text}
	}
	c.Progress("objects cannot be listed while their controllers are down, and are not compared: " + text)
	return nil
}

// UnreadableError says that objects cannot be listed although nothing has changed yet.
type UnreadableError struct {
	Reason string
}

func (e *UnreadableError) Error() string { return "objects cannot be read as it is: " + e.Reason }

// Hints says what to do about it.
func (e *UnreadableError) Hints() []string {
	return []string{"mend that first, most likely the CRD's conversion webhook; nothing was changed"}
}

// overlaid gives the siblings of the wanted CRDs as they are, with the wanted ones in their place.
func overlaid(siblings, wanted []*crd.Definition) []*crd.Definition {
	byName := map[string]*crd.Definition{}
	for _, d := range siblings {
		byName[d.Name()] = d
	}
	var all []*crd.Definition
	for _, w := range wanted {
		d := *w
		if live := byName[w.Name()]; live != nil {
			typed := *w.Typed
			typed.Status = live.Typed.Status
			d.Typed = &typed
			delete(byName, w.Name())
		}
		all = append(all, &d)
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, byName[name])
	}
	return all
}
