package keys

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
	"baton/internal/redisconn/follow"
	"baton/internal/testsupport"
)

func TestMain(m *testing.M) { testsupport.Main(m) }

// given lists the commands that fill database 0 before each example.
var given = []string{
	"SET s 10", "SET s2 hello", "SET ttl 1 EX 1000", "HSET h f 1 g 2", "RPUSH l 3 1 2", "RPUSH l2 x", "SADD t a b c", "SADD t2 b d",
	"ZADD z 1 a 2 b 3 c", "ZADD z2 5 b", "XADD x 1-1 f v", "XADD x 2-1 f v", "XGROUP CREATE x grp 0",
	"XREADGROUP GROUP grp me COUNT 1 STREAMS x >", "GEOADD geo 13.361389 38.115556 Palermo 15.087269 37.502669 Catania",
	"PFADD p a b c", "PFADD p2 d",
}

// examples contains example commands for each command of the server that writes, by the server's name for the command. Several examples
// are separated by semicolons. Each example runs on the data of given.
var examples = map[string]string{
	"append": "APPEND s x", "bitfield": "BITFIELD s SET u8 0 1 INCRBY u8 8 1", "bitop": "BITOP AND new s s2; BITOP NOT s s2",
	"blmove": "BLMOVE l l2 LEFT RIGHT 1", "blmpop": "BLMPOP 1 2 none l LEFT COUNT 2", "blpop": "BLPOP none l 1", "brpop": "BRPOP l l2 1",
	"brpoplpush": "BRPOPLPUSH l new 1", "bzmpop": "BZMPOP 1 2 none z MIN", "bzpopmax": "BZPOPMAX z 1", "bzpopmin": "BZPOPMIN none z 1",
	"copy": "COPY s new; COPY h s REPLACE; COPY s s2 DB 2; copy h new db 3 replace",
	"decr": "DECR s", "decrby": "DECRBY s 3", "del": "DEL s h none t", "expire": "EXPIRE s 100; EXPIRE s -1", "expireat": "EXPIREAT s 1",
	"flushall": "FLUSHALL; FLUSHALL ASYNC", "flushdb": "FLUSHDB",
	"function|load":    "FUNCTION LOAD LIB; FUNCTION LOAD REPLACE LIB",
	"function|delete":  "FUNCTION DELETE lib",
	"function|flush":   "FUNCTION FLUSH",
	"function|restore": "FUNCTION RESTORE DUMP",
	"geoadd":           "GEOADD geo 1 1 x", "georadius": "GEORADIUS geo 15 37 200 km STORE new; GEORADIUS geo 15 37 200 km storedist z; " +
		"GEORADIUS geo 15 37 200 km STORE new STORE z; GEORADIUS geo 15 37 200 km STORE new COUNT 1 STOREDIST z; " +
		"GEORADIUS geo 15 37 200 km",
	"georadiusbymember": "GEORADIUSBYMEMBER geo Palermo 200 km STORE new; GEORADIUSBYMEMBER geo Palermo 200 km STORE STORE",
	"geosearchstore":    "GEOSEARCHSTORE new geo FROMLONLAT 15 37 BYRADIUS 200 km",
	"getdel":            "GETDEL s", "getex": "GETEX s EX 100; GETEX ttl PERSIST", "getset": "GETSET s 1", "hdel": "HDEL h f; HDEL h f g",
	"hincrby": "HINCRBY h f 1", "hincrbyfloat": "HINCRBYFLOAT h f 1.5", "hmset": "HMSET h f 2 g 3", "hset": "HSET h f 9; hSeT new f 9",
	"hsetnx": "HSETNX h new 1", "incr": "INCR s", "incrby": "INCRBY s 3", "incrbyfloat": "INCRBYFLOAT s 1.5",
	"linsert": "LINSERT l BEFORE 1 x", "lmove": "LMOVE l l2 LEFT LEFT", "lmpop": "LMPOP 2 none l RIGHT", "lpop": "LPOP l; LPOP l 3",
	"lpush": "LPUSH l x", "lpushx": "LPUSHX l x", "lrem": "LREM l 0 1", "lset": "LSET l 0 x", "ltrim": "LTRIM l 1 1",
	"migrate": "MIGRATE OTHER s 0 5000; MIGRATE OTHER  0 5000 KEYS s h l", "move": "MOVE s 2; MOVE h 1", "mset": "MSET s 1 new 2 h 3",
	"msetnx": "MSETNX new 1 new2 2", "persist": "PERSIST ttl", "pexpire": "PEXPIRE s 100000", "pexpireat": "PEXPIREAT s 99999999999999",
	"pfadd": "PFADD p x; PFADD new", "pfdebug": "PFDEBUG TODENSE p", "pfmerge": "PFMERGE p p2; PFMERGE new p p2",
	"psetex": "PSETEX s 100000 x",
	"rename": "RENAME s s2; RENAME h new", "renamenx": "RENAMENX h new", "restore": "RESTORE new 0 DUMP; RESTORE s 100000 DUMP REPLACE",
	"restore-asking": "RESTORE-ASKING new 0 DUMP", "rpop": "RPOP l", "rpoplpush": "RPOPLPUSH l l2; RPOPLPUSH l l", "rpush": "RPUSH l x",
	"rpushx": "RPUSHX l x", "sadd": "SADD t x", "sdiffstore": "SDIFFSTORE new t t2; SDIFFSTORE t2 t t",
	"set":    "SET s 1; SET new 1 EX 100; SET s 5 GET",
	"setbit": "SETBIT s 1 1", "setex": "SETEX s 100 x", "setnx": "SETNX new 1", "setrange": "SETRANGE s 1 x",
	"sinterstore": "SINTERSTORE new t t2", "smove": "SMOVE t t2 a",
	"sort": "SORT l STORE new; SORT l BY w_* GET # GET store LIMIT 0 2 DESC STORE h; SORT l STORE s STORE s2", "spop": "SPOP t; SPOP t 3",
	"srem": "SREM t a b", "sunionstore": "SUNIONSTORE new t t2", "swapdb": "SWAPDB 0 2", "unlink": "UNLINK s h none",
	"xack": "XACK x grp 1-1", "xadd": "XADD x * f v; XADD new NOMKSTREAM * f v; XADD x MAXLEN 1 9-1 f v",
	"xautoclaim": "XAUTOCLAIM x grp you 0 0", "xclaim": "XCLAIM x grp you 0 1-1", "xdel": "XDEL x 1-1",
	"xgroup|create": "XGROUP CREATE x new 0; XGROUP CREATE new g $ MKSTREAM", "xgroup|createconsumer": "XGROUP CREATECONSUMER x grp you",
	"xgroup|delconsumer": "XGROUP DELCONSUMER x grp me", "xgroup|destroy": "XGROUP DESTROY x grp", "xgroup|setid": "XGROUP SETID x grp 0",
	"xreadgroup": "XREADGROUP GROUP grp me COUNT 10 STREAMS x >; XREADGROUP GROUP grp you NOACK STREAMS x >", "xsetid": "XSETID x 9-9",
	"xtrim": "XTRIM x MAXLEN 1", "zadd": "ZADD z 9 a; ZADD z INCR 1 a", "zdiffstore": "ZDIFFSTORE new 2 z z2", "zincrby": "ZINCRBY z 1 a",
	"zinterstore": "ZINTERSTORE new 2 z z2 WEIGHTS 2 3", "zmpop": "ZMPOP 2 none z MAX COUNT 2", "zpopmax": "ZPOPMAX z 2",
	"zpopmin":     "ZPOPMIN z 3",
	"zrangestore": "ZRANGESTORE new z 0 1", "zrem": "ZREM z a", "zremrangebylex": "ZREMRANGEBYLEX z - +",
	"zremrangebyrank":  "ZREMRANGEBYRANK z 0 0",
	"zremrangebyscore": "ZREMRANGEBYSCORE z 1 2", "zunionstore": "ZUNIONSTORE new 2 z z2; ZUNIONSTORE z 1 z",

	// These commands are for fields that expire, in Redis 7.4 and 8.0, and in Valkey 9.0 and 9.1.
	"hexpire": "HEXPIRE h 100 FIELDS 2 f g; HEXPIRE h 0 FIELDS 1 f", "hexpireat": "HEXPIREAT h 9999999999 FIELDS 1 f",
	"hpexpire": "HPEXPIRE h 100000 FIELDS 1 f", "hpexpireat": "HPEXPIREAT h 9999999999999 FIELDS 1 f; HPEXPIREAT h 1 FIELDS 2 f g",
	"hpersist": "HPERSIST hx FIELDS 1 f", "hgetdel": "HGETDEL h FIELDS 1 f; HGETDEL h FIELDS 2 f g",
	"hgetex": "HGETEX h EX 100 FIELDS 1 f; HGETEX hx PERSIST FIELDS 1 f",
	"hsetex": "HSETEX h EX 100 FIELDS 1 f 5; HSETEX new EX 100 FIELDS 1 f 5",
	// These commands exist in Redis 8.0 and later.
	"vadd": "VADD v VALUES 2 3 4 b; VADD new VALUES 2 1 1 a", "vrem": "VREM v a", "vsetattr": "VSETATTR v a {\"x\":1}",
	"xdelex": "XDELEX x IDS 1 1-1", "xackdel": "XACKDEL x grp IDS 1 1-1", "delex": "DELEX s; DELEX s IFEQ 10",
	// These commands exist in Valkey 9.0 and 9.1.
	"delifeq": "DELIFEQ s 10", "msetex": "MSETEX 2 s 1 new 2 EX 100",
}

