package lab

import (
	"context"
	"fmt"
	"time"
)

// Await calls check every 50 ms until it says ok or ctx ends. The error names what was waited for, for how long, and what check
// saw last, so that a failed wait explains itself. check's context ends with ctx.
func Await(ctx context.Context, what string, check func(context.Context) (seen string, ok bool)) error {
	begin := time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		seen, ok := check(ctx)
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not so after %s; last seen: %s: %w", what, time.Since(begin).Round(time.Millisecond), seen, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
