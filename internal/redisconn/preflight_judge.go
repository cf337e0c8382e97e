package redisconn

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"baton/internal/finding"
)

// judge checks the facts of a master.
func (x *examination) judge(f facts) {
	x.version(f)
	x.role(f)
	x.eviction(f)
	x.memory(f)
	x.persistence(f)
	x.disk(f)
	x.replicas(f)
	x.followed(f)
}

// oldest is the oldest supported version.
const oldestMajor, oldestMinor = 6, 2

func (x *examination) version(f facts) {
	version := f.info["redis_version"]
	parts := strings.Split(version, ".")
	if len(parts) < 2 {
		return
	}
	major, err := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	if err != nil || err2 != nil || major > oldestMajor || major == oldestMajor && minor >= oldestMinor {
		return
	}
	x.add(finding.SeverityWarning, fmt.Sprintf("its version is %s; baton is made for %d.%d or newer", version, oldestMajor, oldestMinor),
		"commands may be refused; this version is not tested", "upgrade it")
}

func (x *examination) role(f facts) {
	if f.info["role"] == "slave" {
		x.add(finding.SeverityError, "it is a replica of "+f.info["master_host"]+":"+f.info["master_port"],
			"it accepts no writes: no node leads, and nothing is flushed",
			"put the master into "+x.options.Section+".url; or name the Sentinels in "+x.options.Section+
				".sentinel, so that a failover is followed")
	}
	if f.info["cluster_enabled"] == "1" && !x.cluster {
		x.add(finding.SeverityError, "it is a node of a Cluster", "keys that other nodes have cannot be reached",
			"name some nodes in "+x.options.Section+".cluster instead of "+x.options.Section+".url")
	}
	if f.info["loading"] == "1" {
		x.add(finding.SeverityWarning, "it is loading its data", "until it has, no node leads and nothing is flushed", "wait")
	}
}

// evicts judges maxmemory-policy.
func (x *examination) eviction(f facts) {
	policy := f.info["maxmemory_policy"]
	remedy := "CONFIG SET maxmemory-policy noeviction, and the same in redis.conf; keep data that may be evicted in another Redis"
	limit := f.number("maxmemory")
	switch {
	case policy == "noeviction":
	case policy == "":
		x.add(finding.SeverityInfo, "its maxmemory-policy could not be checked",
			"any but noeviction can evict changes that are not flushed yet",
			"ask the provider for noeviction")
	case limit == 0:
		x.add(finding.SeverityInfo, fmt.Sprintf("maxmemory-policy is %s, without effect as maxmemory is 0", policy),
			"once maxmemory is set, keys are evicted that have not been flushed", remedy)
	case strings.HasPrefix(policy, "allkeys"):
		x.add(x.forLock(finding.SeverityError), fmt.Sprintf("maxmemory-policy is %s, at %s", policy, size(limit)),
			"when its memory is full Redis silently removes any key: changes that have not been flushed, whole staged batches, "+
				"and the lock, so that two nodes lead until the first one notices (the fence still keeps the database right)", remedy)
	default:
		x.add(finding.SeverityWarning, fmt.Sprintf("maxmemory-policy is %s, at %s", policy, size(limit)),
			"when its memory is full Redis removes keys with an expiry: the lock, so that two nodes lead until the first one notices "+
				"(the fence still keeps the database right), and rows to which producers gave an EXPIRE", remedy)
	}
}

// forLock is the severity of a risk to data or the lock.
func (x *examination) forLock(severity finding.Severity) finding.Severity {
	if x.options.Data || x.options.LockKey == "" {
		return severity
	}
	return finding.SeverityWarning
}

const (
	nearlyFull = 90 // percent
	full       = 100
)

func (x *examination) memory(f facts) {
	limit, used := f.number("maxmemory"), f.number("used_memory")
	if limit == 0 || used*100 < limit*nearlyFull {
		return
	}
	severity := finding.SeverityWarning
	if used*100 >= limit*full && f.info["maxmemory_policy"] == "noeviction" {
		severity = finding.SeverityError
	}
	x.add(severity, fmt.Sprintf("it uses %s of its maxmemory of %s", size(used), size(limit)),
		"once it is full it refuses writes (OOM), also those of the producers: their changes are lost unless they keep them",
		"raise maxmemory, or flush more often; baton status shows the waiting changes")
}

