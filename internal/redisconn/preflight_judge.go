package redisconn

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"baton/internal/finding"
)

// judge adds the findings that follow from the facts of a master.
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
	x.add(finding.OldVersion, fmt.Sprintf("its version is %s; baton is made for %d.%d or newer", version, oldestMajor, oldestMinor),
		"commands may be refused; this version is not tested", "upgrade it")
}

func (x *examination) role(f facts) {
	if f.info["role"] == "slave" {
		x.add(finding.NotTheMaster, "it is a replica of "+f.info["master_host"]+":"+f.info["master_port"],
			"it accepts no writes: no node leads, and nothing is flushed",
			"put the master into "+x.options.Section+".url; or name the Sentinels in "+x.options.Section+
				".sentinel, so that a failover is followed")
	}
	if f.info["cluster_enabled"] == "1" && !x.cluster {
		x.add(finding.NotTheMaster, "it is a node of a Cluster", "baton cannot reach the keys on other nodes",
			"name some nodes in "+x.options.Section+".cluster instead of "+x.options.Section+".url")
	}
	if f.info["loading"] == "1" {
		x.add(finding.Loading, "it is loading its data", "until it has, no node leads and nothing is flushed", "wait")
	}
}

// eviction adds findings about the setting maxmemory-policy.
func (x *examination) eviction(f facts) {
	policy := f.info["maxmemory_policy"]
	remedy := "CONFIG SET maxmemory-policy noeviction, and the same in redis.conf; keep data that may be evicted in another Redis"
	limit := f.number("maxmemory")
	switch {
	case policy == "noeviction":
	case policy == "":
		x.add(finding.UncheckedRedis, "its maxmemory-policy could not be checked",
			"with any policy but noeviction, Redis can evict changes that are not flushed yet",
			"ask the provider for the policy noeviction")
	case limit == 0:
		x.add(finding.EvictsLater, fmt.Sprintf("maxmemory-policy is %s, without effect as maxmemory is 0", policy),
			"when an operator sets maxmemory, Redis can evict changes that are not flushed yet", remedy)
	case strings.HasPrefix(policy, "allkeys"):
		x.add(x.forLock(finding.EvictsAll), fmt.Sprintf("maxmemory-policy is %s, at %s", policy, size(limit)),
			"when its memory is full Redis silently removes any key: changes that have not been flushed, whole staged batches, "+
				"and the lock, so that two nodes lead until the first one notices (the fence still keeps the database right)", remedy)
	default:
		x.add(finding.EvictsExpiring, fmt.Sprintf("maxmemory-policy is %s, at %s", policy, size(limit)),
			"when its memory is full Redis removes keys with an expiry: the lock, so that two nodes lead until the first one notices "+
				"(the fence still keeps the database right), and rows to which producers gave an EXPIRE", remedy)
	}
}

// forLock returns the kind of a finding about a risk to data or to the lock. If the server has only the lock, the finding is a
// warning.
func (x *examination) forLock(kind finding.Kind) finding.Kind {
	if x.options.Data || x.options.LockKey == "" {
		return kind
	}
	return kind.As(finding.SeverityWarning)
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
	x.add(finding.NearlyFull.As(severity), fmt.Sprintf("it uses %s of its maxmemory of %s", size(used), size(limit)),
		"when its memory is full, Redis refuses writes (OOM), also of the producers, which lose their changes unless they write them again",
		"raise maxmemory, or flush more often; baton status shows the waiting changes")
}

