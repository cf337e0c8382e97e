package capture

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
)

// How many keys of each sort there are in each database, of all tags.
const (
	stringKeys = 1200
	hashKeys   = 600
	objectKeys = 400
	otherKeys  = 60 // of lists, sets, sorted sets and streams each; no job captures lists and streams
	members    = 40 // that sets and sorted sets have
)

// mostly is what programs do all the time.
var mostly = []string{
	"SET {s} {v}", "SET {s} {v} PX {ms}", "SET {s} {n}", "HSET {h} f {v} g {v}", "HSET {h} f {n}", "HINCRBY {h} g 1", "INCR {s}",
	"SADD {t} {m} {m} {m}", "SREM {t} {m} {m}", "ZADD {z} {n} {m} {n} {m}", "ZINCRBY {z} 0.5 {m}", "ZREM {z} {m}",
	"SET {j} {json}", "MSET {s} {v} {s} {v} {j} {json}", "DEL {s}", "DEL {h} {j}", "PEXPIRE {s} {ms}", "HDEL {h} f",
}

// sometimes is every other way of writing, also of what a job then finds to be of another type. Commands
// with | between them are sent together.
var sometimes = []string{
	"APPEND {s} x", "BITFIELD {s} SET u8 0 {n} INCRBY u8 8 1", "BITOP OR {s} {s} {s}", "BITOP NOT {s} {s}",
	"BLMOVE {l} {s} LEFT RIGHT 0.001", "BLMPOP 0.001 2 {l} {l} LEFT COUNT 2", "BLPOP {l} {l} 0.001", "BRPOP {l} 0.001",
	"BRPOPLPUSH {l} {l} 0.001", "BZMPOP 0.001 1 {z} MIN", "BZPOPMAX {z} 0.001", "BZPOPMIN {z} 0.001",
	"COPY {s} {s} REPLACE", "COPY {h} {h} REPLACE", "COPY {s} {s}", "COPY {s} {s} DB {other} REPLACE",
	"COPY {j} {j} REPLACE", "COPY {h} {s} REPLACE",
	"DECR {s}", "DECRBY {s} 3", "EXPIRE {s} 1", "EXPIRE {h} -1", "EXPIREAT {s} 1", "PEXPIREAT {j} 1", "PEXPIREAT {h} 99999999999999",
	"GEOADD {z} 13.361389 38.115556 a 15.087269 37.502669 b", "GEORADIUS {z} 15 37 200 km STORE {s}",
	"GEORADIUSBYMEMBER {z} a 200 km STORE {z}", "GEOSEARCHSTORE {z} {z} FROMLONLAT 15 37 BYRADIUS 200 km",
	"GETDEL {s}", "GETDEL {j}", "GETEX {s} PX {ms}", "GETEX {s} PERSIST", "GETSET {s} {v}",
	"HINCRBYFLOAT {h} f 1.5", "HMSET {h} f {v} g {v}",
	"HSETNX {h} g {v}", "HDEL {h} f g", "INCRBY {s} 3", "INCRBYFLOAT {s} 1.5",
	"LINSERT {l} BEFORE a x", "LMOVE {l} {l} LEFT LEFT", "LMPOP 1 {l} RIGHT", "LPOP {l}", "LPUSH {l} a b 3",
	"LPUSHX {l} x", "LREM {l} 0 a",
	"LSET {l} 0 x", "LTRIM {l} 0 9", "MOVE {s} {other}", "MOVE {h} {other}", "MSETNX {s} {v} {s} {v}", "PERSIST {s}",
	"PFADD {s} {v}", "PFMERGE {s} {s} {s}", "PFCOUNT {s} {s}", "PSETEX {s} {ms} {v}", "PSETEX {j} {ms} {json}",
	"RENAME {s} {s}", "RENAME {h} {h}", "RENAME {j} {j}", "RENAME {s} {aside}", "RENAME {aside} {s}",
	"RENAMENX {h} {h}", "RENAMENX {s} {s}",
	"RENAME {h} {s}", "RENAME {s} {h}", "RESTORE {s} 0 {dump} REPLACE", "RESTORE {s} {ms} {dump} REPLACE",
	"RESTORE-ASKING {s} 0 {dump} REPLACE",
	"RPOP {l}", "RPOPLPUSH {l} {l}", "RPUSH {l} 3 1 2", "RPUSH {s} 1", "RPUSHX {l} x", "SADD {t} a b c",
	"SADD {s} a", "SDIFFSTORE {s} {t} {t}",
	"SET {s} {v} NX GET", "SET {s} {v} KEEPTTL", "SET {h} {v}", "SETBIT {s} 9 1", "SETEX {s} 1 {v}",
	"SETNX {s} {v}", "SETNX {j} {json}",
	"SETRANGE {s} 3 {v}", "SINTERSTORE {s} {t} {t}", "SMOVE {t} {t} a", "SORT {l} ALPHA STORE {s}", "SORT {t} BY nosort STORE {l}",
	"SPOP {t}", "SREM {t} a b", "SUNIONSTORE {s} {t} {t}", "UNLINK {s} {h}", "UNLINK {j}", "XADD {x} MAXLEN 20 * f v", "XADD {s} * f v",
	"XGROUP CREATE {x} g 0 MKSTREAM", "XGROUP DESTROY {x} g", "XGROUP CREATECONSUMER {x} g me", "XGROUP DELCONSUMER {x} g me",
	"XGROUP SETID {x} g 0", "XREADGROUP GROUP g me COUNT 3 STREAMS {x} >", "XACK {x} g 1-1", "XAUTOCLAIM {x} g you 0 0",
	"XCLAIM {x} g you 0 1-1", "XDEL {x} 1-1", "XSETID {x} 99999999999999-0", "XTRIM {x} MAXLEN 1",
	"ZADD {z} 1 a 2 b 3 c", "ZADD {s} 1 a", "ZDIFFSTORE {s} 2 {z} {z}", "ZINCRBY {z} 1 a",
	"ZINTERSTORE {s} 2 {z} {z}", "ZMPOP 1 {z} MAX",
	"ZPOPMAX {z}", "ZPOPMIN {z}", "ZRANGESTORE {s} {z} 0 1", "ZREM {z} a", "ZREMRANGEBYLEX {z} - +", "ZREMRANGEBYRANK {z} 0 0",
	"ZREMRANGEBYSCORE {z} 1 2", "ZUNIONSTORE {s} 2 {z} {z}", "PUBLISH {c} x", "SPUBLISH {c} x", "SCRIPT FLUSH",
	"SADD {t} {m} {m} {m} {m} {m} {m} {m} {m}", "SINTERSTORE {t} {t} {t}", "SUNIONSTORE {t} {t} {t}", "SDIFFSTORE {t} {t} {t}",
	"SMOVE {t} {t} {m}", "SPOP {t} 5", "RENAME {t} {t}", "COPY {t} {t} REPLACE", "DEL {t}", "UNLINK {t} {z}",
	"PEXPIRE {t} {ms}", "EXPIRE {z} -1",
	"RESTORE {t} 0 {setdump} REPLACE", "RESTORE {z} {ms} {zsetdump} REPLACE", "SORT {t} ALPHA STORE {z}", "MOVE {t} {other}",
	"SET {t} {v}|DEL {t}",
	"ZUNIONSTORE {z} 2 {z} {z}", "ZUNIONSTORE {z} 1 {t}", "ZUNIONSTORE {t} 1 {z}", "SUNIONSTORE {z} {t} {t}", "ZINTERSTORE {z} 2 {z} {z}",
	"ZDIFFSTORE {z} 2 {z} {z}", "ZRANGESTORE {z} {z} 0 9", "ZPOPMIN {z} 4", "ZMPOP 1 {z} MIN COUNT 3", "ZREMRANGEBYRANK {z} 0 3",
	"ZREMRANGEBYSCORE {z} 10 20", "RENAME {z} {z}", "COPY {z} {z} REPLACE", "COPY {t} {z} REPLACE", "DEL {z}", "PEXPIRE {z} {ms}",
	"MULTI|SADD {t} {m}|SREM {t} {m}|ZADD {z} {n} {m}|EXEC", "EVAL {setscript} 2 {t} {z} {m} {n}",
	"MULTI|SET {s} {v}|HSET {h} f {v}|DEL {j}|EXEC", "MULTI|SET {s} {v}|SELECT {other}|SET {s} {v}|MOVE {s} {here}|SELECT {here}|EXEC",
	"MULTI|SET {s} {v}|DISCARD", "SELECT {other}|SET {s} {v}|DEL {s}|SELECT {here}", "FCALL change 2 {s} {h} {v}",
	"EVAL {script} 2 {s} {h} {v}", "EVAL {otherscript} 1 {s} {v} {other}", "EVAL {manyscript} 0 {tag} {n} {strings}",
	"FUNCTION LOAD REPLACE {library}",
}

