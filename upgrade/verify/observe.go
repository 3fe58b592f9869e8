// Package verify proves that a changeover lost nothing: it remembers every object before, watches who is deleted on
// purpose meanwhile, and reads every object in every served version after.
package verify

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
)

// pageSize bounds the memory of one list, here and in the API server.
const pageSize = 500

// rewatch is the pause before a watch that ended is opened anew. The update of a CRD ends every watch on its objects.
const rewatch = 100 * time.Millisecond

// Resource is one CRD's objects.
type Resource struct {
	CRD    string
	Group  string
	Plural string
	// Observed are the versions to list and watch in during the changeover, the best first: served before, and, as far as
	// there is one, after.
	Observed []string
}

func (r Resource) at(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: version, Resource: r.Plural}
}

// Observation remembers the objects of some resources and sees deletions until Stop. Safe for concurrent use.
type Observation struct {
	// Unreadable says, by CRD, why its objects could not be listed at the start; nothing of such a CRD is compared. It does
	// not change after Observe.
	Unreadable map[string]error

	cancel  context.CancelFunc
	running sync.WaitGroup

	mu sync.Mutex
	// objects holds, by CRD and UID, namespace and name of all objects at the start. Only metadata is ever read.
	objects map[string]map[types.UID]string
	// leaving holds the UIDs that were seen deleted or marked for deletion.
	leaving map[types.UID]bool
}

// Observe lists every object of the resources and keeps watching in the background until Stop. ctx bounds only the lists.
// What cannot be listed stands in Unreadable.
func Observe(ctx context.Context, client metadata.Interface, resources []Resource) *Observation {
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	o := &Observation{cancel: cancel, objects: map[string]map[types.UID]string{}, leaving: map[types.UID]bool{}, Unreadable: map[string]error{}}
	for _, r := range resources {
		objects := map[types.UID]string{}
		from, err := list(ctx, client, r.at(r.Observed[0]), func(object *metav1.PartialObjectMetadata) {
			objects[object.UID] = nameOf(object)
			o.note(object, false)
		})
		if err != nil {
			o.Unreadable[r.CRD] = fmt.Errorf("%s.%s in version %s: %w", r.Plural, r.Group, r.Observed[0], err)
			continue
		}
		o.objects[r.CRD] = objects
		o.running.Go(func() { o.watch(background, client, r, from) })
	}
	return o
}

// Stop ends the watching and waits for it.
func (o *Observation) Stop() {
	o.cancel()
	o.running.Wait()
}

// Objects counts what was there at the start.
func (o *Observation) Objects() int {
	n := 0
	for _, objects := range o.objects {
		n += len(objects)
	}
	return n
}

// Deleted counts the objects that were there at the start and were seen leaving.
func (o *Observation) Deleted() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, objects := range o.objects {
		for uid := range objects {
			if o.leaving[uid] {
				n++
			}
		}
	}
	return n
}

// lost names the objects of a CRD that were there at the start, are not in now, and were not seen leaving.
func (o *Observation) lost(crd string, now map[types.UID]bool) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var names []string
	for uid, name := range o.objects[crd] {
		if !now[uid] && !o.leaving[uid] {
			names = append(names, name)
		}
	}
	return names
}

func (o *Observation) note(object *metav1.PartialObjectMetadata, deleted bool) {
	if !deleted && object.DeletionTimestamp == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.leaving[object.UID] = true
}

// watch follows one resource through the changeover. Its watch ends when the CRD changes, and what it then missed before the
// next one is open is not known: an object that is deleted by somebody in just that moment counts as lost.
func (o *Observation) watch(ctx context.Context, client metadata.Interface, r Resource, from string) {
	version := 0
	for ctx.Err() == nil {
		at := r.at(r.Observed[version])
		watcher, err := client.Resource(at).Watch(ctx, metav1.ListOptions{ResourceVersion: from, AllowWatchBookmarks: true})
		if err == nil {
			from, err = o.follow(watcher, from)
		}
		switch {
		case apierrors.IsNotFound(err):
			version = (version + 1) % len(r.Observed)
		case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			// Newly made storage knows no history; begin where it begins.
			if page, err := client.Resource(at).List(ctx, metav1.ListOptions{Limit: 1}); err == nil {
				from = page.ResourceVersion
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(rewatch):
		}
	}
}

// follow reads a watch to its end and gives the resourceVersion to go on from, and the error that the server ended it
// with, if any.
func (o *Observation) follow(watcher watch.Interface, from string) (string, error) {
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if event.Type == watch.Error {
			return from, apierrors.FromObject(event.Object)
		}
		if object, ok := event.Object.(*metav1.PartialObjectMetadata); ok {
			from = object.ResourceVersion
			o.note(object, event.Type == watch.Deleted)
		}
	}
	return from, nil
}

// list reads all objects page by page and gives the resourceVersion of the list. A token that expires between two pages
// starts the list anew, so each may be called twice for an object.
func list(ctx context.Context, client metadata.Interface, at schema.GroupVersionResource, each func(*metav1.PartialObjectMetadata)) (string, error) {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := client.Resource(at).List(ctx, options)
		if options.Continue != "" && apierrors.IsResourceExpired(err) {
			options.Continue = ""
			continue
		}
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			each(&page.Items[i])
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return page.ResourceVersion, nil
		}
	}
}

func nameOf(object *metav1.PartialObjectMetadata) string {
	if object.Namespace == "" {
		return object.Name
	}
	return object.Namespace + "/" + object.Name
}