func size(bytes int64) string {
	const mi = 1 << 20
	if bytes < mi {
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d MiB", bytes/mi)
}

// persistence adds findings about how much is lost if the server or its host crashes.
func (x *examination) persistence(f facts) {
	const changes = "changes that producers have made and that have not been flushed"
	remedy := "CONFIG SET appendonly yes, and the same in redis.conf (with appendfsync everysec; always loses nothing)"
	save, known := f.config["save"]
	interval := longestSave(save)
	log, given := f.info["aof_enabled"]
	switch {
	case !given && !known:
		x.add(finding.UncheckedRedis, "its persistence could not be checked: neither INFO nor CONFIG shows it",
			"if it keeps nothing on disk, a restart loses all "+changes, "ask the provider for an append-only file")
	case log == "1":
		x.appendOnly(f)
	case !known:
		x.add(x.forData(finding.UncheckedSnapshots),
			"the append-only file is off, and its snapshots could not be checked: CONFIG is refused",
			"a crash loses "+changes+" since the last snapshot, or all of them", "ask the provider for an append-only file")
	case interval == 0:
		lost, then := "the staged batches, and the times when jobs ran last", ". Then all nodes wait for one lease"
		if x.options.Store {
			lost, then = "and the staged batches", ""
		}
		x.add(x.forData(finding.KeepsNothing), "it keeps nothing on disk: appendonly is no, and save is empty",
			"a restart loses all "+changes+", "+lost+"; replicas of this server are then also emptied"+then, remedy)
	default:
		x.add(x.forData(finding.SnapshotsOnly), fmt.Sprintf("it keeps snapshots only (save %s)", save),
			fmt.Sprintf("a crash loses %s in up to %s, the time between two snapshots; changes flushed in that time may be flushed again",
				changes, minutes(interval)), remedy)
	}
}

// everysec is a text that says how much a crash of the host loses if appendfsync is "everysec". Redis syncs once a second. While a
// sync takes longer, it delays writes for up to two seconds (redis.io, "Redis persistence" and "Diagnosing latency issues").
const everysec = "about the last second of changes, and more while its disk is slow"

func (x *examination) appendOnly(f facts) {
	switch policy, known := f.config["appendfsync"]; {
	case !known:
		x.add(finding.UncheckedRedis, "its appendfsync could not be checked: CONFIG is refused",
			"with appendfsync everysec, a crash of its host loses "+everysec+"; with appendfsync no, up to half a minute",
			"ask the provider for the setting")
	case policy == "everysec":
		x.add(finding.SyncsEverySecond, "appendfsync is everysec",
			"a crash of its host (not of Redis alone) loses "+everysec+"; changes already flushed may be flushed again",
			"if that is not acceptable, CONFIG SET appendfsync always, which makes writes slower")
	case policy == "no":
		x.add(x.forData(finding.NeverSyncs), "appendfsync is no",
			"a crash of its host loses data that the kernel has not written yet, commonly half a minute of changes",
			"CONFIG SET appendfsync everysec, and the same in redis.conf")
	}
}

// keeping describes how a server without findings keeps its data. It returns "" if this is unknown, or if the server only makes
// snapshots.
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

// longestSave returns the longest time between two snapshots for a value of the setting "save" such as "3600 1 300 100". It returns
// 0 if there are no snapshots.
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

// disk adds a finding if Redis has failed to write to its disk.
func (x *examination) disk(f facts) {
	const consequence = "Redis refuses writes, or keeps them in memory only, and a restart loses them"
	if status := f.info["rdb_last_bgsave_status"]; status != "" && status != "ok" {
		x.add(x.forData(finding.FailedWrite), "its last snapshot failed", consequence,
			"look into Redis' log: is the disk full, or is there too little memory to fork (set vm.overcommit_memory = 1)?")
	}
	for _, what := range []struct{ field, name string }{
		{"aof_last_write_status", "write to the append-only file"}, {"aof_last_bgrewrite_status", "rewrite of the append-only file"},
	} {
		if status := f.info[what.field]; status != "" && status != "ok" {
			x.add(x.forData(finding.FailedWrite), "its last "+what.name+" failed", consequence, "look into Redis' log: is the disk full?")
		}
	}
}

// lagging is the maximum lag of a replica, in seconds. A larger lag is reported.
const lagging = 10

func (x *examination) replicas(f facts) {
	if f.info["role"] != "master" {
		return
	}
	lines, n := f.replicas()
	if want := x.options.WaitReplicas; want > n {
		x.add(finding.FewReplicas, fmt.Sprintf("%d replicas follow it, and election.wait_replicas is %d", n, want),
			"a lock counts only if that many replicas have it, so no node leads", "start replicas, or lower election.wait_replicas")
	}
	if n == 0 {
		kind, remedy := finding.NoReplica, "add a replica and Sentinels, or accept the risk: rows in the database are not affected"
		if x.failover {
			kind, remedy = x.forData(kind.As(finding.SeverityWarning)), "start a replica"
		}
		x.add(kind, "no replica follows it",
			"if its disk fails, the changes that have not been flushed are lost; if its host fails, no replica can take over", remedy)
		return
	}
	for _, replica := range lines {
		state, lag := infoField(replica, "state"), infoField(replica, "lag")
		seconds, _ := strconv.Atoi(lag) // 0 if the replica is not online, because then lag is no number
		if where := infoField(replica, "ip") + ":" + infoField(replica, "port"); replica != "" && (state != "online" || seconds > lagging) {
			x.add(x.forData(finding.ReplicaBehind), fmt.Sprintf("its replica %s is behind (%s, last heard of %s s ago)", where, state,
				lag),
				"a failover to this replica loses the changes that the replica does not have, and baton may flush other changes again",
				"check the replica's log and network")
		}
	}
	x.replicaLag(f, lines)
	if !x.failover {
		return
	}
	if _, guarded := f.info["min_slaves_good_slaves"]; !guarded && f.config["min-replicas-to-write"] == "0" ||
		!guarded && f.config["min-replicas-to-write"] == "" {
		x.add(x.forData(finding.NoMinReplicas), "min-replicas-to-write is 0",
			"a master that is cut off still accepts changes, and loses them when it becomes a replica; a failover loses changes that "+
				"the replica does not have yet, and baton may flush some changes again",
			"CONFIG SET min-replicas-to-write 1 and min-replicas-max-lag 10, and the same in redis.conf; set dedupe_key to prevent "+
				"repeated inserts")
	}
}

// replicaLag reports connected replicas that lag behind by more bytes than the backlog contains. A replica with a smaller lag
// catches up without a full copy.
func (x *examination) replicaLag(f facts, lines []string) {
	const backlog = 1 << 20 // Redis' default
	at, most := f.number("master_repl_offset"), max(f.number("repl_backlog_size"), backlog)
	for _, replica := range lines {
		confirmed, err := strconv.ParseInt(infoField(replica, "offset"), 10, 64)
		if err != nil || infoField(replica, "state") != "online" || at-confirmed <= most {
			continue
		}
		x.add(x.forData(finding.ReplicaLacks), fmt.Sprintf("its replica %s:%s lacks %s of what was written", infoField(replica, "ip"),
			infoField(replica, "port"), size(at-confirmed)),
			"a failover to this replica loses those changes, and baton may flush other changes again; with election.wait_replicas, no "+
				"lock is renewed before the replica has them",
			"check the replica's load and network; if the replica is cut off often, raise repl-backlog-size")
	}
}

// infoField returns one field of a line like "ip=10.0.0.1,port=6379,state=online".
func infoField(line, name string) string {
	for field := range strings.SplitSeq(line, ",") {
		if value, ok := strings.CutPrefix(field, name+"="); ok {
			return value
		}
	}
	return ""
}
