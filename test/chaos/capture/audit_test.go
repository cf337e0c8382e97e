package capture

import (
	"cmp"
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
	masters, err := l.store.masters()
	if err != nil {
		return nil, 0, err
	}
	for _, j := range l.jobs {
		want := map[string]string{}
		for _, master := range masters {
			if err := l.inRedis(j, master, want); err != nil {
				return nil, 0, err
			}
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

// inRedis adds what the rows of a job must be of the keys of a master, by their ids.
func (l *lab) inRedis(j job, master *testsupport.RedisDaemon, rows map[string]string) error {
	c, err := master.Dial()
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Do("SELECT", j.db); err != nil {
		return err
	}
	keys, err := redis.Strings(c.Do("KEYS", j.key+"*"))
	if err != nil {
		return err
	}
	for _, key := range keys {
		if !l.store.has(master, key) {
			continue
		}
		kind, err := redis.String(c.Do("TYPE", key))
		if err != nil {
			return err
		}
		if want := map[string]string{"json": "string"}[j.value]; kind != cmp.Or(want, j.value) {
			continue
		}
		if err := j.add(rows, c, key); err != nil {
			return err
		}
	}
	return nil
}

// add adds the rows of a key.
func (j job) add(rows map[string]string, c redis.Conn, key string) error {
	id := strings.TrimPrefix(key, j.key)
	switch j.value {
	case "set":
		members, err := redis.Strings(c.Do("SMEMBERS", key))
		for _, m := range members {
			rows[id+" "+m] = "[]"
		}
		return err
	case "zset":
		scores, err := redis.StringMap(c.Do("ZRANGE", key, 0, -1, "WITHSCORES"))
		for m, score := range scores {
			rows[id+" "+m] = number(score)
		}
		return err
	}
	row, ok, err := j.row(c, key)
	if ok {
		rows[id] = row
	}
	return err
}

// number is a score as no spelling matters.
func number(text string) string {
	f, err := strconv.ParseFloat(text, 64)
	return fmt.Sprintf("[%q %v]", strconv.FormatFloat(f, 'g', -1, 64), err)
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
	columns := map[string]string{
		"string": "id, encode(v, 'hex')", "hash": "id, f, g", "json": "id, n::text, v", "set": "id || ' ' || m",
		"zset": "id || ' ' || m, score::text",
	}[j.value]
	got, err := l.db.Query(l.t.Context(), "SELECT "+columns+" FROM "+j.name)
	rows := make(map[string]string, len(got))
	for _, r := range got {
		if rows[r[0]] = fmt.Sprintf("%q", r[1:]); j.value == "zset" {
			rows[r[0]] = number(r[1])
		}
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
	var sent, refused, redirected, lost int64
	for _, w := range l.writers {
		sent, refused, redirected, lost = sent+w.sent.Load(), refused+w.refused.Load(), redirected+w.redirected.Load(), lost+w.lost.Load()
	}
	line("written", "%d commands, %d of them where a slot was moved to (ASK); %d refused, %d connections lost", sent, redirected, refused, lost)
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
