package config

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

var jobName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

func (v *validator) jobs(checks Checks) {
	names, keys := map[string]string{}, map[string]string{}
	for i, j := range v.Jobs {
		at := fmt.Sprintf("jobs[%d]", i)
		v.name(at+".name", j.Name, names)
		v.schedule(at+".schedule", j, checks)
		v.zone(at+".time_zone", j.TimeZone)
		v.catchUp(at+".catch_up", j.CatchUp)
		if reflect.ValueOf(j.Flush).IsZero() {
			v.fail(at+".flush", "required: what to flush, from where, and to which table")
			continue
		}
		before := len(v.problems)
		v.from(at+".flush.from", j.Flush.From, keys, checks)
		v.to(at+".flush.to", j.Flush.To)
		v.columns(at+".flush", j.Flush)
		if checks.Flush != nil && len(v.problems) == before {
			if err := checks.Flush(j.Flush); err != nil {
				v.fail(at+".flush", "%v", err)
			}
		}
	}
}

// name makes sure that two jobs share neither fence nor history.
func (v *validator) name(path, name string, seen map[string]string) {
	if !v.required(path, name, "page-views") {
		return
	}
	if !jobName.MatchString(name) {
		v.fail(path, "%q: want lower-case letters, digits and dashes, at most 63", name)
	}
	if other, twice := seen[name]; twice {
		v.fail(path, "%q is the name of %s too", name, other)
		return
	}
	seen[name] = parent(path)
}

func (v *validator) schedule(path string, j Job, checks Checks) {
	if !v.required(path, j.Schedule, `"@every 5s" or "30 2 * * *"`) {
		return
	}
	if strings.HasPrefix(strings.TrimSpace(j.Schedule), "@always") {
		v.fail(path, "@always is not supported by this version; \"@every 1s\" comes close")
		return
	}
	if checks.Schedule != nil {
		if err := checks.Schedule(j.Schedule, j.TimeZone); err != nil {
			v.fail(path, "%v", err)
		}
	}
}

// from checks a source. No key is flushed by two jobs: each would take away what
// the other needs.
func (v *validator) from(path string, f From, seen map[string]string, checks Checks) {
	live, liveKey := f.Key, path+".key"
	switch f.Type {
	case "":
		v.fail(path+".type", "required: counters or hashes")
	case Counters:
		if f.Changed != "" {
			v.fail(path+".changed", "only hashes have an index of changes; remove it")
		}
		if f.OnMissing != "" {
			v.fail(path+".on_missing", "only for hashes; remove it")
		}
		v.pattern(path+".key", f.Key, checks.Key)
	case Hashes:
		live, liveKey = f.Changed, path+".changed"
		v.pattern(path+".key", f.Key, checks.RowKey)
		v.required(path+".changed", f.Changed, "changed:user, the set of changed ids")
		v.choice(path+".on_missing", f.OnMissing, "delete", "ignore", "null")
	case "list", "stream", "scan":
		v.fail(path+".type", "%s is not supported by this version; want counters or hashes", f.Type)
	default:
		v.choice(path+".type", f.Type, Counters, Hashes)
	}
	v.required(path+".key", f.Key, "user:<id>")
	lives := []string{live}
	if f.Type == Counters && checks.Keys != nil {
		lives = checks.Keys(live)
	}
	for _, one := range lives {
		if other, twice := seen[one]; twice && one != "" {
			v.fail(liveKey, "%q is flushed by %s already; a key belongs to one job", one, other)
			return
		}
	}
	for _, one := range lives {
		seen[one] = strings.TrimSuffix(path, ".flush.from")
	}
}

func (v *validator) pattern(path, key string, check func(string) error) {
	if check == nil || key == "" {
		return
	}
	if err := check(key); err != nil {
		v.fail(path, "%v", err)
	}
}

func (v *validator) to(path string, t To) {
	if v.required(path+".database", t.Database, "main, a name under databases") {
		if _, ok := v.Databases[t.Database]; !ok {
			names := slices.Sorted(maps.Keys(v.Databases))
			if len(names) == 0 {
				v.fail(path+".database", "%q is not under databases, where there is none", t.Database)
			} else {
				v.fail(path+".database", "%q is not under databases; %s", t.Database, suggest(t.Database, names))
			}
		}
	}
	v.required(path+".table", t.Table, "articles")
	if len(t.Key) == 0 {
		v.fail(path+".key", "required: the columns that identify a row, for example [id]")
	}
	for i, col := range t.Key {
		if col == "" || slices.Contains(t.Key[:i], col) {
			v.fail(fmt.Sprintf("%s.key[%d]", path, i), "%q: want each column once", col)
		}
	}
}

// columns checks the mapping. Without one, columns are found in the catalogue.
func (v *validator) columns(path string, f Flush) {
	if len(f.Columns) == 0 {
		if f.From.Type == Counters {
			v.fail(path+".columns", "required for counters; for example {id: $field, views: $value}")
		}
		return
	}
	adds := false
	for _, name := range slices.Sorted(maps.Keys(f.Columns)) {
		adds = v.column(path+".columns."+name, f.Columns[name], f.From.Type) || adds
	}
	if f.From.Type == Counters && !adds {
		v.fail(path+".columns", "no column takes the increments; for example {views: $value}")
	}
	for i, key := range f.To.Key {
		at := fmt.Sprintf("%s.to.key[%d]", path, i)
		if col, ok := f.Columns[key]; !ok {
			v.fail(at, "column %q is not under columns", key)
		} else if col.Op == "add" {
			v.fail(at, "column %q is added to; a key identifies a row and cannot change", key)
		}
	}
}

// column reports whether the column takes a counter's increments.
func (v *validator) column(path string, c Column, source string) (adds bool) {
	v.choice(path+".op", c.Op, "set", "add")
	v.choice(path+".type", c.Type, "integer", "float", "numeric", "text", "bytes", "boolean", "timestamp", "date", "json", "uuid")
	if c.Missing == "keep" {
		v.fail(path+".missing", "keep is not supported by this version; want error or null")
	} else {
		v.choice(path+".missing", c.Missing, "error", "null")
	}
	v.choice(path+".empty", c.Empty, "null")
	if c.Format != "" && c.Type != "" && c.Type != "timestamp" && c.Type != "date" {
		v.fail(path+".format", "only a timestamp or a date has a format, this is of type %s", c.Type)
	}
	if source != Counters {
		if c.Op == "add" {
			v.fail(path+".op", "only counters add; a hash read twice would be added twice")
		}
		return false
	}
	switch {
	case c.From != "$field" && c.From != "$value":
		v.fail(path+".from", "%q: a counter has $field, its field's name, and $value, its increment", c.From)
	case c.From == "$value" && c.Op == "set":
		v.fail(path+".op", "$value is an increment; set would lose what the row has, write add or leave op out")
	case c.From == "$field" && c.Op == "add":
		v.fail(path+".op", "$field is a name, not a number; leave op out")
	}
	if c.Op == "add" && c.Type != "" && !slices.Contains([]string{"integer", "float", "numeric"}, c.Type) {
		v.fail(path+".type", "%s cannot be added to; want integer, float or numeric", c.Type)
	}
	return c.From == "$value"
}
