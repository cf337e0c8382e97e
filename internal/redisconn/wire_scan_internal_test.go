package redisconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/gomodule/redigo/redis"
)

func never() bool { return false }

func TestScanFindsEveryElementOfAnyKind(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	c, err := g.store.Conn(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const n = 20_000
	var all []string
	for i := range n {
		member := fmt.Sprintf("%d\r\n\x00", i)
		all = append(all, member)
		g.Send("SADD", "set", member)
		g.Send("HSET", "hash", member, i)
		if i%1000 == 999 {
			g.Do("")
		}
	}
	slices.Sort(all)
	for _, key := range []string{"set", "hash"} {
		for _, steps := range []int{1, 3, 1000} { // the number of elements after which the scan has enough
			var found []string
			replies, cursor := 0, "0"
			for first := true; first || cursor != "0"; first = false {
				replies = 0
				enough := func() bool { replies++; return replies >= steps }
				cursor, err = c.ScanKey(t.Context(), map[string]string{"set": "SSCAN", "hash": "HSCAN"}[key], key, cursor, NewScanPace(),
					enough,
					func(e []byte) { found = append(found, string(e)) })
				if err != nil {
					t.Fatal(err)
				}
			}
			if key == "hash" {
				kept := found[:0]
				for i := 0; i < len(found); i += 2 {
					kept = append(kept, found[i])
				}
				found = kept
			}
			slices.Sort(found)
			if found = slices.Compact(found); !slices.Equal(found, all) {
				t.Errorf("%s: %d of %d elements", key, len(found), n)
			}
		}
	}
	g.Do("SET", "text", "x")
	if _, err := c.ScanKey(t.Context(), "SSCAN", "text", "0", NewScanPace(), never, nil); Code(asRefusal(err)) != "WRONGTYPE" {
		t.Error(err)
	}
	if cursor, err := c.ScanKey(t.Context(), "SSCAN", "none", "0", NewScanPace(), never, nil); cursor != "0" || err != nil {
		t.Errorf("of nothing: %q, %v", cursor, err)
	}
	if pong, err := redis.String(c.Do("PING")); pong != "PONG" || err != nil {
		t.Errorf("and then: %q, %v", pong, err)
	}
}

func asRefusal(err error) redis.Error {
	refusal, _ := errors.AsType[redis.Error](err)
	return refusal
}

func TestConnectionIsOfNoUseAfterHalfAScan(t *testing.T) {
	hangUp := func(c net.Conn) { _ = c.Close() }
	for _, c := range []struct {
		reply string
		want  error
	}{
		{"", io.ErrUnexpectedEOF},
		{"*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n", io.ErrUnexpectedEOF},
		{"*1\r\n$1\r\n0\r\n", errNotTexts},
		{"*2\r\n$1\r\n0\r\n*1\r\n$-1\r\n", errNotTexts},
		{"*2\r\n$1\r\n0\r\n$1\r\na\r\n", errNotTexts},
		{"*2\r\n$1\r\n0\r\n*0\r\n+more\r\n", errNotTexts},
		{"*2\r\n$1\r\n0\r\n-ERR x\r\n", errNotTexts}, // an error inside of a reply is no refusal
	} {
		w := served(t, c.reply, hangUp)
		_, err := w.ScanKey(t.Context(), "SSCAN", "k", "0", NewScanPace(), never, func([]byte) {})
		if errors.Is(err, io.ErrClosedPipe) {
			err = io.ErrUnexpectedEOF // a pipe says so of its other end
		}
		if !errors.Is(err, c.want) || w.Err() == nil {
			t.Errorf("%q: %v, want %v; connection %v", c.reply, err, c.want, w.Err())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	w := served(t, "*2\r\n$1\r\n7\r\n", func(net.Conn) { cancel() })
	if _, err := w.ScanKey(ctx, "SSCAN", "k", "0", NewScanPace(), never, nil); !errors.Is(err, context.Canceled) || w.Err() == nil {
		t.Errorf("%v, connection %v", err, w.Err())
	}
}