func size(bytes int64) string {
	const mi = 1 << 20
	if bytes < mi {
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d MiB", bytes/mi)
}

// persistence judges how much a crash of the server or its host loses.
func (x *examination) persistence(f facts) {
	const changes = "changes that producers have made and that have not been flushed"
	remedy := "CONFIG SET appendonly yes, and the same in redis.conf (with appendfsync everysec; always loses nothing)"
	save, known := f.config["save"]
	interval := longestSave(save)
	log, given := f.info["aof_enabled"]
	switch {
	case !given && !known:
		x.add(finding.SeverityInfo, "its persistence could not be checked: neither INFO nor CONFIG tells",
			"if it keeps nothing on disk, a restart loses all "+changes, "ask the provider for an append-only file")
	case log == "1":
		x.appendOnly(f)
	case !known:
		x.add(x.forData(finding.SeverityWarning), "the append-only file is off, and its snapshots could not be checked: CONFIG is refused",
			"a crash loses "+changes+" since the last snapshot, or all of them", "ask the provider for an append-only file")
	case interval == 0:
		lost, then := "the staged batches, and when jobs ran last", ". Everybody then waits for one lease"
		if x.options.Store {
			lost, then = "and the staged batches", ""
		}
		x.add(x.forData(finding.SeverityError), "it keeps nothing on disk: appendonly is no, and save is empty",
			"a restart loses all "+changes+", "+lost+"; where replicas follow it, they are emptied, too"+then, remedy)
	default:
		x.add(x.forData(finding.SeverityWarning), fmt.Sprintf("it keeps snapshots only (save %s)", save),
			fmt.Sprintf("a crash loses %s in up to %s, the time between two snapshots; changes flushed since may be flushed again",
				changes, minutes(interval)), remedy)
	}
}

// everysec is the loss in a crash of the host with appendfsync everysec: Redis syncs once a
// second, and delays writes for up to two seconds while a sync takes longer (redis.io, "Redis
// persistence" and "Diagnosing latency issues").
const everysec = "about the last second of changes, and more while its disk is slow"

func (x *examination) appendOnly(f facts) {
	switch policy, known := f.config["appendfsync"]; {
	case !known:
		x.add(finding.SeverityInfo, "its appendfsync could not be checked: CONFIG is refused",
			"with everysec a crash of its host loses "+everysec+"; with no up to half a minute", "ask the provider")
	case policy == "everysec":
		x.add(finding.SeverityInfo, "appendfsync is everysec",
			"a crash of its host (not of Redis alone) loses "+everysec+"; those already flushed may be flushed again",
			"CONFIG SET appendfsync always, if that is not acceptable: slower writes")
	case policy == "no":
		x.add(x.forData(finding.SeverityWarning), "appendfsync is no",
			"a crash of its host loses data that the kernel has not written yet, commonly half a minute of changes",
			"CONFIG SET appendfsync everysec, and the same in redis.conf")
	}
}

// keeping describes the persistence of a server without findings; "" if unknown, or snapshots
// only.
func (f facts) keeping() string {
	switch {
	case f.info["aof_enabled"] != "1", f.info["maxmemory_policy"] == "":
		return ""
	case f.config["appendfsync"] == "always":
		return ", and persists its data"
	case f.config["appendfsync"] == "everysec":
		return ", and persists its data every second"
	}
	return ""
}

// longestSave is the longest time between two snapshots by "3600 1 300 100"; 0 if
// there are none.
func longestSave(save string) time.Duration {
	longest := 0
	for i, word := range strings.Fields(save) {
		if n, err := strconv.Atoi(word); err == nil && i%2 == 0 {
			longest = max(longest, n)
		}
	}
	return time.Duration(longest) * time.Second
}

func minutes(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%.0f seconds", d.Seconds())
	}
	return fmt.Sprintf("%.0f minutes", d.Minutes())
}

