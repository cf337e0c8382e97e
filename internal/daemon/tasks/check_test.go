package tasks

import (
	"strings"
	"testing"

	"baton/internal/config"
	"baton/internal/flush/source/spec"
)

func TestChecksSayWhatOnlyOtherPackagesKnow(t *testing.T) {
	c := Checks()
	cluster := config.Redis{Cluster: []string{"127.0.0.1:7000"}}
	counters := func(changed string) config.Flush {
		return config.Flush{From: config.From{Type: spec.Counters, Key: "hits:<id>", Changed: changed}, To: config.To{Table: "t", Key: []string{"id"}},
			Columns: map[string]config.Column{"id": {}, "n": {From: "$value"}}}
	}
	hashes := func(change func(*config.Flush)) error {
		f := config.Flush{From: config.From{Type: spec.Hashes, Key: "user:<id>", Changed: "changed:user"}, To: config.To{Table: "t", Key: []string{"id"}},
			Columns: map[string]config.Column{"id": {Type: "integer"}, "born": {Type: "date"}}}
		change(&f)
		return c.Flush(config.Redis{}, f)
	}
	for _, x := range []struct {
		name string
		err  error
		want string // "" for none
	}{
		{"a good schedule", c.Schedule("30 2 * * *", "Asia/Shanghai"), ""},
		{"a schedule in a zone that is told elsewhere", c.Schedule("30 2 * * *", "Mars/Olympus"), ""},
		{"a bad minute", c.Schedule("61 * * * *", "UTC"), "61"},
		{"a schedule that never fires", c.Schedule("0 0 30 2 *", "UTC"), "never"},
		{"a good key", c.Key("views:3"), ""},
		{"a brace without a tag", c.Key("views}"), "hash tag"},
		{"an empty key", c.Key(""), "empty"},
		{"good hashes", hashes(func(*config.Flush) {}), ""},
		{"a table that is made", hashes(func(f *config.Flush) { f.To.Schema = "create" }), ""},
		{"an index without a slot", hashes(func(f *config.Flush) { f.From.Changed = "changed}" }), "from.changed: "},
		{"an index for each row", hashes(func(f *config.Flush) { f.From.Changed = "changed:<id>" }), "from.changed: "},
		{"shards of an index", hashes(func(f *config.Flush) { f.From.Changed = "changed:user:[0-15]" }), "write one set"},
		{"a table that is made of nothing", hashes(func(f *config.Flush) { f.To.Schema, f.Columns = "create", nil }), "`schema: create` needs `columns`"},
		{"an input of another source", hashes(func(f *config.Flush) { f.Columns["n"] = config.Column{From: "$field"} }), `"$field"`},
		{"a key that may be missing", hashes(func(f *config.Flush) { f.Columns["id"] = config.Column{Missing: "keep"} }), "part of the key"},
		{"a key that no column takes", hashes(func(f *config.Flush) { f.To.Key = []string{"ref"} }), "not among the `columns`"},
		{"a date of no form", hashes(func(f *config.Flush) { f.Columns["born"] = config.Column{Format: "nonsense"} }), "nonsense"},
		{"passes in the key", hashes(func(f *config.Flush) { f.To.Generation = "id" }), "only a source of type scan"},
		{"columns by name", hashes(func(f *config.Flush) { f.Columns = nil }), ""},
		{"good counters", c.Flush(config.Redis{}, counters("changed:hits")), ""},
		{"counters and index in slots of their own", c.Flush(cluster, counters("changed:hits")), "give both the same {tag}"},
		{"an index of counters without a slot", c.Flush(config.Redis{}, counters("changed}")), "from.changed: "},
	} {
		if (x.err == nil) != (x.want == "") || x.err != nil && !strings.Contains(x.err.Error(), x.want) {
			t.Errorf("%s: %v; want it to say %q", x.name, x.err, x.want)
		}
	}
}

func TestKeysThatTwoJobsShareAreNamed(t *testing.T) {
	job := func(name, key string) config.Job {
		return config.Job{Name: name, Schedule: "@every 5s", Flush: config.Flush{
			From:    config.From{Type: spec.Counters, Key: key},
			To:      config.To{Database: "main", Table: "t", Key: []string{"id"}},
			Columns: map[string]config.Column{"id": {From: "$field"}, "n": {From: "$value"}},
		}}
	}
	c := config.Default()
	c.Databases = map[string]config.Database{"main": {Driver: "sqlite", DSNFile: "x"}}
	c.Jobs = []config.Job{job("a", "views:[0-15]"), job("b", "views:[12-20]"), job("c", "views:[16-20]")}
	err := c.WithDefaults().Validate(Checks())
	if err == nil || !strings.Contains(err.Error(), `jobs[1].flush.from.key: "views:12" is flushed by jobs[0] already`) || strings.Contains(err.Error(), "jobs[2]") {
		t.Errorf("validate: %v", err)
	}
}
