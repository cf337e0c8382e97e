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

// stagingCommands are the commands that every source with a stage sends.
var stagingCommands = []string{"TYPE K", "EXISTS K", "RENAME K S", "TYPE S", "EXISTS S", "PERSIST S", "UNLINK S",
	"EXISTS M", "HGET M id", "HMGET M id", "HSET M id 1", "UNLINK M", "EVAL s 3 K S M", "EVALSHA s 3 K S M"}

// captureName matches a captured name, such as <id>, in a pattern of keys.
var captureName = regexp.MustCompile(`<[^<>]+>`)

// Access lists the commands that the source sends to Redis. The argument cluster says whether Redis is a Cluster. If the argument wait is
// true, the list also contains the commands that wait for changes.
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
		p := redisconn.KeyCommands{ByType: commands, Key: ofOne(key), Names: map[string]string{}, Patterns: map[string]string{}}
		stage := staging.Key{Live: key}
		for word, name := range map[string]string{
			"K": key, "S": stage.StageKey(), "M": stage.MetaKey(), "I": stage.IndexKey(),
			"P": redisconn.SlotPrefix(key) + ":baton:positions", "R": row,
		} {
			p.Names[word], p.Patterns[word] = ofOne(name), redisconn.Glob(strings.Split(name, anyCapture)...)
		}
		a.Keys = append(a.Keys, p)
	}
	return a
}

// anyCapture replaces each captured name, such as <id>, in a pattern of keys. It is not valid UTF-8, so it occurs in no text of a
// configuration.
const anyCapture = "\xff"

// ofOne returns the key of an example row, in which "1" replaces each captured name.
func ofOne(key string) string { return strings.ReplaceAll(key, anyCapture, "1") }

// live returns the live keys, one for each shard. If each row or counter has its own key, the live key is the index of changes. If there is
// no index, the live key is the pattern of a row's key. The result row is this pattern, with anyCapture for each captured name, or "" if
// rows have no keys of their own.
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
