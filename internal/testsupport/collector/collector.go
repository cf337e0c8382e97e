// Package collector contains a collector of OpenTelemetry traces for tests. It is a real server: it decodes requests with the published
// schema of OTLP, and rejects fields that are not in the schema.
package collector

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// Span is a span that the collector has received, with its attributes as texts.
type Span struct {
	*tracepb.Span
	Attributes map[string]string
	Resource   map[string]string
}

// ID returns the span's ID in hexadecimal digits.
func (s Span) ID() string { return hex.EncodeToString(s.SpanId) }

// TraceID returns the trace's ID in hexadecimal digits.
func (s Span) TraceID() string { return hex.EncodeToString(s.TraceId) }

// ParentID returns the ID of the parent span, or "" if there is no parent.
func (s Span) ParentID() string { return hex.EncodeToString(s.ParentSpanId) }

// Failed reports whether the span's work has failed.
func (s Span) Failed() bool { return s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR }

// Collector is a server that collects traces.
type Collector struct {
	URL string // the endpoint for all signals

	t      testing.TB
	mu     sync.Mutex
	spans  []Span
	heads  []http.Header
	before http.HandlerFunc
}

// Start starts a collector, which stops at the test's end.
func Start(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{t: t}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// Answer makes the handler with answer all further requests. If with is nil, the collector itself answers again.
func (c *Collector) Answer(with http.HandlerFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before = with
}

// Spans returns the spans that the collector has received so far, in the order of their arrival.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Named returns the spans with the given name.
func (c *Collector) Named(name string) []Span {
	return slices.DeleteFunc(c.Spans(), func(s Span) bool { return s.Name != name })
}

// Headers returns the headers of every request.
func (c *Collector) Headers() []http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.heads)
}

// ServeHTTP implements [http.Handler]. It accepts spans.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.heads = append(c.heads, r.Header.Clone())
	before := c.before
	c.mu.Unlock()
	if before != nil {
		before(w, r)
		return
	}
	spans, err := decode(r)
	if err != nil {
		c.t.Errorf("what was sent is no OTLP: %v", err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	c.spans = append(c.spans, spans...)
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"partialSuccess":{}}`)
}

func decode(r *http.Request) ([]Span, error) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
		return nil, fmt.Errorf("%s %s of %q", r.Method, r.URL.Path, r.Header.Get("Content-Type"))
	}
	from := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, err
		}
		from = unpacked
	}
	body, err := io.ReadAll(from)
	if err != nil {
		return nil, err
	}
	return Decode(body)
}

// Decode returns the spans in the body of a request.
func Decode(body []byte) (spans []Span, err error) {
	var tree any
	numbers := json.NewDecoder(bytes.NewReader(body))
	numbers.UseNumber()
	if err := numbers.Decode(&tree); err != nil {
		return nil, err
	}
	if err := toProtoJSON(tree); err != nil {
		return nil, err
	}
	if body, err = json.Marshal(tree); err != nil {
		return nil, err
	}
	var data tracepb.TracesData // has the same fields as a request
	if err := protojson.Unmarshal(body, &data); err != nil {
		return nil, err
	}
	for _, rs := range data.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				spans = append(spans, Span{s, texts(s.Attributes), texts(rs.Resource.GetAttributes())})
			}
		}
	}
	return spans, nil
}

// toProtoJSON converts the JSON encoding of OTLP to the JSON encoding of protobuf, whose ids are not hexadecimal. It also checks further
// rules of OTLP: 64-bit integers are texts, and enumerations are numbers.
func toProtoJSON(node any) error {
	switch n := node.(type) {
	case []any:
		for _, child := range n {
			if err := toProtoJSON(child); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, child := range n {
			text, isText := child.(string)
			switch key {
			case "traceId", "spanId", "parentSpanId":
				id, err := hex.DecodeString(text)
				if want := map[bool]int{true: 16, false: 8}[key == "traceId"]; err != nil || len(id) != want {
					return fmt.Errorf("%s: %v is no id", key, child)
				}
				n[key] = base64.StdEncoding.EncodeToString(id)
			case "startTimeUnixNano", "endTimeUnixNano", "intValue":
				if _, err := strconv.ParseInt(text, 10, 64); err != nil || !isText {
					return fmt.Errorf("%s: %v is no text of an integer", key, child)
				}
			case "kind", "code", "flags":
				if _, ok := child.(json.Number); !ok {
					return fmt.Errorf("%s: %v is no number", key, child)
				}
			default:
				if err := toProtoJSON(child); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func texts(attributes []*commonpb.KeyValue) map[string]string {
	list := map[string]string{}
	for _, a := range attributes {
		switch v := a.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			list[a.Key] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			list[a.Key] = strconv.FormatInt(v.IntValue, 10)
		case *commonpb.AnyValue_BoolValue:
			list[a.Key] = strconv.FormatBool(v.BoolValue)
		}
	}
	return list
}
