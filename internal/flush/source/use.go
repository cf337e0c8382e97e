package source

import (
	"fmt"
	"regexp"
	"slices"

	"baton/internal/flush/source/staging"
	"baton/internal/redisconn"
)

// Use is what a job reads.
type Use struct {
	Job  string
	Type string // one of spec.Types
	// Watermark: counters that stay where they are.
	Watermark bool
	// Value is what the keys of a scan hold: hash, string, json, set or zset.
	Value string
	// Live are the keys that are staged, or read as they are: one of each shard; for rows
	// and for counters with a key each, the index of what has changed.
	Live []string
	// Key is the pattern of the rows' keys, "user:<id>"; "" if there is none.
	Key string
	// Retain: a stream is trimmed.
	Retain bool
	// Wait: it is waited for work.
	Wait bool
}

// stagingCommands are those of every source that stages.
var stagingCommands = []string{"TYPE K", "EXISTS K", "RENAME K S", "TYPE S", "EXISTS S", "PERSIST S", "UNLINK S",
	"HGET M id", "HMGET M id", "HSET M id 1", "UNLINK M", "EVAL s 3 K S M", "EVALSHA s 3 K S M"}

// commands are those of the use for one live key, whose type is kind.
func (u Use) commands(kind string, cluster bool) []string {
	s, err := Options{Type: u.Type, Key: u.Key, Watermark: u.Watermark}.kind()
	if err != nil {
		return nil
	}
	all := s.commands(u, kind)
	if cluster {
		all = slices.Concat(all, s.clusterCommands)
	}
	return all
}

// capture is a name in a pattern of keys.
var capture = regexp.MustCompile(`<[^<>]+>`)

// Access is what is sent for the use, of a Cluster or of one server.
func (u Use) Access(cluster bool) redisconn.Access {
	names := u.Live
	row := capture.ReplaceAllString(u.Key, "1")
	if len(names) == 0 {
		names = []string{row}
	}
	a := redisconn.Access{
		Subject: fmt.Sprintf("job %q", u.Job), Shows: "at the first flush",
		Consequence: "every flush fails; nothing is lost, the changes wait",
	}
	for _, live := range names {
		stage := staging.Key{Live: live}
		a.Places = append(a.Places, redisconn.Place{
			Key: live,
			Names: map[string]string{
				"K": live, "S": stage.StageKey(), "M": stage.MetaKey(), "I": stage.IndexKey(),
				"P": redisconn.SlotPrefix(live) + ":baton:positions", "R": row,
			},
			ByType: func(holds string) []string { return u.commands(holds, cluster) },
		})
	}
	return a
}
