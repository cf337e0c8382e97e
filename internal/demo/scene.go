package demo

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"baton/internal/config"
	"baton/internal/flush/source/spec"
)

// scene describes an application that writes to Redis, and the jobs that flush the application's writes to the tables.
type scene struct {
	name string
	// views and users are the application's names for its two kinds of data.
	views, users string
	// streams means that the jobs follow the replication stream, which the embedded Redis lacks.
	streams bool
	// marks means that the application maintains an index of the users that it has changed.
	marks bool
	jobs  func(s *server) []config.Job
	// view and change call send with each command of one write.
	view   func(s *server, article string, send func(words ...any))
	change func(s *server, c change, send func(words ...any))
}

// These are the available scenes. The first one is the default.
const (
	sceneSync    = "sync"
	sceneCapture = "capture"
)

// Scenes returns the names of all scenes.
func Scenes() []string { return []string{sceneSync, sceneCapture} }

func sceneOf(name string) (scene, error) {
	switch name {
	case "", sceneSync:
		return syncScene(), nil
	case sceneCapture:
		return captureScene(), nil
	}
	return scene{}, fmt.Errorf("--scene %q: write %s", name, strings.Join(Scenes(), " or "))
}

// syncScene returns an application that was changed for baton. It counts in hashes that are split into shards, and marks the rows that it
// changes.
func syncScene() scene {
	return scene{
		name: sceneSync, views: "views:*", users: "user:*", marks: true,
		jobs: func(s *server) []config.Job {
			return []config.Job{
				flushJob("page-views", "articles", config.From{Type: spec.Counters, Key: s.viewsKey(fmt.Sprintf("[0-%d]", shards-1))},
					map[string]config.Column{"id": {From: "$field"}, "views": {From: "$value", Op: "add"}}),
				flushJob("users", "users", config.From{Type: spec.Hashes, Key: s.userKey("<id>"), Changed: s.changedKey()}, nil),
			}
		},
		view: func(s *server, article string, send func(words ...any)) {
			n, _ := strconv.Atoi(article) // the text was made from a number
			send("HINCRBY", s.viewsKey(strconv.Itoa(n%shards)), article, 1)
		},
		change: func(s *server, c change, send func(words ...any)) {
			if key := s.userKey(strconv.FormatInt(c.id, 10)); c.deleted {
				send("DEL", key)
			} else {
				send("HSET", key, "name", c.name, "note", c.note, "version", c.version)
			}
		},
	}
}

// captureScene returns an application that was not changed for baton. It counts with INCR in one key for each article. It writes hashes,
// which it later deletes or lets expire.
func captureScene() scene {
	return scene{
		name: sceneCapture, views: "views:<id>", users: "user:<id>", streams: true,
		jobs: func(s *server) []config.Job {
			return []config.Job{
				flushJob("page-views", "articles", config.From{Type: spec.Capture, Key: s.viewsKey("<id>"), Value: "string"},
					map[string]config.Column{"id": {From: "id"}, "views": {From: "$value"}}),
				// At any time, about a tenth of the users is deleted. So after an outage, a pass may find that more than a tenth of the
				// rows must be deleted.
				flushJob("users", "users", config.From{Type: spec.Capture, Key: s.userKey("<id>"), MaxPct: 100}, nil),
			}
		},
		view: func(s *server, article string, send func(words ...any)) { send("INCR", s.viewsKey(article)) },
		change: func(s *server, c change, send func(words ...any)) {
			key := s.userKey(strconv.FormatInt(c.id, 10))
			switch {
			case c.deleted && c.version%2 == 0:
				send("PEXPIRE", key, 50)
			case c.deleted:
				send("DEL", key)
			default:
				send("HSET", key, "name", c.name, "note", c.note, "version", c.version)
				send("PERSIST", key) // the key may have been about to expire
			}
		},
	}
}

// flushJob returns a job that flushes into a table with the key column id.
func flushJob(name, table string, from config.From, columns map[string]config.Column) config.Job {
	return config.Job{
		Name: name, Schedule: "@every " + flushEvery.String(),
		Flush: config.Flush{From: from, To: config.To{Database: "main", Table: table, Key: []string{"id"}}, Columns: columns},
	}
}

// errNoServer means that the capture scene needs a real Redis, and none is installed.
var errNoServer = errors.New("the scene capture follows Redis' replication stream, which the embedded Redis does not have, and no " +
	"redis-server or valkey-server is installed: install one, or name a running one with --redis")
