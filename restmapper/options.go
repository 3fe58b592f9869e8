package restmapper

import (
	"fmt"
	"time"
)

const (
	defaultInterval = 30 * time.Second
	defaultTimeout  = 10 * time.Second
	// shortestInterval keeps the background within the budget that misses have.
	shortestInterval = 100 * time.Millisecond
)

// Options of a Mapper. The zero value is fit for use.
type Options struct {
	// Interval is how old knowledge may get, while the mapper is in use, before it is revalidated in the background; 30 s when
	// zero, at least 100 ms. Changes come in bursts, so that for a minute and a half after the first read and after each change
	// the mapper looks more often: every second at first, then ever more rarely.
	Interval time.Duration
	// Timeout is the longest time that one read of discovery may take, and so the longest time for which a refresh that nobody
	// waits for any more goes on; 10 s when zero.
	Timeout time.Duration
	// MaxBytes is the largest discovery document that is read, after decompression; discovery's default when zero.
	MaxBytes int64
	// LegacyOnly never asks for aggregated documents.
	LegacyOnly bool
}

func (o Options) validate() error {
	switch {
	case o.Interval != 0 && o.Interval < shortestInterval:
		return fmt.Errorf("restmapper options: interval %v is shorter than %v", o.Interval, shortestInterval)
	case o.Timeout < 0:
		return fmt.Errorf("restmapper options: timeout %v is negative", o.Timeout)
	case o.MaxBytes < 0:
		return fmt.Errorf("restmapper options: size limit %d is negative", o.MaxBytes)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Interval == 0 {
		o.Interval = defaultInterval
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	return o
}
