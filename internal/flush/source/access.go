package source

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"baton/internal/flush/source/spec"
	"baton/internal/flush/source/staging"
	"baton/internal/redisconn"
)

// stagingCommands are those of every source that stages.
var stagingCommands = []string{"TYPE K", "EXISTS K", "RENAME K S", "TYPE S", "EXISTS S", "PERSIST S", "UNLINK S",
	"EXISTS M", "HGET M id", "HMGET M id", "HSET M id 1", "UNLINK M", "EVAL s 3 K S M", "EVALSHA s 3 K S M"}

// captureName is a name in a pattern of keys.
var captureName = regexp.MustCompile(`<[^<>]+>`)

// Access is the list of commands that the source sends to Redis, be it a Cluster or one server; with wait also those that wait for work.
func (d Source) Access(wait, cluster bool) redisconn.Access {
	commands := func(holds string) []string {
		all := d.commands(d.options, holds)
		if wait {
			all = slices.Concat(all, d.waitCommands)
		}
		if cluster {
			all = slices.Concat(all, d.clusterCommands)
		}
		return all
	}
	a := redisconn.Access{
		Subject: fmt.Sprintf("job %q", d.options.Job), Shows: "at the first flush",
		Consequence: "every flush fails; nothing is lost, the changes wait", Follows: d.Type == spec.Capture,
	}
	live, row := d.live()
	for _, key := range live {
		p := redisconn.Place{ByType: commands, Key: ofOne(key), Names: map[string]string{}, Patterns: map[string]string{}}
		stage := staging.Key{Live: key}
		for word, name := range map[string]string{
			"K": key, "S": stage.StageKey(), "M": stage.MetaKey(), "I": stage.IndexKey(),
			"P": redisconn.SlotPrefix(key) + ":baton:positions", "R": row,
		} {
			p.Names[word], p.Patterns[word] = ofOne(name), redisconn.Glob(strings.Split(name, anyCapture)...)
		}
		a.Places = append(a.Places, p)
	}
	return a
}

// anyCapture stands in keys for what their pattern captures. It is no UTF-8, so no text of a configuration has it.
const anyCapture = "\xff"

// ofOne is the key of one row.
func ofOne(key string) string { return strings.ReplaceAll(key, anyCapture, "1") }

// live are the keys that are staged or read directly, one for each shard: for rows and for
// counters with a key each, the index of changes or one of these keys. row is the key of a row, with
// anyCapture in it; "" without one.
func (d Source) live() (keys []string, row string) {
	if !d.Keyed() {
		return d.keys, ""
	}
	row = captureName.ReplaceAllString(d.options.Key, anyCapture)
	if d.options.Changed != "" {
		return []string{d.options.Changed}, row
	}
	return []string{row}, row
}
