package main

import (
	"fmt"

	"baton/bench/internal/rig"
)

// batonContender returns the shipped program, with one lane and the default sizes.
func batonContender() contender {
	return contender{name: nameBaton, title: "baton", start: func(l *lab, f flow, t target, _ setting) (*rig.Process, error) {
		file, err := l.config("baton.yaml", batonConfig(l, f, t))
		if err != nil {
			return nil, err
		}
		return rig.Launch([]string{l.programs.baton, "run", "--config", file, "--log-level", "warn"})
	}}
}

// batonConfig returns baton's configuration. The lease is longer than the time that it takes to put a backlog into Redis. After a kill no
// node leads until the lease has ended, so it is as short as possible if there are kills.
func batonConfig(l *lab, f flow, t target) string {
	ttl := "60s"
	if t == bare() {
		ttl = "1s"
	}
	from := map[string]string{
		flowStream: fmt.Sprintf("{type: stream, key: %s}", streamKey),
		flowList:   fmt.Sprintf("{type: list, key: %s}", listKey),
		flowScan:   fmt.Sprintf("{type: scan, key: %q, value: json}", scanned+"<id>"),
	}[f.source]
	to := fmt.Sprintf("{database: main, table: %s, mode: insert}", t.table)
	if t.upsert {
		to = fmt.Sprintf("{database: main, table: %s, key: [id]}", t.table)
	}
	schedule := "@always"
	if f.once {
		schedule = "@every 1s"
	}
	return fmt.Sprintf(`node: {id: bench}
redis: {url: %q}
election: {lock_key: bench, ttl: %s}
http: {listen: "127.0.0.1:0"}
databases:
  main: {driver: postgres, dsn: %q}
defaults: {catch_up: none}
jobs:
  - name: rows
    schedule: %q
    flush:
      from: %s
      to: %s
`, l.redis.URL(), ttl, l.dsn, schedule, from, to)
}
