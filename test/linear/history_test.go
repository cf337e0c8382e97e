package linear

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"time"

	"baton/test/linear/wire"
)

// history reads the lines that the nodes write. Every life of a node has its own file, so that a line that was cut off by the death of
// the process is the last line of a file.
type history struct {
	mu         sync.Mutex
	files      []*lifeFile
	operations []operation
	terms      []*term
	events     []entry
	granted    int64        // the time of the newest request by which a leader won or renewed
	boot       int64        // the start of the boot clock, in Unix seconds
	stepped    map[int]bool // the offsets of the nodes' wall clocks that were seen, in hours
	err        error
	stop, done chan struct{}
}

// lifeFile is the diary of one process.
type lifeFile struct {
	node    int
	path    string
	from    int64
	open    map[int64]int // the index in operations of each call that has not returned
	leading *term
}

// term is the work of a leader inside the trust window.
type term struct {
	node        int
	owner       string
	first, last int64 // the first and the last moment of the work inside the window; first is zero if there was none
	low, high   int64 // the lowest and the highest epoch of the work
	left        bool
}

func follow() *history {
	boot := time.Now().Add(-time.Duration(now())).Unix()
	h := &history{boot: boot, stepped: map[int]bool{}, stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(h.done)
		for {
			select {
			case <-h.stop:
				h.read()
				return
			case <-time.After(5 * time.Millisecond):
				h.read()
			}
		}
	}()
	return h
}

// end reads the rest of the files. After that the caller may use the fields.
func (h *history) end() {
	close(h.stop)
	<-h.done
}

// add also reads another file.
func (h *history) add(node int, path string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.files = append(h.files, &lifeFile{node: node, path: path, open: map[int64]int{}})
}

func (h *history) read() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.files {
		if err := h.readFile(f); err != nil && h.err == nil {
			h.err = err
		}
	}
}

func (h *history) readFile(f *lifeFile) error {
	file, err := os.Open(f.path)
	if os.IsNotExist(err) {
		return nil // the process is about to create the file
	}
	if err != nil {
		return err
	}
	defer file.Close()
	text, err := io.ReadAll(io.NewSectionReader(file, f.from, 1<<40))
	if err != nil {
		return err
	}
	for {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			return nil
		}
		f.from += int64(len(line)) + 1
		text = rest
		var l wire.Line
		if err := json.Unmarshal(line, &l); err != nil {
			return fmt.Errorf("%s: %q: %w", f.path, line, err)
		}
		h.take(f, l)
	}
}

func (h *history) take(f *lifeFile, l wire.Line) {
	switch l.Kind {
	case wire.Call:
		f.open[l.N] = len(h.operations)
		h.operations = append(h.operations, operation{node: f.node, op: l.Op, owner: l.Owner, meddles: l.Meddling, call: l.At, ret: never})
		off := float64(l.Wall-h.boot) - float64(l.At)/float64(time.Second)
		h.stepped[int(math.Round(off/3600))] = true
	case wire.Return:
		o := &h.operations[f.open[l.N]]
		delete(f.open, l.N)
		o.outcome, o.epoch, o.ret = l.Outcome, l.Epoch, l.At
		if l.Owner != "" {
			o.owner = l.Owner
		}
		if !o.meddles && (l.Outcome == wire.Won || o.op == wire.Renew && l.Outcome == wire.Done) {
			h.granted = max(h.granted, o.call)
		}
		if o.op == wire.Release && l.Outcome == wire.Unknown || l.Outcome == wire.Won || o.op == wire.Raise {
			h.tell(f.node, l.At, "%s %s", o, l.Text)
		}
	case wire.Enter:
		f.leading = &term{node: f.node, owner: l.Owner, low: l.Epoch, high: l.Epoch}
		h.terms = append(h.terms, f.leading)
		h.tell(f.node, l.At, "leads, epoch %d", l.Epoch)
	case wire.Act:
		t := f.leading
		if t.first == 0 {
			t.first = l.Until
		}
		t.last, t.high = max(t.first, l.At), max(t.high, l.Epoch)
	case wire.Leave:
		f.leading.left = true
		h.tell(f.node, l.At, "leads no more, epoch %d", l.Epoch)
	case wire.Die:
		h.tell(f.node, l.At, "dies: %s", l.Text)
	case wire.Event:
		h.tell(f.node, l.At, "%s", l.Text)
	}
}

func (h *history) tell(node int, at int64, format string, args ...any) {
	h.events = append(h.events, entry{at, nodeID(node) + " " + fmt.Sprintf(format, args...)})
}

// lastGrant returns the time of the newest request by which a leader won or renewed.
func (h *history) lastGrant() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.granted
}

// leader returns the node that acted last, if it acted a moment ago. Otherwise it returns -1.
func (h *history) leader() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.files {
		if t := f.leading; t != nil && !t.left && now()-t.last < int64(100*time.Millisecond) {
			return t.node
		}
	}
	return -1
}
