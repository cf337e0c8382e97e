package slots

import (
	"os"
	"strings"
	"syscall"
	"time"

	"baton/internal/testsupport/nemesis"
)

// What a fault does.
const (
	killLeader   = "SIGKILL of a leader"
	killNode     = "SIGKILL of a node"
	termLeader   = "SIGTERM of a leader"
	freezeLeader = "SIGSTOP of a leader"
	stepDown     = "stepdown"
	redisKill    = "SIGKILL of Redis"
	redisFreeze  = "SIGSTOP of Redis"
	wayCut       = "way to Redis: connections reset"
	wayForget    = "way to Redis: connections forgotten"
	wayBlock     = "way to Redis: refused"
	wayHang      = "way to Redis: hangs"
	wayMute      = "way to Redis: replies hang"
	reload       = "reload"
)

func traits() []nemesis.Trait {
	leases := func(n float64) time.Duration { return time.Duration(n * float64(lease)) }
	return []nemesis.Trait{
		{Kind: killLeader, Place: "node", Weight: 6},
		{Kind: killNode, Place: "node", Weight: 1},
		{Kind: termLeader, Place: "node", Weight: 3},
		{Kind: freezeLeader, Place: "freezer", Weight: 6, Least: leases(0.5), Longest: leases(3)},
		{Kind: stepDown, Place: "control", Weight: 4},
		{Kind: redisKill, Place: "redis", Weight: 3, Longest: leases(0.5)},
		{Kind: redisFreeze, Place: "redis", Weight: 2, Least: leases(0.25), Longest: leases(2)},
		{Kind: wayCut, Place: "way", Weight: 1},
		{Kind: wayForget, Place: "way", Weight: 1},
		{Kind: wayBlock, Place: "way", Weight: 1, Least: leases(0.25), Longest: leases(2)},
		{Kind: wayHang, Place: "way", Weight: 2, Least: leases(0.25), Longest: leases(2)},
		{Kind: wayMute, Place: "way", Weight: 2, Least: leases(0.25), Longest: leases(2)},
		{Kind: reload, Place: "control", Weight: 2},
	}
}

// pace leaves a lease and what a job lasts in peace now and then.
func pace() nemesis.Pace {
	return nemesis.Pace{Least: 300 * time.Millisecond, Most: 2200 * time.Millisecond, Quiet: lease + 2500*time.Millisecond, Each: 2400 * time.Millisecond}
}

// begin carries a fault out.
func (l *lab) begin(f nemesis.Fault) (target string, end func()) {
	lock := locks[0]
	if f.Draw%5 < 2 { // the others' jobs are few
		lock = locks[1+f.Draw%2]
	}
	i := l.leader(lock)
	if i < 0 || f.Kind == killNode {
		i = int(f.Draw / 16 % nodes)
	}
	u, i := l.keeper.Standing(i)
	way := l.ways[i]
	nothing := func() {}
	switch target = u.ID + " for " + lock; f.Kind {
	case killLeader, killNode:
		u.Kill()
	case termLeader:
		u.Term()
	case freezeLeader:
		u.Freeze()
		return target, u.Thaw
	case stepDown:
		l.background.Go(func() { l.Add("stepdown said: %s", u.StepDown(l.t.Context(), "--lock-key", lock)) })
	case redisKill:
		l.ground(l.redis.Daemon().Kill())
		return "redis", func() { l.ground(l.redis.Daemon().Restart()) }
	case redisFreeze:
		l.ground(l.redis.Daemon().Freeze())
		return "redis", func() { l.ground(l.redis.Daemon().Thaw()) }
	case wayCut:
		way.Cut()
	case wayForget:
		way.Strand()
	case wayBlock:
		way.Block()
		return target, way.Unblock
	case wayHang:
		way.Hang()
		return target, way.Unhang
	case wayMute:
		way.HangReplies()
		return target, way.Unhang
	case reload:
		l.reload()
		target = "all"
	}
	return target, nothing
}

// ground fails the test for what is none of the nodes' doing.
func (l *lab) ground(err error) {
	if err != nil {
		l.Wrong("this test's own ground is gone: %v", err)
	}
}

// reload gives every node another configuration, of which only what the commands find in
// their environment differs, and tells it to read it. One that is down reads it later.
func (l *lab) reload() {
	before := jobsYAML(l.jobs, l.work, l.file, l.generation)
	l.generation++
	after := jobsYAML(l.jobs, l.work, l.file, l.generation)
	for _, n := range l.cluster.Nodes {
		text, err := os.ReadFile(n.ConfigPath())
		l.ground(err)
		changed := strings.ReplaceAll(string(text), generation(before), generation(after))
		l.ground(os.WriteFile(n.ConfigPath(), []byte(changed), 0o600))
		if n.Running() {
			n.Signal(syscall.SIGHUP)
		}
	}
}

// generation is what differs between two configurations.
func generation(yaml string) string {
	i := strings.Index(yaml, "GENERATION")
	return yaml[i : i+strings.IndexByte(yaml[i:], '}')]
}
