package redislock

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/redisconn"
	"baton/internal/redislock/lua"
	"baton/internal/redislock/script"
	"baton/internal/testsupport"

	"github.com/gomodule/redigo/redis"
)

// sameEnv is the variable with the seed of an earlier run, whose states are to be tested again.
const sameEnv = "BATON_TEST_SEED"

// The protocol with scripts and the protocol without scripts must decide in the same way. With any content of the election's keys, also
// content that baton would never write, both must return the same answer to the same request, and must result in the same keys.
func TestBothProtocolsDoTheSame(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(sameEnv); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("replay with %s=%d", sameEnv, seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	r := testsupport.StartRedis(t)
	conn := r.Conn()
	server, err := redis.String(conn.Do("INFO", "server"))
	if err != nil {
		t.Fatal(err)
	}
	replication, err := redis.String(conn.Do("INFO", "replication"))
	if err != nil {
		t.Fatal(err)
	}
	w := world{t: t, conn: conn, run: infoLine(server, "run_id"), replID: infoLine(replication, "master_replid")}
	answers := []string{"won", "held", "wait paused", "wait quarantine", "wait reserved", "wait priority", "wait left",
		"renewed", "lost", "released true", "released false", "raised", "refused"}
	outcomes := map[string]int{}
	for i := 0; i < testsupport.Often(2000) || len(outcomes) < len(answers) && i < 10_000; i++ {
		c := w.draw(rng)
		scripts, without := w.play(c, "scripts"), w.play(c, "without")
		diff := differences(scripts, without)
		for range 40 { // the time between the two requests may change the result, above all on a busy machine
			if diff == "" {
				break
			}
			scripts, without = w.play(c, "scripts"), w.play(c, "without")
			diff = differences(scripts, without)
		}
		if diff != "" {
			t.Fatalf("case %d: %+v\nscripts: %v\nwithout: %v\ndiffer in %s", i, c, scripts, without, diff)
		}
		outcomes[scripts["answer"]]++
	}
	for _, want := range answers {
		if outcomes[want] == 0 {
			t.Errorf("no case was answered %q: %v", want, outcomes)
		}
	}
}

// infoLine returns the value of a line of INFO.
func infoLine(info, name string) string {
	_, rest, _ := strings.Cut(info, name+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

// world is a Redis in which the test writes the keys of elections itself.
type world struct {
	t    *testing.T
	conn redis.Conn
	run  string
	// replID is the replid of the same server.
	replID string
}

// drawn is a state of an election's keys, and a request. Times are relative to now.
type drawn struct {
	op            string
	holder        string
	left, quarLen int64 // in ms; 0 means that the key does not exist, and -1 that it does not expire
	term, control map[string]string
	soon          map[string]int64 // the fields of control that contain times
	c             elector.Candidate
	m             memory
	priority      int
	epoch, floor  int64
	held          int64 // the time until the end of the last lease, in ms; 0 means unknown
	to            string
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

func (w world) draw(rng *rand.Rand) drawn {
	d := drawn{
		op:     pick(rng, "acquire", "acquire", "acquire", "renew", "release", "raise"),
		holder: pick(rng, "", "", "", "me", "other", "old"), left: pick[int64](rng, 1000, 4000, 3_600_000, -1),
		quarLen: pick[int64](rng, 0, 0, 1000, 3_600_000, -1),
		term:    map[string]string{}, control: map[string]string{}, soon: map[string]int64{},
		c: elector.Candidate{Owner: "me", Floor: pick[int64](rng, 0, 0, 3, 8000, 4102444000000, 1<<53-2, 1<<53, math.MaxInt64),
			Observer: rng.IntN(6) == 0},
		m: memory{early: pick(rng, "", "", "lease", "quarantine"), leaseMS: pick[int64](rng, 0, 60_000)}, priority: pick(rng, 0, 3, 9),
		epoch: pick[int64](rng, 4, 5, 6, 5000), floor: pick[int64](rng, 3, 8000, 4102444000000, 1<<53-2, math.MaxInt64),
		to:   pick(rng, "", "b"),
		held: pick[int64](rng, 0, -60_000, -2000, 4000),
	}
	maybe := func(m map[string]string, field string, values ...string) {
		if rng.IntN(4) > 0 {
			m[field] = pick(rng, values...)
		}
	}
	if rng.IntN(6) > 0 {
		maybe(d.term, "epoch", "5", "5", "5", "5", "5", "5", "7000", "", "abc", "-1", "1.5", "9007199254740991", "4102444800000",
			"99999999999999999999")
		maybe(d.term, "owner", "me", "other", "old")
		if rng.IntN(4) == 0 {
			d.term["forgot"] = "1"
		}
		maybe(d.term, "node_id", "a", "b", "n x:y")
		maybe(d.term, "ended", "0", "1")
		maybe(d.term, "run_id", w.run, w.run, "another", "")
		maybe(d.term, "replid", w.replID, w.replID, w.replID, "another", "")
		maybe(d.term, "ttl_ms", "3000", "60000")
	}
	if rng.IntN(3) == 0 {
		maybe(d.term, "quarantine_run", w.run, w.run+"/"+w.replID, w.run+"/another", "another", "")
		maybe(d.term, "floor", "7", "9000", "4102444800001")
	}
	if rng.IntN(8) == 0 {
		d.control["paused_at"] = "5"
		maybe(d.control, "paused_reason", "by alice: upgrade")
	}
	time := func(field string, every int, values ...int64) {
		if rng.IntN(every) == 0 {
			d.soon[field] = pick(rng, values...)
		}
	}
	maybe(d.control, "reserved_for", "a", "b")
	time("reserved_until", 3, 1000, -1000, 3_600_000)
	time("deferred_until", 3, 250, -1000, 3_600_000)
	for _, other := range []string{"a", "b", "n x:y"} {
		time("priority:"+other, 4, -1000, -61_000, 59_000, 90_000) // no value is close to the limit, because time passes
	}
	maybe(d.control, "priority:c", "6", "six 7", "5 x", "", "99999999999999999999 1", "5 99999999999999999999")
	if rng.IntN(8) == 0 {
		maybe(d.control, "deferred_until", "1e3", "99999999999999999999", "x", " 7 ")
		maybe(d.control, "reserved_until", "1e3", "99999999999999999999", "nan", "0x10")
	}
	maybe(d.control, "stepdown_owner", "me", "other")
	maybe(d.control, "stepdown_to", "b")
	maybe(d.control, "aside:b", "9 tired")
	return d
}

// play writes the state, sends the request by one of the protocols, and returns the resulting keys and the answer.
func (w world) play(d drawn, name string) map[string]string {
	w.t.Helper()
	k := script.KeysOf("same")
	do := func(name string, args ...any) any {
		w.t.Helper()
		reply, err := w.conn.Do(name, args...)
		if err != nil {
			w.t.Fatal(err)
		}
		return reply
	}
	send := func(name string, args ...any) {
		w.t.Helper()
		if err := w.conn.Send(name, args...); err != nil {
			w.t.Fatal(err)
		}
	}
	send("FLUSHALL")
	now := clockOf(w.t, do("TIME"))
	if d.holder != "" {
		send("SET", k.Lock(), d.holder)
	}
	if d.quarLen != 0 {
		send("SET", k.Quarantine(), "x")
	}
	for key, ms := range map[string]int64{k.Lock(): d.left, k.Quarantine(): d.quarLen} {
		if ms > 0 {
			send("PEXPIRE", key, ms)
		}
	}
	for field, value := range d.term {
		send("HSET", k.Term(), field, value)
	}
	if len(d.term) > 0 && d.held != 0 {
		send("HSET", k.Term(), "held_until", now+d.held)
	}
	for field, value := range d.control {
		send("HSET", k.Control(), field, value)
	}
	for field, ms := range d.soon {
		text := strconv.FormatInt(now+ms, 10)
		if strings.HasPrefix(field, "priority:") {
			text = "5 " + text
		}
		send("HSET", k.Control(), field, text)
	}
	do("") // sends all queued commands

	after := map[string]string{"answer": w.send(d, name, k)}
	if after["answer"] == "refused" {
		// In this case no lock is taken, and the other writes do not matter.
		after["lock"] = fmt.Sprint(do("GET", k.Lock()))
		return after
	}
	for _, hash := range []string{k.Term(), k.Control()} {
		fields, err := redis.StringMap(do("HGETALL", hash), nil)
		if err != nil {
			w.t.Fatal(err)
		}
		for field, value := range fields {
			after[hash+" "+field] = relative(value, now)
		}
	}
	for _, key := range []string{k.Lock(), k.Quarantine()} {
		after[key], after[key+" left"] = fmt.Sprintf("%s", do("GET", key)), about(do("PTTL", key).(int64))
	}
	nodes, err := redis.StringMap(do("HGETALL", k.Nodes()), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for node, text := range nodes {
		text, _, _ = strings.Cut(text, `,"seen_ms"`)
		after["node "+node] = text
	}
	events, err := decodeEvents(do("XREVRANGE", k.Events(), "+", "-"))
	if err != nil {
		w.t.Fatal(err)
	}
	told := make([]string, 0, len(events))
	for _, e := range events {
		told = append(told, fmt.Sprint(e.Event, " ", e.NodeID, " ", relative(strconv.FormatInt(e.Epoch, 10), now), " ", e.Reason))
	}
	slices.Sort(told) // a script adds its events in another order than a transaction
	after["events"] = strings.Join(told, "; ")
	return after
}

func (w world) send(d drawn, name string, k script.Keys) string {
	w.t.Helper()
	part := participant{keys: k, nodeID: "a", ttlMS: 5000, nodeInfo: nodeInfoText(`{"version":"x"}`), priority: d.priority}
	p := scripted{part, stringScripts}
	if name == "without" {
		p.scripts = scriptsOf(LockOptions{Interpreter: lua.Compile})
	}
	ctx := w.t.Context()
	refused := func(err error) string {
		var refusal redis.Error
		if !errors.As(err, &refusal) || redisconn.Code(refusal) != "EPOCH" {
			w.t.Fatalf("%s: %+v: %v", name, d, err)
		}
		return "refused"
	}
	switch d.op {
	case "acquire":
		v, err := p.acquire(ctx, w.conn, d.c, func() memory { return d.m })
		if err != nil {
			return refused(err)
		}
		w.noted(k, v)
		if v.word == "wait" {
			return v.word + " " + v.detail
		}
		return v.word
	case "renew":
		order, err := p.renew(ctx, w.conn, "me", d.epoch, true, true)
		switch {
		case errors.Is(err, elector.ErrLost):
			return "lost"
		case err != nil:
			return refused(err)
		}
		w.noted(k, order)
		return "renewed"
	case "release":
		was, err := p.release(ctx, w.conn, "me", elector.Handover{Event: "stepped_down", Reason: "x", To: d.to})
		if err != nil {
			return refused(err)
		}
		return fmt.Sprint("released ", was)
	default:
		epoch, err := p.raise(ctx, w.conn, "me", d.floor)
		switch {
		case errors.Is(err, elector.ErrLost):
			return "lost"
		case err != nil:
			return refused(err)
		}
		w.noted(k, epoch)
		return "raised"
	}
}

// noted stores the details of an answer for the comparison.
func (w world) noted(k script.Keys, answer any) {
	w.t.Helper()
	text := fmt.Sprintf("%+v", answer)
	if v, ok := answer.(acquireReply); ok {
		// If several nodes have a high priority, the named node is random.
		why, _, _ := strings.Cut(v.detail, "left to ")
		left := fmt.Sprint(v.left)
		if v.left > 0 {
			left = about(v.left)
		}
		text = fmt.Sprintf("%s %d, left %s , epoch %d , free %s", why, v.leaseMS, left, v.epoch, about(v.freeMS))
	}
	if _, err := w.conn.Do("HSET", k.Control(), "answer", text); err != nil {
		w.t.Fatal(err)
	}
}

func clockOf(t *testing.T, reply any) int64 {
	t.Helper()
	now, err := redisconn.Time(reply)
	if err != nil {
		t.Fatal(err)
	}
	return now.UnixMilli()
}

// about marks a number that depends on the exact time of the request.
func about(ms int64) string { return fmt.Sprintf("~%d", ms) }

// relative replaces each time in a text that is close to now by its distance to now, in ms.
func relative(text string, now int64) string {
	words := strings.Fields(text)
	for i, word := range words {
		if n, err := strconv.ParseInt(word, 10, 64); err == nil && n > now/2 && n < 2*now {
			words[i] = about(n - now)
		}
	}
	return strings.Join(words, " ")
}

// differences returns the differences between two outcomes. Marked numbers may differ by the time that the requests took.
func differences(a, b map[string]string) string {
	var found []string
	all := maps.Clone(a)
	maps.Copy(all, b)
	for key := range all {
		x, inA := a[key]
		y, inB := b[key]
		if inA != inB || !alike(x, y) {
			found = append(found, fmt.Sprintf("%s: %q, %q", key, x, y))
		}
	}
	slices.Sort(found)
	return strings.Join(found, "\n")
}

func alike(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		m, inA := strings.CutPrefix(x[i], "~")
		n, inB := strings.CutPrefix(y[i], "~")
		if x[i] != y[i] && !(inA && inB && max(number(m)-number(n), number(n)-number(m)) < 150) {
			return false
		}
	}
	return true
}

func nodeInfoText(text string) *atomic.Pointer[string] {
	p := new(atomic.Pointer[string])
	p.Store(&text)
	return p
}