// givenBy lists further commands that fill database 0, if the server has the command that is the key.
var givenBy = map[string]string{
	"hexpire": "HSET hx f 1 g 2|HEXPIRE hx 1000 FIELDS 1 f", "vadd": "VADD v VALUES 2 1 2 a|VADD v VALUES 2 2 1 z",
}

// besideIf lists further examples: the second text of each pair, if the server accepts the command in the first text.
var besideIf = [][2]string{
	{"SET none 1 IFEQ 1", "SET s 5 IFEQ 10; SET s 5 IFEQ 10 GET"},
	{"HPTTL none FIELDS 1 f", "HPEXPIRE h 1 FIELDS 1 f|AWAITFIELD h f; HPEXPIRE h 1 FIELDS 2 f g|AWAIT h"},
}

// beside lists examples that write in other ways than by a single command of the list.
var beside = []string{
	"EVAL redis.call('SET','s',1)redis.call('SELECT',2)redis.call('HSET','n','f','v') 0", "EVALSHA SHA 0", "FCALL f 1 s",
	"MULTI|SET s 1|SELECT 3|SET s 2|MOVE s 5|EXEC|SELECT 0", "PFCOUNT p p2", "EXPIRE s 0", "PFCOUNT p", "SET s 1 PX 1|AWAIT s",
}

