package redisconn

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"
)

// scanCount is the most elements that one command of a scan visits, scanBytes the aim for the bytes of its reply.
const (
	scanCount = 1000
	scanBytes = 1 << 20
)

// NewScanPace is the pace of a pass by SCAN, HSCAN, SSCAN or ZSCAN.
func NewScanPace() *Pace {
	p := NewPace(scanCount, scanBytes)
	return &p
}

// NewNamePace is the pace of a pass over names, of keys or of rows, which are short: it begins
// with many, and a pass over few takes one command.
func NewNamePace() *Pace {
	p := NewScanPace().From(scanCount / 4)
	return &p
}

// scanning is HSCAN, SSCAN or ZSCAN, one after the other. Unless elements are large, the next command is sent as soon as the cursor is
// known, so that Redis collects its elements while we read the last reply.
type scanning struct {
	command, key string
	cursor       string // the next cursor; "0" at the beginning, and when the pass is over
	pace         *Pace
	sent         time.Time // the last command
	each         func(element []byte)
	enough       func() bool // called after every reply
}

// ScanKey implements [Conn].
func (w *wire) ScanKey(
	ctx context.Context, command, key, cursor string, pace *Pace, enough func() bool, each func(element []byte),
) (next string, err error) {
	defer w.forget()
	q := &scanning{command: command, key: key, cursor: cursor, pace: pace, each: each, enough: enough}
	err = w.during(ctx, func() error {
		if err := w.sendScan(q); err != nil {
			return err
		}
		for {
			more, err := w.readScan(q)
			if err != nil {
				return err
			}
			if !more {
				return w.nothingLeft()
			}
		}
	})
	if err != nil {
		return "", err
	}
	return q.cursor, nil
}

func (w *wire) sendScan(q *scanning) error {
	w.request = AppendCommand(w.request[:0], 5, q.command)
	for _, word := range []string{q.key, q.cursor, "COUNT", strconv.Itoa(q.pace.Depth())} {
		w.request = AppendWord(w.request, word)
	}
	q.sent = time.Now()
	return w.send()
}

// readScan reads one reply, and sends the next command if the pass goes on: during the reading, unless a reply has a large element, since
// two of those must not be in memory at once.
func (w *wire) readScan(q *scanning) (more bool, err error) {
	n, err := readArray(w.reader)
	took := time.Since(q.sent)
	if err == nil && n != 2 {
		err = fmt.Errorf("%w: %s replied with %d elements", errNotTexts, q.command, n)
	}
	if err != nil {
		return false, err
	}
	t := &w.answers
	t.All, t.Sizes = t.All[:0], t.Sizes[:0]
	if err := t.readElements(w.reader, 1, false); err != nil {
		return false, err
	}
	q.cursor = string(t.All)
	ahead := q.pace.Depth() > 1
	if more = q.cursor != "0" && !q.enough(); more && ahead {
		if err := w.sendScan(q); err != nil {
			return false, err
		}
	}
	if n, err = readArray(w.reader); errors.As(err, new(redis.Error)) {
		err = fmt.Errorf("%w: %v", errNotTexts, err) //nolint:errorlint // a refusal is a whole reply, and this is half of one
	}
	if err != nil {
		return false, err
	}
	t.All, t.Sizes = t.All[:0], t.Sizes[:0]
	if err := t.readElements(w.reader, n, false); err != nil {
		return false, err
	}
	at, paced := 0, Paced{Records: n, Bytes: len(t.All), Took: took}
	for _, size := range t.Sizes {
		if size < 0 {
			return false, fmt.Errorf("%w: an element of %s is missing", errNotTexts, q.command)
		}
		paced.Largest = max(paced.Largest, size)
		q.each(t.All[at : at+size : at+size])
		at += size
	}
	q.pace.Learn(paced)
	if ahead || !more {
		return more, nil
	}
	if more = !q.enough(); more {
		err = w.sendScan(q)
	}
	return more, err
}
