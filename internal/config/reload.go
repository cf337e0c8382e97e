package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Reloadable returns nil if a running node can change from the configuration old to c without a restart. Otherwise it returns Problems that
// say why not.
func (c Config) Reloadable(old Config) error {
	var changed []string
	for _, part := range []struct {
		path     string
		old, new any
	}{
		{"node", old.Node, c.Node}, {"redis", old.Redis, c.Redis}, {"election", old.Election, c.Election},
		{"http", old.HTTP, c.HTTP}, {"log.format", old.Log.Format, c.Log.Format}, {"history", old.History, c.History},
	} {
		changed = append(changed, differing(part.path, reflect.ValueOf(part.old), reflect.ValueOf(part.new))...)
	}
	changed = slices.DeleteFunc(changed, func(path string) bool { return path == "node.candidate" }) // the elector calls Observer again
	// Some values result from others, so the values that the operator has set come first.
	set := slices.DeleteFunc(slices.Clone(changed), func(path string) bool { _, ok := c.places[path]; return !ok })
	if len(set) > 0 {
		changed = set
	}
	found := c.movedStores(old)
	for _, path := range changed {
		found = append(found, c.Problem(path, "the setting has changed, and the change needs a restart: "+
			"systemctl restart baton, on one host after the other"))
	}
	return found.err()
}

// movedStores reports stores whose name is unchanged, but whose servers have changed. Records that jobs have staged at the old server would
// not reach any table, because baton would look for them at the new server.
func (c Config) movedStores(old Config) (found Problems) {
	for _, r := range c.AllStores()[1:] {
		name := r.StoreName
		if _, was := old.Stores[name]; was && old.Store(name).Place() != r.Place() && (c.reads(name) || old.reads(name)) {
			found = append(found, c.Problem(r.At(""), "the store is another server now, but changes may still be staged at "+
				"the old server: add the "+
				"new server under another name, and use that name in the jobs when nothing waits at the old server; or "+
				"systemctl restart baton, on one host after the other"))
		}
	}
	return found
}

// reads reports whether a job reads the store.
func (c Config) reads(store string) bool {
	return slices.ContainsFunc(c.Jobs, func(j Job) bool { return j.Flush.From.Store == store })
}

// differing returns the names of the settings that differ between two structs of the same type.
func differing(path string, a, b reflect.Value) []string {
	if reflect.DeepEqual(a.Interface(), b.Interface()) {
		return nil
	}
	if a.Kind() != reflect.Struct {
		return []string{path}
	}
	var paths []string
	for _, f := range reflect.VisibleFields(a.Type()) {
		if key := keyOf(f); key != "" {
			paths = append(paths, differing(strings.TrimPrefix(fmt.Sprintf("%s.%s", path, key), "."),
				a.FieldByIndex(f.Index), b.FieldByIndex(f.Index))...)
		}
	}
	return paths
}
