package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"baton/internal/flush/source/spec"
)

var jobName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

func (v *validator) jobs(checks Checks) {
	names, keys, swept, switches := map[string]string{}, map[string]string{}, map[string]string{}, map[Webhook]string{}
	for i, j := range v.Jobs {
		at := fmt.Sprintf("jobs[%d]", i)
		v.name(at+".name", j.Name, names)
		v.schedule(at+".schedule", j, checks)
		v.policy(at, j.Policy)
		v.pace(at, j, checks)
		v.webhook(at+".dead_mans_switch", j.DeadMansSwitch)
		v.alone(at+".dead_mans_switch", j.DeadMansSwitch, switches)
		if !v.work(at, j) {
			continue
		}
		before := len(v.problems)
		v.from(at+".flush.from", j.Flush.From, keys, checks)
		v.to(at+".flush.to", j.Flush)
		v.columns(at+".flush", j.Flush)
		v.sizes(at+".flush", j.Flush)
		v.verify(at+".flush.verify", j, checks)
		v.sweeps(at+".flush", j.Flush, swept)
		if checks.Flush != nil && len(v.problems) == before {
			if err := checks.Flush(v.StoreOf(j), j.Flush); err != nil {
				v.fail(at+".flush", "%v", err)
			}
		}
	}
}

// name checks the form of a job's name. It also checks that no two jobs have the same name, because they would share their fence and their
// history.
func (v *validator) name(path, name string, seen map[string]string) {
	if !v.required(path, name, "page-views") {
		return
	}
	if !jobName.MatchString(name) {
		v.fail(path, "%q: use lower-case letters, digits and dashes, at most 63 characters", name)
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
	if from := j.Flush.From; j.always() && from.Kind().Looks {
		v.fail(path, "@always waits for work, but only a full pass of this flush shows whether there is work; "+
			"write how often to make a pass, for example \"@every 1m\"")
		return
	}
	if checks.Schedule != nil {
		if err := checks.Schedule(j.Schedule, j.TimeZone); err != nil {
			v.fail(path, "%v", err)
		}
	}
}

// verify checks the settings that say when and how keys are compared with the table.
func (v *validator) verify(path string, j Job, checks Checks) {
	f := j.Flush.Verify
	if (f == Verify{}) || !v.required(path+".schedule", f.Schedule, `"30 3 * * *"`) {
		return
	}
	if schedule := (Job{Schedule: f.Schedule}); schedule.always() {
		v.fail(path+".schedule", "@always never ends; write how often to compare, for example \"@daily\"")
	} else if checks.Schedule != nil {
		if err := checks.Schedule(f.Schedule, j.TimeZone); err != nil {
			v.fail(path+".schedule", "%v", err)
		}
	}
	if _, ok := f.Part(); !ok {
		v.fail(path+".sample", "%q: must be a part of all keys such as 1%%, above 0%% and up to 100%%", f.Sample)
	}
	if f.Rate < 0 {
		v.fail(path+".rate", "%d: must be 1 or more keys per second", f.Rate)
	}
}

// columns checks the mapping of fields to columns. Without a mapping, baton reads the columns from the database's catalogue.
func (v *validator) columns(path string, f Flush) {
	kind := f.From.Kind()
	if len(f.Columns) == 0 {
		if kind.Columns != "" {
			v.fail(path+".columns", "required for %s; for example %s", kind.Type, kind.Columns)
		}
		if example, ok := valueColumns()[f.From.Value]; ok && kind.Takes(".from.value") {
			v.fail(path+".columns", "required for value: %s; for example %s", f.From.Value, example)
		}
		return
	}
	v.members(path, f)
	v.empties(path, f)
	adds := false
	for _, name := range slices.Sorted(maps.Keys(f.Columns)) {
		adds = v.column(path+".columns."+name, f.Columns[name], kind) || adds
	}
	if kind.Delivers == spec.Increments && !adds {
		v.fail(path+".columns", "no column takes the increments; add one, for example {views: $value}")
	}
	field, keys := "key", f.To.Key
	if f.To.Mode == string(modeInsert) {
		field, keys = "dedupe_key", f.To.DedupeKey
	}
	for i, key := range keys {
		at := fmt.Sprintf("%s.to.%s[%d]", path, field, i)
		if col, ok := f.Columns[key]; !ok {
			v.fail(at, "column %q is not under columns", key)
		} else if col.Op == "add" {
			v.fail(at, "column %q has op: add, but a column of the key identifies a row and cannot change", key)
		}
	}
}

// valueColumns returns example mappings for scanned values without fields.
func valueColumns() map[string]string {
	return map[string]string{
		"string": "{id: id, value: $value}", "set": "{id: id, member: $member}", "zset": "{id: id, member: $member, score: $score}",
	}
}

// members rejects a mapping that writes all members of a set to the same row.
func (v *validator) members(path string, f Flush) {
	kind := f.From.Kind()
	some := kind.Takes(".from.value") && (f.From.Value == "set" || f.From.Value == "zset")
	if !some && kind.Key != spec.KeyOfAll {
		return
	}
	if !slices.ContainsFunc(f.To.Key, func(key string) bool { return f.Columns[key].From == "$member" }) {
		v.fail(path+".to.key",
			"each member is a row, so one of these columns must be made from $member; otherwise all members of a key would be one row")
	}
}

// empties rejects a capture whose rows have no column that can be NULL.
func (v *validator) empties(path string, f Flush) {
	for name := range f.Columns {
		if !slices.Contains(f.To.Key, name) {
			return
		}
	}
	if f.From.Type == spec.Capture && f.From.OnMissing == "null" {
		v.fail(path+".from.on_missing", "null needs a column that is not in the key; write delete or ignore")
	}
}

// column checks a column. It reports whether the column adds a counter's increments.
func (v *validator) column(path string, c Column, kind spec.Kind) (adds bool) {
	v.choice(path+".op", c.Op, "set", "add")
	v.choice(path+".type", c.Type, "integer", "float", "numeric", "text", "bytes", "boolean", "timestamp", "date", "json", "uuid")
	v.choice(path+".missing", c.Missing, "error", "null", "keep")
	v.choice(path+".empty", c.Empty, "null")
	if c.Format != "" && c.Type != "" && c.Type != "timestamp" && c.Type != "date" {
		v.fail(path+".format", "only a timestamp or a date has a format, but this column is of type %s", c.Type)
	}
	if kind.Delivers == spec.States {
		if c.Op == "add" {
			v.fail(path+".op", "op: add is only for counters, list and stream, because a hash that is read twice would be added twice")
		}
		return false
	}
	if kind.Delivers != spec.Increments {
		return false
	}
	switch {
	case kind.Keyed() && c.From == "$field":
		v.fail(path+".from", "$field is only for counters in one hash; "+
			"here write the name of a captured part of the key, for example id of hits:<id>")
	case c.From != "$field" && c.From != "$value" && !kind.Keyed():
		v.fail(path+".from", "%q: a counter has $field, its field's name, and $value, its increment", c.From)
	case c.From == "$value" && c.Op == "set":
		v.fail(path+".op", "$value is an increment; set would lose the value of the row, write add or leave op out")
	case c.From == "$field" && c.Op == "add":
		v.fail(path+".op", "$field is a name, not a number; leave op out")
	}
	if c.Op == "add" && c.Type != "" && !slices.Contains([]string{"integer", "float", "numeric"}, c.Type) {
		v.fail(path+".type", "a column of type %s cannot have op: add; write integer, float or numeric", c.Type)
	}
	return c.From == "$value"
}
