// Package trace sends events as spans to a collector of OpenTelemetry traces, and names the parent span for a command in the form of
// W3C Trace Context.
//
// A span is handed over once it has ended, as a value, and waits in a queue of bounded length; [Tracer.Run] sends batches of it. No
// call waits for the collector. A nil [Tracer] is off: its methods do nothing and allocate nothing.
//
// What fails, and what then: a batch is tried for a minute, while newer spans wait. If the queue is full, new spans are dropped. If
// the collector rejects a batch, it is not sent again. All three are counted by [Outcome], and logged once in a while. At the end of
// the process the queue gets a few seconds more.
package trace

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Context names a span of a trace.
type Context struct {
	Trace [16]byte
	Span  [8]byte
}

// Of are the ids made from a UUID: its digits are the trace's id, and their first half is the id of the trace's first span. So a trace is
// found by the id of its run, on any node, without any further record.
func Of(id string) Context {
	var digits [32]byte
	n := 0
	for i := range len(id) {
		if id[i] == '-' {
			continue
		}
		if n == len(digits) {
			return hashed(id)
		}
		digits[n] = id[i]
		n++
	}
	var c Context
	if _, err := hex.Decode(c.Trace[:], digits[:]); err != nil || n < len(digits) {
		return hashed(id)
	}
	if copy(c.Span[:], c.Trace[:8]); c.Span == [8]byte{} || [8]byte(c.Trace[8:]) == [8]byte{} {
		return hashed(id) // zero is no id
	}
	return c
}

// hashed are the ids for a text that is no UUID.
func hashed(id string) Context {
	sum := sha256.Sum256([]byte(id))
	return Context{Trace: [16]byte(sum[:16]), Span: [8]byte(sum[16:24])}
}

// New is the first span of a new trace.
func New() Context {
	var c Context
	binary.BigEndian.PutUint64(c.Trace[:8], rand.Uint64())
	binary.BigEndian.PutUint64(c.Trace[8:], rand.Uint64()|1) // zero is no id
	return c.Child()
}

// Child is a new span of the same trace.
func (c Context) Child() Context {
	binary.BigEndian.PutUint64(c.Span[:], rand.Uint64()|1)
	return c
}

// TraceID is the trace's id in hexadecimal digits.
func (c Context) TraceID() string { return hex.EncodeToString(c.Trace[:]) }

// Kind is the relation of a span to its parent.
type Kind int

// The kinds, as OTLP numbers them.
const (
	Internal Kind = 1
	Client   Kind = 3 // it waits for a server
)

// Span is a finished piece of work.
type Span struct {
	Context
	Parent     [8]byte   // in the same trace; zero: it is the first
	Links      []Context // spans of other traces that it belongs to
	Name       string
	Kind       Kind
	Start, End time.Time
	Attributes []Attribute
	Error      string // "": it succeeded
}

// Attribute is one fact of a span. The value is a string, an int64 or a bool.
type Attribute struct {
	Key   string
	Value any
}

// Outcome is the outcome of a span.
type Outcome string

// The outcomes.
const (
	Delivered Outcome = "delivered"
	Refused   Outcome = "refused"  // the collector will never take it
	GivenUp   Outcome = "given_up" // tried for long enough
	Dropped   Outcome = "dropped"  // the queue was full
)

// Outcomes lists them.
func Outcomes() []Outcome { return []Outcome{Delivered, Refused, GivenUp, Dropped} }

// Options are the facts of the process that a tracer belongs to.
type Options struct {
	Version string
	NodeID  string
	Count   func(Outcome, int) // of spans; must return at once
	Log     *zap.Logger
}

// Tracer sends spans to a collector while [Tracer.Run] runs.
type Tracer struct {
	settings *Settings
	options  Options
	resource resource
	client   *http.Client
	wake     chan struct{} // enough spans wait

	mu    sync.Mutex
	queue []Span
	lost  int // since they were last logged

	logged time.Time // when a failure was; Run's
}

// NewTracer makes a tracer; nil without settings. It sends nothing yet.
func NewTracer(s *Settings, o Options) *Tracer {
	if s == nil {
		return nil
	}
	return &Tracer{settings: s, options: o, resource: s.resource(o), client: s.client(), wake: make(chan struct{}, 1)}
}

// Record adds a span that has ended to the queue. It never waits: if too many spans wait, this one is dropped.
func (t *Tracer) Record(s Span) {
	if t == nil || !t.Sampled(s.Context) {
		return
	}
	t.mu.Lock()
	fits := len(t.queue) < t.settings.queue
	if fits {
		t.queue = append(t.queue, s)
	} else {
		t.lost++
	}
	enough := len(t.queue) >= t.settings.batch
	t.mu.Unlock()
	if !fits {
		t.options.Count(Dropped, 1)
	}
	if enough {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// Sampled reports whether the spans of a trace are sent. All nodes with the same settings answer the same. It
// looks at the last 56 bits of the id, which are random in every UUID of version 4.
func (t *Tracer) Sampled(c Context) bool {
	return t != nil && binary.BigEndian.Uint64(c.Trace[8:])&(1<<56-1) >= t.settings.below
}

// Traceparent is the value of the header or variable of that name for children of a span; "" if the tracer is off.
func (t *Tracer) Traceparent(c Context) string {
	if t == nil {
		return ""
	}
	flags := "-00"
	if t.Sampled(c) {
		flags = "-01"
	}
	return "00-" + c.TraceID() + "-" + hex.EncodeToString(c.Span[:]) + flags
}
