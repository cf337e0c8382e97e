package spec

import (
	"slices"
	"testing"
)

func TestAKindIsFoundByWhatAConfigurationSays(t *testing.T) {
	for _, c := range []struct {
		sourceType, key string
		watermark       bool
		want            string
	}{
		{Counters, "views", false, "counters"}, {Counters, "views:[0-3]", true, "watermark"},
		{Counters, "hits:<id>", false, "plain"}, {Counters, "hits:<id>", true, "watermark keys"},
		{Hashes, "user:<id>", false, "hashes"}, {Hashes, "user", true, "hashes"}, {List, "queue", false, "list"},
		{Stream, "events", false, "stream"}, {Scan, "doc:<id>", false, "scan"}, {"files", "a", false, ""}, {"", "", false, ""},
	} {
		got, ok := Find(c.sourceType, c.key, c.watermark)
		if got.Name != c.want || ok != (c.want != "") {
			t.Errorf("%s of %q (watermark %v) is %q, want %q", c.sourceType, c.key, c.watermark, got.Name, c.want)
		}
		if ok && Named(c.want).Type != c.sourceType {
			t.Errorf("%q is not found by its name", c.want)
		}
	}
}

// Every entry of the table must be complete, so that readers of the table need not check that.
func TestEveryKindIsDescribedWholly(t *testing.T) {
	var names []string
	for _, k := range Kinds() {
		if k.Name == "" || k.Type == "" || k.Delivers == 0 || slices.Contains(names, k.Name) {
			t.Errorf("%+v is no whole kind of its own", k)
		}
		if k.Looks && !k.Keeps {
			t.Errorf("%s: what is taken out of Redis tells of work", k.Name)
		}
		if names = append(names, k.Name); k.Indexed != k.Takes(".from.changed") {
			t.Errorf("%s: an index is named in .from.changed", k.Name)
		}
		for _, other := range Kinds() {
			for setting := range other.Options {
				if lacks := k.Lacks[setting] != ""; other.Type == k.Type && lacks == k.Takes(setting) {
					t.Errorf("%s: %s is either taken, or lacks for a reason", k.Name, setting)
				}
			}
		}
	}
}

func TestTheKeysOfAKindAreThoseOfItsForm(t *testing.T) {
	for _, c := range []struct {
		kind, key string
		want      []string // nil: an error
	}{
		{"list", "queue:[0-1]", []string{"queue:0", "queue:1"}}, {"list", "queue:<id>", nil}, {"list", "queue:[1-0]", nil},
		{"hashes", "user:<id>", []string{"user:<id>"}}, {"hashes", "user", nil}, {"hashes", "user:<id>:<id>", nil},
		{"scan", "stock:<shop>:<item>", []string{"stock:<shop>:<item>"}}, {"scan", "stock:<shop><item>", nil},
	} {
		got, err := Named(c.kind).Keys(c.key)
		if (err == nil) != (c.want != nil) || err == nil && !slices.Equal(got, c.want) {
			t.Errorf("%s of %q: %q, %v; want %q", c.kind, c.key, got, err, c.want)
		}
	}
	for key, good := range map[string]bool{"board": true, "board:[3-3]": false, "board:[0-3]": false, "board:<id>": false, "": false} {
		if got, err := (Kind{Key: KeyOfAll}).Keys(key); (err == nil) != good {
			t.Errorf("the one key %q: %q, %v", key, got, err)
		}
	}
}
