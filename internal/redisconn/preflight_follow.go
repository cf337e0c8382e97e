package redisconn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"baton/internal/finding"
)

// PortOfNone is the port that a follower of the stream announces, which no replica has: so a Sentinel leaves it out.
const PortOfNone = 65536

// replicas are the lines of INFO about replicas, and their number. Followers of the stream do not count.
func (f facts) replicas() (lines []string, n int) {
	all := int(f.number("connected_slaves"))
	n = all
	for i := range all {
		line := f.info["slave"+strconv.Itoa(i)]
		if infoField(line, "port") == strconv.Itoa(PortOfNone) {
			n--
			continue
		}
		lines = append(lines, line)
	}
	return lines, n
}

// longEnough is the outage that a backlog should cover.
const longEnough = 10 * time.Minute

// followed judges a server whose stream a job follows.
func (x *examination) followed(f facts) {
	follows := slices.ContainsFunc(x.options.Accesses, func(a Access) bool { return a.Follows })
	if !follows || f.info["role"] != "master" {
		return
	}
	if _, guarded := f.info["min_slaves_good_slaves"]; guarded {
		x.add(finding.SeverityWarning, "min-replicas-to-write counts baton as a replica",
			"while a job of type capture follows, it takes writes with one replica less than you have asked for",
			"raise min-replicas-to-write by one")
	}
	if state := f.info["master_failover_state"]; state != "" && state != "no-failover" {
		x.add(finding.SeverityWarning, "a FAILOVER waits ("+state+"), and blocks writes until it ends",
			"it waits for a replica that has everything: baton, which follows for a job of type capture, is none, "+
				"and leaving would not end it",
			"FAILOVER ABORT; another time say FAILOVER TO HOST PORT TIMEOUT 5000")
	}
	backlog, written, up := f.number("repl_backlog_size"), f.number("master_repl_offset"), f.number("uptime_in_seconds")
	if backlog <= 0 || up <= 0 {
		return
	}
	holds := time.Duration(float64(backlog) / max(float64(written)/float64(up), 1) * float64(time.Second))
	if holds >= longEnough {
		return
	}
	x.add(finding.SeverityWarning, fmt.Sprintf("its replication backlog (repl-backlog-size %s) holds the writes of about %s",
		strings.TrimSpace(size(backlog)), holds.Round(time.Second)),
		"after a longer outage of baton or of the connection a job of type capture reads all keys; nothing is lost",
		fmt.Sprintf("CONFIG SET repl-backlog-size %d, and the same in redis.conf", int64(longEnough/time.Second)*max(written/up, 1)*2))
}
