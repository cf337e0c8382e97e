package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"baton/internal/flush/source/spec"
)

// These are the values of the setting "mode" of a target, which is the table that a flush writes.
const (
	modeUpsert  = "upsert"
	modeInsert  = "insert"
	modeReplace = "replace"
	modeDelete  = "delete"
)

// streamStart matches the values of the setting "start" of a stream.
var streamStart = regexp.MustCompile(`^(beginning|end|[0-9]{1,19}(-[0-9]{1,19})?)$`)

// from checks a source. Two jobs must not flush the same key if they remove its data, because each job would remove data that the other job
// needs.
func (v *validator) from(path string, f From, seen map[string]string, checks Checks) {
	sources := spec.Types()
	if f.Type == "" {
		v.fail(path+".type", "required: %s", orList(sources))
	}
	if v.choice(path+".type", f.Type, sources...); !slices.Contains(sources, f.Type) {
		return // the other required settings depend on the type
	}
	if !v.required(path+".key", f.Key, "user:<id>") {
		return
	}
	known := v.storeOf(path+".store", f.Store)
	at, kind := path+".key", f.Kind()
	lives, err := kind.Keys(f.Key)
	for i := 0; err == nil && i < len(lives) && !kind.Keyed() && checks.Key != nil; i++ {
		err = checks.Key(lives[i])
	}
	if err != nil {
		v.fail(at, "%v", err)
	}
	if kind.Indexed {
		lives, at = []string{f.Changed}, path+".changed"
		v.required(at, f.Changed, "changed:user, the set of changed ids")
	}
	v.choices(path, f)
	if !kind.Keeps && known {
		v.unshared(path, at, v.Store(f.Store).Place(), lives, seen)
	}
}

// unshared rejects a live key, which is a key that the application writes, if another job empties the same key in the same Redis. The
// argument lives contains the live keys of the source.
func (v *validator) unshared(path, at, place string, lives []string, seen map[string]string) {
	for _, one := range lives {
		if other, twice := seen[place+" "+stagedAs(one)]; twice && one != "" {
			v.fail(at, "%q is flushed by %s already; a key belongs to one job", one, other)
			return
		}
	}
	for _, one := range lives {
		seen[place+" "+stagedAs(one)] = strings.TrimSuffix(path, ".flush.from")
	}
}

// stagedAs returns the part that the names of all stages of a key have in common. A stage is a key that holds the data of one flush. The
// result is the same for k and {k}.
func stagedAs(key string) string {
	_, rest, _ := strings.Cut(key, "{")
	if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
		return key
	}
	return "{" + key + "}"
}

// choices checks the settings of a source that must be one of a few words.
func (v *validator) choices(path string, f From) {
	v.choice(path+".mode", f.Mode, ModeStage, ModeWatermark)
	v.choice(path+".on_decrease", f.OnDecrease, "stop", "subtract", "restart")
	v.choice(path+".on_missing", f.OnMissing, "delete", "ignore", "null")
	v.choice(path+".on_gap", f.OnGap, "stop", "continue")
	v.choice(path+".value", f.Value, "hash", "string", "json", "set", "zset")
	v.choice(path+".vanished", f.Vanished, "ignore", "delete")
	v.choice(path+".on_flush", f.OnFlush, "stop", "pass", "delete")
	if f.Start != "" && !streamStart.MatchString(f.Start) {
		v.fail(path+".start", "%q is not known here; write beginning, end, or the id of an entry, such as 1526919030474-0", f.Start)
	}
	if _, set := v.places[path+".max_pct"]; set && f.Kind().Takes(".from.max_pct") && !f.DeletesVanished() {
		with := "vanished: delete"
		if f.Kind().Takes(".from.on_missing") {
			with = "on_missing: delete or null"
		}
		v.fail(path+".max_pct", "only with %s; remove it", with)
	}
	if f.MaxPct < 0 || f.MaxPct > 100 {
		v.fail(path+".max_pct", "%d: must be from 1 to 100 percent of the table's rows", f.MaxPct)
	}
}

// DeletesVanished reports whether a pass or a repair deletes rows that have no record in Redis, or sets their columns to null.
func (f From) DeletesVanished() bool {
	return f.Vanished == "delete" || f.Kind().Takes(".from.on_missing") && f.OnMissing != "ignore"
}

