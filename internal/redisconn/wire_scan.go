package redisconn

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"
)

// scanCount is the maximum number of elements that one scan command visits. scanBytes is the intended size of its reply in bytes.
const (
	scanCount = 1000
	scanBytes = 1 << 20
)

// NewScanPace returns the pace for a scan by SCAN, HSCAN, SSCAN or ZSCAN.
func NewScanPace() *Pace {
	p := NewPace(scanCount, scanBytes)
	return &p
}

// NewNamePace returns the pace for a scan of the names of keys or rows. Names are short, so the pace begins with many names. A scan of
// few names then needs only one command.
func NewNamePace() *Pace {
	p := NewScanPace().From(scanCount / 4)
	return &p
}

// scanning is a series of HSCAN, SSCAN or ZSCAN commands. The next command is sent as soon as the cursor has arrived, so that Redis
// executes it while we read the rest of the reply. If the elements are large, the next command is sent only after the end of the
// reply.
type scanning struct {
	command, key string
	cursor       string // the next cursor; "0" at the beginning, and when the pass is over
	pace         *Pace
	sent         time.Time // the time when the last command was sent
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

// readScan reads one reply, and sends the next command if the scan is not finished. Usually readScan sends the command before it has
// read the whole reply. But if elements are large, it sends the command after the reply, because two large elements must not be in
// memory at once.
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