// disk reports failed writes to disk.
func (x *examination) disk(f facts) {
	const consequence = "Redis refuses writes, or keeps them in memory only, and a restart loses them"
	if status := f.info["rdb_last_bgsave_status"]; status != "" && status != "ok" {
		x.add(x.forData(finding.SeverityError), "its last snapshot failed", consequence,
			"look into Redis' log: a full disk, or too little memory to fork (vm.overcommit_memory = 1)")
	}
	for _, what := range []struct{ field, name string }{
		{"aof_last_write_status", "write to the append-only file"}, {"aof_last_bgrewrite_status", "rewrite of the append-only file"},
	} {
		if status := f.info[what.field]; status != "" && status != "ok" {
			x.add(x.forData(finding.SeverityError), "its last "+what.name+" failed", consequence, "look into Redis' log: is the disk full?")
		}
	}
}

// lagging is the reported lag of a replica, in seconds.
const lagging = 10

func (x *examination) replicas(f facts) {
	if f.info["role"] != "master" {
		return
	}
	lines, n := f.replicas()
	if want := x.options.WaitReplicas; want > n {
		x.add(finding.SeverityError, fmt.Sprintf("%d replicas follow it, and election.wait_replicas is %d", n, want),
			"a lock that fewer replicas have does not count: no node leads", "start replicas, or lower election.wait_replicas")
	}
	if n == 0 {
		severity, remedy := finding.SeverityInfo, "a replica and Sentinels; or accept it: rows in the database stay"
		if x.failover {
			severity, remedy = x.forData(finding.SeverityWarning), "start a replica"
		}
		x.add(severity, "no replica follows it",
			"if its disk is lost, so are the changes that have not been flushed; nothing takes over meanwhile", remedy)
		return
	}
	for _, replica := range lines {
		state, lag := infoField(replica, "state"), infoField(replica, "lag")
		seconds, _ := strconv.Atoi(lag) // no number: not online
		if where := infoField(replica, "ip") + ":" + infoField(replica, "port"); replica != "" && (state != "online" || seconds > lagging) {
			x.add(x.forData(finding.SeverityWarning), fmt.Sprintf("its replica %s is behind (%s, last heard of %s s ago)", where, state,
				lag),
				"a failover to it loses the changes that it does not have, and may flush others again",
				"look into the replica's log and network")
		}
	}
	x.replicaLag(f, lines)
	if !x.failover {
		return
	}
	if _, guarded := f.info["min_slaves_good_slaves"]; !guarded && f.config["min-replicas-to-write"] == "0" ||
		!guarded && f.config["min-replicas-to-write"] == "" {
		x.add(x.forData(finding.SeverityWarning), "min-replicas-to-write is 0",
			"a master that is cut off goes on taking changes, and loses them when it comes back as a replica; a failover loses what "+
				"the replica does not have yet, and may flush some of it again",
			"CONFIG SET min-replicas-to-write 1 and min-replicas-max-lag 10, and the same in redis.conf; dedupe_key keeps inserts from "+
				"coming twice")
	}
}

// replicaLag reports connected replicas whose lag exceeds the backlog: below that a replica
// catches up without a full copy.
func (x *examination) replicaLag(f facts, lines []string) {
	const backlog = 1 << 20 // Redis' default
	at, most := f.number("master_repl_offset"), max(f.number("repl_backlog_size"), backlog)
	for _, replica := range lines {
		confirmed, err := strconv.ParseInt(infoField(replica, "offset"), 10, 64)
		if err != nil || infoField(replica, "state") != "online" || at-confirmed <= most {
			continue
		}
		x.add(x.forData(finding.SeverityWarning), fmt.Sprintf("its replica %s:%s lacks %s of what was written", infoField(replica, "ip"),
			infoField(replica, "port"), size(at-confirmed)),
			"a failover to it loses those changes, and may flush others again; and with election.wait_replicas no lock is renewed "+
				"before it has them", "look into the replica's load and network; raise repl-backlog-size if it is cut off often")
	}
}

// infoField is a field of a line like "ip=10.0.0.1,port=6379,state=online".
func infoField(line, name string) string {
	for field := range strings.SplitSeq(line, ",") {
		if value, ok := strings.CutPrefix(field, name+"="); ok {
			return value
		}
	}
	return ""
}
