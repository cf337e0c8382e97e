package trace

import (
	"math"
	"regexp"
	"testing"
	"time"

	"go.uber.org/zap"

	"baton/internal/id"
)

func TestATraceHasTheIDOfItsRun(t *testing.T) {
	const run = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	c := Of(run)
	if c.TraceID() != "6ba7b8109dad41d180b400c04fd430c8" || c != Of(run) {
		t.Errorf("%s of %s", c.TraceID(), run)
	}
	known := map[Context]string{}
	for _, other := range []string{
		"", "run-1", "run-2", "00000000-0000-0000-80b4-00c04fd430c8", "6ba7b810-9dad-41d1-0000-000000000000",
		run + "0", run[1:], "6ba7b810-9dad-41d1-80b4-00c04fd430cg",
	} {
		c := Of(other)
		if c.Span == [8]byte{} || [8]byte(c.Trace[8:]) == [8]byte{} || known[c] != "" || c != Of(other) {
			t.Errorf("%q: %+v, that of %q", other, c, known[c])
		}
		known[c] = other
	}
	if a, b := New(), New(); a == b || a.Child().Trace != a.Trace || a.Child().Span == a.Span {
		t.Errorf("%+v, %+v", a, b)
	}
}

func tracer(t *testing.T, env map[string]string) *Tracer {
	t.Helper()
	s, problems := from(env)
	if s == nil {
		t.Fatal(problems)
	}
	return NewTracer(s, Options{Version: "1", NodeID: "a", Count: func(Outcome, int) {}, Log: zap.NewNop()})
}

func TestTheRatioHoldsForUUIDs(t *testing.T) {
	const traces = 20_000
	for _, ratio := range []struct {
		text string
		want float64
	}{{"0", 0}, {"0.1", 0.1}, {"0.5", 0.5}, {"0.9", 0.9}, {"1", 1}} {
		of := tracer(t, with("OTEL_TRACES_SAMPLER", "traceidratio", "OTEL_TRACES_SAMPLER_ARG", ratio.text))
		n := 0
		for range traces {
			run, err := id.New()
			if err != nil {
				t.Fatal(err)
			}
			if of.Sampled(Of(run)) {
				n++
			}
		}
		if got := float64(n) / traces; math.Abs(got-ratio.want) > 0.025 { // seven times the standard deviation
			t.Errorf("%s: %v of the traces are sampled", ratio.text, got)
		}
	}
}

func TestTraceparent(t *testing.T) {
	form := regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$`)
	c := Of("6ba7b810-9dad-41d1-80b4-00c04fd430c8")
	for sampler, want := range map[string]string{
		"always_on":  "00-6ba7b8109dad41d180b400c04fd430c8-6ba7b8109dad41d1-01",
		"always_off": "00-6ba7b8109dad41d180b400c04fd430c8-6ba7b8109dad41d1-00",
	} {
		if got := tracer(t, with("OTEL_TRACES_SAMPLER", sampler)).Traceparent(c); got != want || !form.MatchString(got) {
			t.Errorf("%s: %s, want %s", sampler, got, want)
		}
	}
	if got := (*Tracer)(nil).Traceparent(c); got != "" {
		t.Errorf("off: %s", got)
	}
}

func TestWhatIsOffCostsNothing(t *testing.T) {
	var off *Tracer
	run := "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	if n := testing.AllocsPerRun(1000, func() {
		off.Record(Span{Name: "batch", Start: time.Time{}})
		off.Traceparent(Of(run))
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	off.Run(t.Context()) // returns immediately
}