// seldom is what empties a database, or exchanges two.
var seldom = []string{
	"SWAPDB 0 1", "SWAPDB 0 1", "FLUSHDB", "FLUSHDB ASYNC", "FLUSHALL",
	"MULTI|SET {s} {v}|SWAPDB 0 1|SET {s} {v}|EXEC", "MULTI|FLUSHDB|SET {s} {v}|EXEC",
}

// untried are commands that write, and that this test does not send.
var untried = []string{
	"migrate", // to another server, as slots that move have it
	"pfdebug", // for Redis' own tests
	"function|delete", "function|flush", "function|restore",
}

// commands are what writers send, by how often.
type commands struct{ mostly, sometimes, seldom []string }

// commands are those that make sense in a topology.
func (t topology) commands() commands {
	sent := func(all []string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(text string) bool {
			return t.databases == 1 && (strings.Contains(text, "{other}") || strings.Contains(text, "SWAPDB"))
		})
	}
	return commands{sent(mostly), sent(sometimes), sent(seldom)}
}

const (
	library = "#!lua name=chaos\nredis.register_function('change', function(keys, args) " +
		"redis.call('SET', keys[1], args[1]) redis.call('HSET', keys[2], 'f', args[1], 'g', '1') return 1 end)"
	script      = "redis.call('SET', KEYS[1], ARGV[1]) redis.call('HSET', KEYS[2], 'g', ARGV[1]) redis.call('INCR', 'scripts') return 1"
	otherScript = "redis.call('SET', KEYS[1], ARGV[1]) redis.call('SELECT', ARGV[2]) redis.call('SET', KEYS[1], ARGV[1]) return 1"
	setScript   = "redis.call('SADD', KEYS[1], ARGV[1]) " +
		"redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1]) redis.call('SREM', KEYS[1], 'm1') return 1"
	manyScript = "for i = 1, 40 do redis.call('SET', 's:' .. ARGV[1] .. ((ARGV[2] * 7 + i) % ARGV[3]), i) end " +
		"redis.call('DEL', 's:' .. ARGV[1] .. ARGV[2]) return 1"
	seldomEvery = 20000 // commands
	mostlyParts = 60    // percent
	shortestTTL = 1     // ms
	longestTTL  = 3000
)

