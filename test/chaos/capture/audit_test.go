package capture

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
)

// compare says how the tables differ from Redis, and how many rows are as they must be.
func (l *lab) compare() (wrongs []string, rows int, err error) {
	master, err := l.store.Daemon().AwaitMaster(nil)
	if err != nil {
		return nil, 0, err
	}
	conn, err := master.Dial()
	if err != nil {
		return nil, 0, err
	}
	defer conn.Close()
	for _, j := range jobs {
		want, err := j.inRedis(conn)
		if err != nil {
			return nil, 0, err
		}
		got, err := l.inTable(j)
		if err != nil {
			return nil, 0, err
		}
		found := differences(j.name, want, got)
		rows += len(got) - min(len(found), len(got))
		wrongs = append(wrongs, found...)
	}
	dead, err := l.db.Query(l.t.Context(), "SELECT job, id, error || ': ' || record FROM baton_dead_letter LIMIT 10")
	for _, d := range dead {
		wrongs = append(wrongs, "a dead letter: "+strings.Join(d, " "))
	}
	return wrongs, rows, err
}

func differences(table string, want, got map[string]string) (found []string) {
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if g, ok := got[id]; !ok {
			found = append(found, fmt.Sprintf("%s: row %s is missing, Redis has %s", table, id, want[id]))
		} else if g != want[id] {
			found = append(found, fmt.Sprintf("%s: row %s is %s, Redis has %s", table, id, g, want[id]))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[id]; !ok {
			found = append(found, fmt.Sprintf("%s: row %s is %s, and its key is not there", table, id, got[id]))
		}
	}
	return found
}

// inRedis is what the rows of a job must be, by their ids.
func (j job) inRedis(c redis.Conn) (map[string]string, error) {
	rows := map[string]string{}
	if _, err := c.Do("SELECT", j.db); err != nil {
		return nil, err
	}
	keys, err := redis.Strings(c.Do("KEYS", j.key+"*"))
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		kind, err := redis.String(c.Do("TYPE", key))
		if err != nil {
			return nil, err
		}
		if (kind == "hash") != (j.value == "hash") || kind != "hash" && kind != "string" {
			continue
		}
		row, ok, err := j.row(c, key)
		if err != nil {
			return nil, err
		}
		if ok {
			rows[strings.TrimPrefix(key, j.key)] = row
		}
	}
	return rows, nil
}

// row is that of a key; false if it has just expired.
func (j job) row(c redis.Conn, key string) (text string, ok bool, err error) {
	if j.value == "hash" {
		fields, err := redis.Values(c.Do("HMGET", key, "f", "g"))
		if err != nil {
			return "", false, err
		}
		texts := make([]string, len(fields))
		for i, f := range fields {
			texts[i] = testsupport.NULL
			if f != nil {
				texts[i] = string(f.([]byte))
			}
		}
		return fmt.Sprintf("%q", texts), true, nil
	}
	value, err := redis.Bytes(c.Do("GET", key))
	if err == redis.ErrNil { //nolint:errorlint // redigo's own, and never wrapped
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	if j.value == "string" {
		return fmt.Sprintf("%q", []string{hex.EncodeToString(value)}), true, nil
	}
	var object struct {
		N int64
		V string
	}
	err = json.Unmarshal(value, &object)
	return fmt.Sprintf("%q", []string{strconv.FormatInt(object.N, 10), object.V}), true, err
}

// inTable is what the rows of a job are.
func (l *lab) inTable(j job) (map[string]string, error) {
	columns := map[string]string{"string": "encode(v, 'hex')", "hash": "f, g", "json": "n::text, v"}[j.value]
	got, err := l.db.Query(l.t.Context(), "SELECT id, "+columns+" FROM "+j.name)
	rows := make(map[string]string, len(got))
	for _, r := range got {
		rows[r[0]] = fmt.Sprintf("%q", r[1:])
	}
	return rows, err
}

// joins are what nodes note of how they have joined a stream, and why all keys were read.
var joins = regexp.MustCompile(`went on with the promoted master \(\+CONTINUE\)|went on where it was left \(\+CONTINUE\)|` +
	`began at the end of the stream|all keys are read: [^";]*`)

// report says what happened, for a person.
func (l *lab) report() {
	var b strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "  %-10s %s\n", what, fmt.Sprintf(format, args...))
	}
	line("faults", "%d", len(l.nemesis.Strikes))
	for _, kind := range l.nemesis.Kinds() {
		line("", "%s", kind)
	}
	var sent, refused, lost int64
	for _, w := range l.writers {
		sent, refused, lost = sent+w.sent.Load(), refused+w.refused.Load(), lost+w.lost.Load()
	}
	line("written", "%d commands, %d refused, %d connections lost", sent, refused, lost)
	notes := map[string]int{}
	for _, n := range l.cluster.Nodes {
		for _, note := range joins.FindAllString(n.Log(), -1) {
			notes[numbers.ReplaceAllString(note, "N")]++
		}
	}
	line("joins", "")
	for _, note := range slices.Sorted(maps.Keys(notes)) {
		line("", "%4d %s", notes[note], note)
	}
	line("audit", "%d rows are as in Redis, %v after the last write", l.rows, l.settled.Round(time.Millisecond))
	fmt.Print(b.String())
}

var numbers = regexp.MustCompile(`[0-9a-f]{40}|\d+`)