// sizes checks the numbers of a flush, and settings that depend on each other.
func (v *validator) sizes(path string, f Flush) {
	v.options(path, f)
	if f.Lanes < 0 || f.Lanes > 16 {
		v.fail(path+".lanes", "%d: must be from 1 to 16 connections", f.Lanes)
	}
	if f.Lanes > 1 && v.Databases[f.To.Database].Driver == "sqlite" {
		v.fail(path+".lanes", "a SQLite file has one writer; remove it")
	}
	if f.BatchRows < 0 || f.BatchRows > 100_000 {
		v.fail(path+".batch_rows", "%d: must be from 1 to 100000 rows", f.BatchRows)
	}
	if f.BatchBytes != 0 && (f.BatchBytes < 64<<10 || f.BatchBytes > 1<<30) {
		v.fail(path+".batch_bytes", "%d: must be from 65536 to 1073741824 bytes", f.BatchBytes)
	}
	if f.DeadLetters.PerBatch < 0 {
		v.fail(path+".dead_letters.per_batch", "%d: must be 1 or more", f.DeadLetters.PerBatch)
	}
	if f.From.Vanished == "delete" && f.To.Generation == "" {
		v.fail(path+".from.vanished", "delete needs to.generation, an integer column that marks the rows that the last scan has seen")
	}
}

// to checks a target.
func (v *validator) to(path string, f Flush) {
	t := f.To
	if v.required(path+".database", t.Database, "main, a name under databases") {
		if _, ok := v.Databases[t.Database]; !ok {
			names := slices.Sorted(maps.Keys(v.Databases))
			if len(names) == 0 {
				v.fail(path+".database", "%q is not under databases, which is empty", t.Database)
			} else {
				v.fail(path+".database", "%q is not under databases; %s", t.Database, suggest(t.Database, names))
			}
		}
	}
	v.required(path+".table", t.Table, "articles")
	v.choice(path+".schema", t.Schema, "verify", "create")
	v.choice(path+".adopt", t.Adopt, "ask", "insert_only", "overwrite", "delete")
	if t.Adopt == "insert_only" && t.Generation == "" && f.From.Kind().Takes(".to.generation") {
		v.fail(path+".adopt",
			"insert_only needs generation, an integer column, because otherwise a scan cannot tell which rows it has written")
	}
	v.mode(path, f)
	for name, key := range map[string][]string{"key": t.Key, "dedupe_key": t.DedupeKey} {
		for i, col := range key {
			if col == "" || slices.Contains(key[:i], col) {
				v.fail(fmt.Sprintf("%s.%s[%d]", path, name, i), "%q: write each column once", col)
			}
		}
	}
}

// mode checks how the job treats existing rows, and the columns that identify the rows.
func (v *validator) mode(path string, f Flush) {
	t := f.To
	v.choice(path+".mode", t.Mode, modesOf(f.From.Kind())...)
	switch {
	case t.Mode == modeInsert && len(t.Key) > 0:
		v.fail(path+".key", "mode insert has no key; rename it to dedupe_key to skip rows that already exist, or remove it")
	case t.Mode == modeInsert:
	case len(t.DedupeKey) > 0:
		v.fail(path+".dedupe_key", "only with mode: insert; remove it")
	case len(t.Key) == 0:
		v.fail(path+".key", "required: the columns that identify a row, for example [id]")
	}
	if len(t.DeleteWhen) > 0 && t.Mode == modeDelete {
		v.fail(path+".delete_when", "with mode delete every record deletes its row; remove delete_when, or write mode: upsert")
	}
	if len(t.DeleteWhen) > 0 && t.Mode == modeInsert {
		v.fail(path+".delete_when", "rows are deleted by their key, and mode insert has none; write mode: upsert and a key")
	}
}

// modesOf returns the modes that fit the records of a source.
func modesOf(kind spec.Kind) []string {
	switch kind.Delivers {
	case spec.Increments:
		return []string{modeUpsert, modeInsert}
	case spec.States:
		return []string{modeUpsert, modeReplace}
	}
	return []string{modeUpsert, modeInsert, modeReplace, modeDelete}
}

// sweeps rejects a second scan into the same table, because each scan would delete the other's rows as vanished rows.
func (v *validator) sweeps(path string, f Flush, seen map[string]string) {
	if f.From.Type == spec.Capture && f.From.DeletesVanished() {
		v.captures(path, f, seen)
		return
	}
	if f.To.Generation == "" || !f.From.Kind().Takes(".to.generation") {
		return
	}
	table := f.To.Database + "\x00" + f.To.Table + "\x00" + f.To.Generation
	if other, twice := seen[table]; twice {
		v.fail(path+".to.generation", "column %s already counts the passes of %s in this table, "+
			"so each job would treat the rows of the other as vanished; give each job its own column", f.To.Generation, other)
		return
	}
	seen[table] = strings.TrimSuffix(path, ".flush")
}

// captures rejects a second capture into the same table, because each capture would delete the other's rows.
func (v *validator) captures(path string, f Flush, seen map[string]string) {
	table := f.To.Database + "\x00" + f.To.Table
	if other, twice := seen[table]; twice {
		v.fail(path+".to.table", "%s captures into table %s, too, so each job would delete the rows of the other; "+
			"give each job its own table, or set on_missing: ignore", other, f.To.Table)
		return
	}
	seen[table] = strings.TrimSuffix(path, ".flush")
}