// draw makes the next commands, which are sent together.
func (w *writer) draw() [][]any {
	from := w.commands.sometimes
	switch n := w.rng.IntN(seldomEvery); {
	case n == 0 && time.Now().Before(w.seldomUntil):
		from = w.commands.seldom
	case n%100 < mostlyParts:
		from = w.commands.mostly
	}
	var commands [][]any
	for text := range strings.SplitSeq(from[w.rng.IntN(len(from))], "|") {
		var args []any
		for word := range strings.FieldsSeq(text) {
			args = append(args, w.word(word))
		}
		commands = append(commands, args)
	}
	return commands
}

// word fills in what stands for something.
func (w *writer) word(word string) any {
	key := func(prefix string, n int) string { return prefix + w.tag + strconv.Itoa(w.rng.IntN(n/w.tags)) }
	switch word {
	case "{s}":
		return key("s:", stringKeys)
	case "{h}":
		return key("h:", hashKeys)
	case "{j}":
		return key("j:", objectKeys)
	case "{l}", "{t}", "{z}", "{x}":
		return key(word[1:2]+":", otherKeys)
	case "{v}":
		return strings.Repeat("v", w.rng.IntN(30)) + strconv.FormatUint(w.rng.Uint64(), 36)
	case "{n}":
		return w.rng.IntN(100)
	case "{ms}":
		return shortestTTL + w.rng.IntN(longestTTL)
	case "{json}":
		return fmt.Sprintf(`{"n":%d,"v":"%x"}`, w.rng.IntN(1e6), w.rng.Uint64())
	case "{m}":
		return "m" + strconv.Itoa(w.rng.IntN(members))
	case "{c}", "{aside}", "{dumped}":
		return word[1:len(word)-1] + w.tag
	case "{tag}":
		return w.tag
	case "{strings}":
		return stringKeys / w.tags
	case "{dump}":
		return w.dumps["string"]
	case "{setdump}":
		return w.dumps["set"]
	case "{zsetdump}":
		return w.dumps["zset"]
	case "{setscript}":
		return setScript
	case "{here}":
		return w.db
	case "{other}":
		return 1 - w.db
	case "{script}":
		return script
	case "{otherscript}":
		return otherScript
	case "{manyscript}":
		return manyScript
	case "{library}":
		return library
	}
	return word
}

// A command that a later Redis brings along has to be sent, too.
func TestEveryCommandThatWritesIsSent(t *testing.T) {
	all, err := redis.Values(testsupport.StartRedis(t).Conn().Do("COMMAND"))
	if err != nil {
		t.Fatal(err)
	}
	names := writing(t, all)
	for _, to := range topologies {
		sent, untried := to.commands().names(), untried
		if to.databases == 1 {
			untried = append(slices.Clone(untried), "move", "swapdb")
		}
		for _, name := range names {
			if sent[name] == slices.Contains(untried, name) {
				t.Errorf("%s: %s writes: sent %v, untried %v", to.name, name, sent[name], !sent[name])
			}
		}
	}
}

// names are those of the commands, and of their subcommands.
func (c commands) names() map[string]bool {
	sent := map[string]bool{}
	for _, text := range slices.Concat(c.mostly, c.sometimes, c.seldom) {
		for one := range strings.SplitSeq(text, "|") {
			words := strings.Fields(strings.ToLower(one))
			sent[words[0]] = true
			if len(words) > 1 {
				sent[words[0]+"|"+words[1]] = true
			}
		}
	}
	return sent
}

// writing are the names of the commands that write.
func writing(t *testing.T, commands []any) (names []string) {
	t.Helper()
	for _, c := range commands {
		fields, err := redis.Values(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		flags, err := redis.Strings(fields[2], nil)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(flags, "write") {
			names = append(names, string(fields[0].([]byte)))
		}
		names = append(names, writing(t, fields[9].([]any))...)
	}
	return names
}
