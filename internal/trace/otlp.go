package trace

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// These types describe the JSON encoding of OTLP. In this encoding, ids are hexadecimal digits, 64-bit integers are texts, and enumerations
// are numbers.
type (
	request struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []attribute `json:"attributes"`
	}
	scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	scope struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	span struct {
		TraceID    string      `json:"traceId"`
		SpanID     string      `json:"spanId"`
		ParentID   string      `json:"parentSpanId,omitempty"`
		Flags      int         `json:"flags"`
		Name       string      `json:"name"`
		Kind       int         `json:"kind"`
		Start      string      `json:"startTimeUnixNano"`
		End        string      `json:"endTimeUnixNano"`
		Attributes []attribute `json:"attributes"`
		Links      []link      `json:"links,omitempty"`
		Status     *status     `json:"status,omitempty"`
	}
	link struct {
		TraceID string `json:"traceId"`
		SpanID  string `json:"spanId"`
	}
	attribute struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	value struct {
		String *string `json:"stringValue,omitempty"`
		Int    *string `json:"intValue,omitempty"`
		Bool   *bool   `json:"boolValue,omitempty"`
	}
	status struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
)

const (
	sampled     = 1 // a flag of a span
	statusError = 2
)

// encode returns the body of a request with the given spans.
func (t *Tracer) encode(spans []Span) ([]byte, error) {
	list := make([]span, len(spans))
	for i := range spans {
		list[i] = encodeSpan(&spans[i])
	}
	of := scopeSpans{Scope: scope{Name: "baton", Version: t.options.Version}, Spans: list}
	return json.Marshal(request{ResourceSpans: []resourceSpans{{Resource: t.resource, ScopeSpans: []scopeSpans{of}}}})
}

func encodeSpan(s *Span) span {
	e := span{
		TraceID: s.TraceID(), SpanID: hex.EncodeToString(s.Span[:]), Flags: sampled, Name: s.Name, Kind: int(s.Kind),
		Start: nanoseconds(s.Start), End: nanoseconds(s.End), Attributes: make([]attribute, len(s.Attributes)),
	}
	if s.Parent != [8]byte{} {
		e.ParentID = hex.EncodeToString(s.Parent[:])
	}
	if s.End.Before(s.Start) {
		e.End = e.Start // the clock was changed in the meantime
	}
	for i, a := range s.Attributes {
		e.Attributes[i] = encodeAttribute(a)
	}
	for _, l := range s.Links {
		e.Links = append(e.Links, link{l.TraceID(), hex.EncodeToString(l.Span[:])})
	}
	if s.Error != "" {
		e.Status = &status{statusError, s.Error}
	}
	return e
}

func encodeAttribute(a Attribute) attribute {
	e := attribute{Key: a.Key}
	switch v := a.Value.(type) {
	case int64:
		text := strconv.FormatInt(v, 10)
		e.Value.Int = &text
	case bool:
		e.Value.Bool = &v
	default:
		text := fmt.Sprint(v)
		e.Value.String = &text
	}
	return e
}

func nanoseconds(at time.Time) string { return strconv.FormatInt(max(at.UnixNano(), 0), 10) }
