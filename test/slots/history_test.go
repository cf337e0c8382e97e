package slots

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// streamEntry is an entry of a job's history as it is stored.
type streamEntry struct {
	ID     string            `json:"id"`
	Fields map[string]string `json:"fields"`
}

// stored reads all of a job's history, the oldest first.
func (l *lab) stored(s spec) ([]streamEntry, error) {
	lock := s.lock
	if lock == "" {
		lock = lockKey
	}
	c, err := redis.Dial("tcp", l.redis.Addr())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	all, err := redis.Values(c.Do("XRANGE", "{"+lock+"}:job:"+s.name+":runs", "-", "+"))
	if err != nil {
		return nil, err
	}
	entries := make([]streamEntry, len(all))
	for i, one := range all {
		parts, err := redis.Values(one, nil)
		if err != nil {
			return nil, err
		}
		if entries[i].ID, err = redis.String(parts[0], nil); err != nil {
			return nil, err
		}
		if entries[i].Fields, err = redis.StringMap(parts[1], nil); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// history is what the history says of a job.
func (l *lab) history(s spec) ([]entry, error) {
	all, err := l.stored(s)
	if err != nil {
		return nil, fmt.Errorf("the history of %s cannot be read: %w", s.name, err)
	}
	entries := make([]entry, len(all))
	for i, e := range all {
		f := e.Fields
		entries[i] = entry{
			job: s.name, state: f["state"], reason: f["reason"], first: moment(f["first"]), slot: moment(f["slot"]),
			count: number(f["count"]), id: f["id"], attempt: number(f["attempt"]),
		}
	}
	return entries, nil
}

// historyText is the stored history for a person.
func (l *lab) historyText(s spec) string {
	all, err := l.stored(s)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, e := range all {
		text, _ := json.Marshal(e) // text alone can always be told
		b.Write(append(text, '\n'))
	}
	return b.String()
}

// terms are the leaderships that the nodes' logs tell of, in their order.
func (l *lab) terms() []term {
	var terms []term
	for _, u := range l.units {
		for _, line := range u.node.Lines("leading") {
			t := term{lock: line.Text("lock_key"), node: u.node.ID, epoch: line.Int("epoch"), won: line.Time}
			if t.lock == lockKey {
				t.lock = ""
			}
			terms = append(terms, t)
		}
	}
	slices.SortFunc(terms, func(a, b term) int { return a.won.Compare(b.won) })
	return terms
}

func number(text string) int {
	n, _ := strconv.Atoi(text) // what is missing is 0
	return n
}

func moment(ms string) time.Time { return time.UnixMilli(int64(number(ms))) }
