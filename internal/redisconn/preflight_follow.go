package redisconn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"baton/internal/finding"
)

// PortOfNone is the port that baton announces when it follows the replication stream. No replica can have this port, so a Sentinel
// ignores baton.
const PortOfNone = 65536

// replicas returns the lines of INFO that describe replicas, and the number of replicas. Both leave out a process that only follows
// the replication stream.
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

// longEnough is the length of an outage that a backlog should cover.
const longEnough = 10 * time.Minute

// followed adds findings about a server whose replication stream a job follows.
func (x *examination) followed(f facts) {
	follows := slices.ContainsFunc(x.options.Accesses, func(a Access) bool { return a.Follows })
	if !follows || f.info["role"] != "master" {
		return
	}
	if _, guarded := f.info["min_slaves_good_slaves"]; guarded {
		x.add(finding.CountsBaton, "min-replicas-to-write counts baton as a replica",
			"while baton follows the stream for a job of type capture, Redis accepts writes with one real replica less than required",
			"raise min-replicas-to-write by one")
	}
	if state := f.info["master_failover_state"]; state != "" && state != "no-failover" {
		x.add(finding.FailoverWaits, "a FAILOVER waits ("+state+"), and blocks writes until it ends",
			"Redis waits for a replica that has all data. Baton, which follows the stream for a job of type capture, is no such replica, "+
				"and the FAILOVER would not end if baton left",
			"FAILOVER ABORT; next time use FAILOVER TO HOST PORT TIMEOUT 5000")
	}
	backlog, written, up := f.number("repl_backlog_size"), f.number("master_repl_offset"), f.number("uptime_in_seconds")
	if backlog <= 0 || up <= 0 {
		return
	}
	holds := time.Duration(float64(backlog) / max(float64(written)/float64(up), 1) * float64(time.Second))
	if holds >= longEnough {
		return
	}
	x.add(finding.ShortBacklog, fmt.Sprintf("its replication backlog (repl-backlog-size %s) holds the writes of about %s",
		strings.TrimSpace(size(backlog)), holds.Round(time.Second)),
		"after a longer outage of baton or of the connection, a job of type capture reads all keys again; nothing is lost",
		fmt.Sprintf("CONFIG SET repl-backlog-size %d, and the same in redis.conf", int64(longEnough/time.Second)*max(written/up, 1)*2))
}
