package redisconn_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush/source"
	"baton/internal/flush/source/spec"
	"baton/internal/redisconn"
	"baton/internal/redisledger"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
	"baton/internal/testsupport"
)

// everyCommand returns all commands that the preflight may try.
func everyCommand() []string {
	var all []string
	add := func(places ...redisconn.KeyCommands) {
		for _, p := range places {
			for _, holds := range []string{"hash", "set", "zset", "list", "stream"} {
				all = append(all, p.Sent(holds)...)
			}
		}
	}
	add(redislock.Access(redislock.LockOptions{Key: "baton", Format: script.Redisson}).Keys...)
	add(redisledger.Access("baton"))
	for _, s := range source.Sources() {
		for _, value := range []string{"hash", "string", "json", "set", "zset"} {
			o := source.Options{Type: s.Type, Watermark: s.Watermark, Value: value, Retain: new(time.Duration), Key: "k"}
			if s.Type == spec.Capture && strings.HasSuffix(value, "set") {
				continue // this job reads no keys
			}
			if s.Keyed() {
				o.Key, o.Changed = "k:<id>", "k"
			}
			if s.Key == spec.KeyOfAll {
				o.Key = "all"
			}
			described, err := source.Describe(o)
			if err != nil {
				panic(err)
			}
			add(described.Access(true, false).Keys...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// The preflight must try every command that docs/redis.md grants, except the commands that no job sends. So no command is forgotten when
// a source begins to send it.
func TestThePreflightAsksForEveryCommandThatIsGranted(t *testing.T) {
	asked := map[string]bool{}
	for _, c := range everyCommand() {
		name, _, _ := strings.Cut(c, " ")
		asked[strings.ToLower(name)] = true
	}
	// connections, and acquire: setnx
	other := strings.Fields("watch unwatch exec discard info ping select wait client|setname role asking cluster|slots cluster|nodes " +
		"zadd zrevrange zremrangebyscore zremrangebyrank " + // the list of baton lock
		"sadd " + // a replay
		"blmove") // without this permission, baton waits for a list in another way
	for _, arg := range testsupport.DocumentedUser(t) {
		name, ok := strings.CutPrefix(arg.(string), "+")
		if ok && !asked[name] && !slices.Contains(other, name) {
			t.Errorf("docs/redis.md grants %s, and the preflight does not ask for it: add it to the commands of the source, the ledger "+
				"or the lock", name)
		}
	}
}

// Redis refuses a command with wrong syntax before it checks permissions.
func TestRedisUnderstandsWhatThePreflightAsks(t *testing.T) {
	conn := testsupport.StartRedis(t).Conn()
	if _, err := conn.Do("MULTI"); err != nil {
		t.Fatal(err)
	}
	for _, c := range everyCommand() {
		words := strings.Fields(c)
		if words[0] == "MULTI" || words[0] == "EXEC" {
			continue
		}
		if reply, err := conn.Do(words[0], redis.Args{}.AddFlat(words[1:])...); err != nil || reply != "QUEUED" {
			t.Errorf("%s: %v, %v", c, reply, err)
		}
	}
}
