// Package trace sends events as spans to a collector of OpenTelemetry traces. It also names the parent span for a command in the form of
// W3C Trace Context.
//
// A span is recorded as a value when it has ended, and waits in a queue of limited length. [Tracer.Run] sends the queued spans in batches.
// No call waits for the collector. If a [Tracer] is nil, its methods do nothing and allocate nothing.
//
// Failures: a batch is tried for one minute, while newer spans wait. If the queue is full, new spans are dropped. If the collector rejects
// a batch, the batch is not sent again. These three results are counted by [Outcome], and logged from time to time. When the process ends,
// the queued spans are sent for a few more seconds.
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

// Context identifies a span of a trace.
type Context struct {
	Trace [16]byte
	Span  [8]byte
}

// Of returns the ids that are made from a UUID. The digits of the UUID are the trace's id, and the first half of the digits is the id of
// the trace's first span. So the trace of a job's run can be found by the id of the run, on any node, without another record.
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
		return hashed(id) // zero is not a valid id
	}
	return c
}

// hashed returns the ids for a text that is not a UUID.
func hashed(id string) Context {
	sum := sha256.Sum256([]byte(id))
	return Context{Trace: [16]byte(sum[:16]), Span: [8]byte(sum[16:24])}
}

// New returns the Context of the first span of a new trace.
func New() Context {
	var c Context
	binary.BigEndian.PutUint64(c.Trace[:8], rand.Uint64())
	binary.BigEndian.PutUint64(c.Trace[8:], rand.Uint64()|1) // zero is not a valid id
	return c.Child()
}

// Child returns the Context of a new span of the same trace.
func (c Context) Child() Context {
	binary.BigEndian.PutUint64(c.Span[:], rand.Uint64()|1)
	return c
}

// TraceID returns the trace's id in hexadecimal digits.
func (c Context) TraceID() string { return hex.EncodeToString(c.Trace[:]) }

// Kind is the relation of a span to its parent.
type Kind int

// These are the kinds of spans, with the numbers of OTLP.
const (
	Internal Kind = 1
	Client   Kind = 3 // the span waits for a server
)

// Span is a finished piece of work.
type Span struct {
	Context
	Parent     [8]byte   // the parent in the same trace; zero for the first span
	Links      []Context // spans of other traces that are related to the span
	Name       string
	Kind       Kind
	Start, End time.Time
	Attributes []Attribute
	Error      string // "" if the work succeeded
}

// Attribute is one fact of a span. The value is a string, an int64 or a bool.
type Attribute struct {
	Key   string
	Value any
}

// Outcome says what happened to a span.
type Outcome string

// These are the outcomes of a span.
const (
	Delivered Outcome = "delivered"
	Refused   Outcome = "refused"  // the collector will never accept the span
	GivenUp   Outcome = "given_up" // the span was tried for the maximum time
	Dropped   Outcome = "dropped"  // the queue was full
)

// Outcomes lists the outcomes.
func Outcomes() []Outcome { return []Outcome{Delivered, Refused, GivenUp, Dropped} }

// Options describe the process that uses the tracer.
type Options struct {
	Version string
	NodeID  string
	Count   func(Outcome, int) // counts spans; must return immediately
	Log     *zap.Logger
}

// Tracer sends spans to a collector while [Tracer.Run] runs.
type Tracer struct {
	settings *Settings
	options  Options
	resource resource
	client   *http.Client
	wake     chan struct{} // receives a value when enough spans wait

	mu    sync.Mutex
	queue []Span
	lost  int // the number of lost spans since the last log line

	logged time.Time // the time of the last log line; used only by Run
}

// NewTracer returns a Tracer, or nil if s is nil. The Tracer sends nothing until Run is called.
func NewTracer(s *Settings, o Options) *Tracer {
	if s == nil {
		return nil
	}
	return &Tracer{settings: s, options: o, resource: s.resource(o), client: s.client(), wake: make(chan struct{}, 1)}
}

// Record adds a finished span to the queue. It never waits. If too many spans wait, the new span is dropped.
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

// Sampled reports whether the spans of a trace are sent. All nodes with the same settings return the same result. The result depends on the
// last 56 bits of the id, because these are random in every UUID of version 4.
func (t *Tracer) Sampled(c Context) bool {
	return t != nil && binary.BigEndian.Uint64(c.Trace[8:])&(1<<56-1) >= t.settings.below
}

// Traceparent returns the value of the header or variable "traceparent" for the child spans of a span. It returns "" if the tracer is nil.
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
