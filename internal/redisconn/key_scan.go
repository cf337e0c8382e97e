package redisconn

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// KeyScan is a pass over the keys of one server by SCAN.
type KeyScan struct {
	Cursor string // the next cursor; "0" at the beginning, and when the pass is over
	Match  string // a glob pattern
	// Type selects the keys of one type. Next sets it to "" if the server is older than Redis 6 and does not know the option TYPE.
	// In that case Next finds keys of all types.
	Type string
	Pace *Pace
}

var errNoScan = errors.New("unexpected reply to SCAN: not a cursor and keys")

// Next finds the next few keys, and calls the function each with every one of them.
func (k *KeyScan) Next(ctx context.Context, c Conn, each func(key string)) error {
	refused, began := "", time.Now()
	err := c.Ask(ctx, &Question{
		Commands: 1,
		Nested:   true,
		Write:    func(buf []byte, _ int) []byte { return k.write(buf) },
		Read: func(t *Answers) error {
			k.Pace.Learn(Paced{Took: time.Since(began)})
			if refused = string(t.Replies[0].Refusal); refused != "" {
				return nil
			}
			return k.take(t, each)
		},
	})
	switch {
	case err != nil || refused == "":
		return err
	case refused == "ERR syntax error" && k.Type != "":
		k.Type = ""
		return k.Next(ctx, c, each)
	}
	return redis.Error(refused)
}

func (k *KeyScan) write(buf []byte) []byte {
	words := []string{k.Cursor, "MATCH", k.Match, "COUNT", strconv.Itoa(k.Pace.Depth())}
	if k.Type != "" {
		words = append(words, "TYPE", k.Type)
	}
	buf = AppendCommand(buf, 1+len(words), "SCAN")
	for _, word := range words {
		buf = AppendWord(buf, word)
	}
	return buf
}

// take calls the function each with the keys of a reply. The keys share one allocation.
func (k *KeyScan) take(t *Answers, each func(key string)) error {
	all, sizes := t.Take(), t.Sizes
	if len(sizes) < 2 || sizes[0] < 0 || sizes[1] != Nested(len(sizes)-2) {
		return errNoScan
	}
	k.Cursor, all = strings.Clone(all[:sizes[0]]), all[sizes[0]:]
	for _, size := range sizes[2:] {
		if size < 0 {
			return errNoScan
		}
		each(all[:size])
		all = all[size:]
	}
	return nil
}

// anyKeyScans is the maximum number of SCAN commands that AnyKey sends.
const anyKeyScans = 100

// AnyKey returns one key of the server that matches a glob pattern and that the function wanted accepts. It also returns the type of
// the key. It returns "" if a short search finds no such key.
func (s *Server) AnyKey(ctx context.Context, match string, wanted func(key string) bool) (key, holds string, err error) {
	c, err := s.Borrow(ctx)
	if err != nil {
		return "", "", err
	}
	defer c.Close() // it goes back to the pool
	scan := KeyScan{Cursor: "0", Match: match, Pace: NewNamePace()}
	for scans := 0; key == "" && (scans == 0 || scan.Cursor != "0") && scans < anyKeyScans; scans++ {
		err := scan.Next(ctx, c, func(found string) {
			if key == "" && wanted(found) {
				key = strings.Clone(found)
			}
		})
		if err != nil {
			return "", "", err
		}
	}
	if key == "" {
		return "", "", nil
	}
	if holds, err = redis.String(redis.DoContext(c, ctx, "TYPE", key)); holds == "none" { // the key is gone
		key = ""
	}
	return key, holds, err
}

// Glob returns the pattern for all keys that have the literals in this order, with any text in between. The option MATCH and the
// rules of an ACL use such patterns.
func Glob(literals ...string) string {
	escape := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`)
	var b strings.Builder
	for i, literal := range literals {
		if i > 0 {
			b.WriteByte('*')
		}
		b.WriteString(escape.Replace(literal))
	}
	return b.String()
}