// rig is a Redis, with the keys that its stream has reported.
type rig struct {
	testsupport.Client
	table   *Table
	other   *testsupport.Redis
	marks   int
	cluster bool     // the server is a node of a Cluster, which has one database
	names   []string // the server's commands that write

	mu   sync.Mutex
	seen map[string]bool // "db key"
	odd  []string        // commands whose keys are unknown
	came chan string     // the marks
}

func (g *rig) Command(db int, args [][]byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(args) == 3 && strings.HasPrefix(string(args[1]), "mark:") {
		g.came <- string(args[1])
		return
	}
	if !g.table.Changes(db, args, (*seeing)(g)) {
		g.odd = append(g.odd, string(slices.Concat(args...)))
	}
}

func (g *rig) Reached(follow.Position) {}

type seeing rig

func (g *seeing) Key(db int, key []byte) { g.seen[fmt.Sprintf("%d %s", db, key)] = true }
func (g *seeing) Flushed(db int)         { g.seen[fmt.Sprintf("%d *", db)] = true }
func (g *seeing) Swapped(a, b int) {
	g.seen[fmt.Sprintf("%d *", a)], g.seen[fmt.Sprintf("%d *", b)] = true, true
}

func newRig(t testing.TB, opts ...testsupport.RedisOption) *rig {
	r := testsupport.StartRedis(t, opts...)
	g := &rig{Client: r.Client(t), other: testsupport.StartRedis(t), came: make(chan string, 1), seen: map[string]bool{}}
	s, err := redisconn.Open(redisconn.Options{URL: r.URL(), ClientName: "baton-test"})
	if err != nil {
		t.Fatal(err)
	}
	masters, err := s.Masters(t.Context())
	if err == nil {
		g.table, err = Read(t.Context(), g.Conn)
	}
	if err != nil {
		t.Fatal(err)
	}
	stream, joined, err := follow.Join(t.Context(), follow.Master{Socket: masters[0].Socket, Wait: 30 * time.Second})
	if err != nil {
		t.Fatalf("%+v, %v", joined, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = stream.Follow(ctx, g)
	}()
	t.Cleanup(func() { cancel(); <-done; _ = s.Close() })
	return g
}

// await returns when the stream has delivered all commands so far.
func (g *rig) await() {
	g.T.Helper()
	g.marks++
	mark := fmt.Sprintf("mark:%d", g.marks)
	if !g.cluster {
		g.Do("SELECT", 7)
		defer g.Do("SELECT", 0)
	}
	g.Do("SET", mark, 1)
	select {
	case got := <-g.came:
		if got != mark {
			g.T.Fatalf("%s came instead of %s", got, mark)
		}
	case <-time.After(time.Minute):
		g.T.Fatal("the stream is silent")
	}
}

// contents returns every key of the databases 0 to 5, with its value and its time of expiry.
func (g *rig) contents() map[string]string {
	g.T.Helper()
	all := map[string]string{}
	for db := range 6 {
		g.Do("SELECT", db)
		keys, err := redis.Strings(g.Do("KEYS", "*"), nil)
		if err != nil {
			g.T.Fatal(err)
		}
		for _, key := range keys {
			all[fmt.Sprintf("%d %s", db, key)] = fmt.Sprint(g.Str("DUMP", key), g.Num("PEXPIRETIME", key))
		}
	}
	g.Do("SELECT", 0)
	return all
}

// try runs an example on the data of given. It returns the keys that the example has changed, and the keys that the stream has reported.
func (g *rig) try(example string) (changed []string, seen map[string]bool, odd []string) {
	g.T.Helper()
	g.Do("FLUSHALL")
	g.Do("FUNCTION", "FLUSH")
	library := "#!lua name=lib\nredis.register_function('f', function(keys) redis.call('SET', keys[1], 'f') redis.call('DEL', 'h') end)"
	g.Do("FUNCTION", "LOAD", library)
	for _, command := range given {
		g.do(strings.Split(command, " "))
	}
	for name, commands := range givenBy {
		if slices.Contains(g.names, name) {
			for command := range strings.SplitSeq(commands, "|") {
				g.do(strings.Split(command, " "))
			}
		}
	}
	g.Do("SELECT", 2)
	g.Do("SET", "there", 1)
	g.Do("SELECT", 0)
	sha := g.Str("SCRIPT", "LOAD", "redis.call('APPEND', 's', 'x') redis.call('DEL', 'l')")
	dump := g.Str("DUMP", "s2")
	functions := g.Str("FUNCTION", "DUMP")
	host, port, _ := strings.Cut(g.other.Addr(), ":")
	before := g.contents()
	g.await()
	g.mu.Lock()
	clear(g.seen)
	g.odd = nil
	g.mu.Unlock()
	for command := range strings.SplitSeq(example, "|") {
		words := strings.Split(command, " ")
		for i := 0; i < len(words); i++ {
			switch words[i] {
			case "SHA":
				words[i] = sha
			case "DUMP":
				if words[i] = dump; words[0] == "FUNCTION" {
					words[i] = functions
					g.Do("FUNCTION", "FLUSH")
				}
			case "OTHER":
				g.otherDo("FLUSHALL")
				words = slices.Concat(words[:i], []string{host, port}, words[i+1:])
			case "LIB":
				words[i] = library
				if words[2] != "REPLACE" {
					g.Do("FUNCTION", "FLUSH")
				}
			}
		}
		g.do(words)
	}
	g.await()
	after := g.contents()
	for key, value := range before {
		if after[key] != value {
			changed = append(changed, key)
		}
	}
	for key := range after {
		if _, old := before[key]; !old {
			changed = append(changed, key)
		}
	}
	slices.Sort(changed)
	g.mu.Lock()
	defer g.mu.Unlock()
	return changed, maps.Clone(g.seen), slices.Clone(g.odd)
}

func (g *rig) otherDo(command string) {
	g.T.Helper()
	c := g.other.Client(g.T)
	c.Do(command)
	_ = c.Conn.Close()
}

func (g *rig) do(words []string) {
	g.T.Helper()
	switch words[0] {
	case "AWAIT":
		testsupport.Await(g.T, words[1]+" to expire", func() bool { return g.Num("EXISTS", words[1]) == 0 })
		return
	case "AWAITFIELD":
		testsupport.Await(g.T, words[2]+" of "+words[1]+" to expire", func() bool { return g.Num("HEXISTS", words[1], words[2]) == 0 })
		return
	}
	g.Do(words[0], redis.Args{}.AddFlat(words[1:])...)
}

// check fails the test if a key has changed and the stream has not reported the key.
func (g *rig) check(example string) {
	changed, seen, odd := g.try(example)
	if len(odd) > 0 {
		g.T.Errorf("%s: not known: %q", example, odd)
	}
	extra := maps.Clone(seen)
	for _, key := range changed {
		db, _, _ := strings.Cut(key, " ")
		if !seen[key] && !seen[db+" *"] && !seen["-2 *"] {
			g.T.Errorf("%s changed %q, and only %v was seen", example, key, slices.Sorted(maps.Keys(seen)))
		}
		delete(extra, key)
	}
	for key := range extra {
		if !strings.HasSuffix(key, "*") {
			g.T.Logf("%s: %q was seen, and has not changed", example, key)
		}
	}
}

// writing lists the server's commands that write, including subcommands.
func (g *rig) writing() (names []string) {
	g.T.Helper()
	var walk func(entries []any)
	walk = func(entries []any) {
		for _, entry := range entries {
			fields, err := redis.Values(entry, nil)
			if err != nil {
				g.T.Fatal(err)
			}
			name, _ := redis.String(fields[0], nil)
			name = strings.ToLower(name) // the name of a module's command may contain capital letters
			flags, _ := redis.Strings(fields[2], nil)
			if slices.Contains(flags, "write") {
				names = append(names, name)
			}
			if len(fields) > 9 {
				subs, _ := redis.Values(fields[9], nil)
				walk(subs)
			}
		}
	}
	entries, err := redis.Values(g.Do("COMMAND"), nil)
	if err != nil {
		g.T.Fatal(err)
	}
	walk(entries)
	slices.Sort(names)
	return names
}

// For each command of the server's own list, the stream must report all keys that the command changes.
func TestEveryCommandThatWritesIsUnderstood(t *testing.T) {
	g := newRig(t)
	g.names = g.writing()
	if len(g.names) < 100 {
		t.Fatalf("the server writes by %d commands only: %q", len(g.names), g.names)
	}
	for _, name := range g.names {
		if name == flushSlot {
			continue // see TestAFlushedSlotIsToldOf
		}
		if examples[name] == "" {
			t.Errorf("no example of %s, which the server has", name)
			continue
		}
		changes := 0
		for example := range strings.SplitSeq(examples[name], "; ") {
			g.check(example)
			changed, _, _ := g.try(example)
			changes += len(changed)
		}
		if changes == 0 && !strings.HasPrefix(name, "function") {
			t.Errorf("%s: the examples change nothing", name)
		}
	}
	for _, example := range beside {
		g.check(example)
	}
	for _, way := range besideIf {
		first := strings.Split(way[0], " ")
		if _, err := g.Conn.Do(first[0], redis.Args{}.AddFlat(first[1:])...); err != nil {
			t.Logf("this server does not take %s: %v", way[0], err)
			continue
		}
		for example := range strings.SplitSeq(way[1], "; ") {
			g.check(example)
		}
	}
}

const flushSlot = "cluster|flushslot"

// A server without CLUSTER FLUSHSLOT flushes all of its slots.
func TestAFlushedSlotIsToldOf(t *testing.T) {
	g := newRig(t, testsupport.RedisClusterNode())
	g.cluster = true
	g.Do("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	testsupport.Await(t, "the node serves its slots", func() bool {
		return strings.Contains(g.Str("CLUSTER", "INFO"), "cluster_state:ok")
	})
	names := g.writing()
	for _, mode := range []string{"SYNC", "ASYNC"} {
		for i := range 5 {
			g.Do("SET", fmt.Sprintf("{a}%d", i), 1)
		}
		g.await()
		g.mu.Lock()
		clear(g.seen)
		g.odd = nil
		g.mu.Unlock()
		if slices.Contains(names, flushSlot) {
			g.Do("CLUSTER", "FLUSHSLOT", g.Num("CLUSTER", "KEYSLOT", "a"), mode)
		} else {
			g.Do("FLUSHALL", mode)
		}
		g.await()
		g.mu.Lock()
		for i := range 5 {
			if key := fmt.Sprintf("0 {a}%d", i); !g.seen[key] && !g.seen["-2 *"] && len(g.odd) == 0 {
				t.Errorf("%s: %s is gone, and only %v was seen", mode, key, slices.Sorted(maps.Keys(g.seen)))
			}
		}
		t.Logf("%s: seen %v, not known %q", mode, slices.Sorted(maps.Keys(g.seen)), g.odd)
		g.mu.Unlock()
	}
}
