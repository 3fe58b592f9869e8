package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/changeover-dev/changeover/upgrade"
)

func renderUpgrade(w io.Writer, r *upgrade.Result) {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "PHASE\tRESULT\tSECONDS\t")
	for _, p := range r.Phases {
		fmt.Fprintf(table, "%s\t%s\t%.2f\t%s\n", p.Name, p.Outcome, p.Seconds, p.Summary)
	}
	table.Flush()
	if r.DownSeconds > 0 {
		fmt.Fprintf(w, "\nControllers were down for %.1f s.\n", r.DownSeconds)
	}
	if r.Verify != nil {
		for _, u := range r.Verify.Untrimmed {
			fmt.Fprintf(w, "Untrimmed: %s may still store objects in %s.\n", u.CRD, strings.Join(u.Versions, ", "))
		}
	}
	if r.Outcome == upgrade.NothingToDo {
		fmt.Fprintln(w, "Nothing to do: the cluster is as wanted.")
	}
}

func renderPlan(w io.Writer, r *upgrade.Result) {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "CRD\tACTION\tSERVED AFTER\tSTARTS\tSTOPS\tSTORAGE\tSTAYS STORED\tCONVERSION")
	for _, c := range r.CRDs {
		storage := c.StorageAfter
		if c.StorageBefore != "" && c.StorageBefore != c.StorageAfter {
			storage = c.StorageBefore + " -> " + c.StorageAfter
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Name, c.Action,
			list(c.Served), list(c.Starts), list(c.Stops), storage, list(c.Untrimmed), orDash(c.Conversion))
	}
	table.Flush()
	if r.Outcome == upgrade.NothingToDo {
		fmt.Fprintln(w, "\nNothing to do: the cluster is as wanted.")
		return
	}
	fmt.Fprintln(w, "\nOne stage:")
	for _, c := range r.Controllers {
		fmt.Fprintf(w, "  stop deployment %s (%d replicas), and start it again at the end\n", c.Ref, c.Replicas)
	}
	if len(r.Controllers) == 0 {
		fmt.Fprintln(w, "  stop no controller: none is named, so those that there are keep running")
	}
	fmt.Fprintln(w, "  write the CRDs above, then wait until every API server serves exactly that")
}

func renderWait(w io.Writer, r *upgrade.Result) {
	fmt.Fprintf(w, "Converged: %s (%s).\n", strings.Join(r.APIServers, ", "), r.Certainty)
}

func list(s []string) string { return orDash(strings.Join(s, ",")) }

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
