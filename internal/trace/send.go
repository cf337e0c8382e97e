package trace

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"go.uber.org/zap"
)

const (
	// patience is how long a batch of spans is tried. Newer spans wait until then.
	patience = time.Minute
	// firstWait is the pause before the second attempt. The pause doubles for each further attempt, with jitter.
	firstWait = time.Second
	// closeWithin is how long spans are sent after ctx has ended.
	closeWithin = 3 * time.Second
	// logEvery is the minimum time between log lines about a collector that accepts no spans.
	logEvery = time.Minute
	// answerMost is the maximum number of bytes of an answer that are read.
	answerMost = 64 << 10
)

// Run sends the queued spans until ctx ends. It then sends the remaining spans for at most a few seconds.
func (t *Tracer) Run(ctx context.Context) {
	if t == nil {
		return
	}
	defer t.client.CloseIdleConnections()
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	goes := context.AfterFunc(ctx, func() { time.AfterFunc(closeWithin, stop) })
	defer goes()
	ticker := time.NewTicker(t.settings.delay)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			t.send(sending, ctx)
			t.complain(nil)
			return
		case <-ticker.C:
		case <-t.wake:
		}
		t.send(sending, ctx)
		t.complain(nil)
	}
}

// send sends all spans in the queue. After the context going has ended, it no longer waits between attempts.
func (t *Tracer) send(ctx, going context.Context) {
	for spans := t.take(); len(spans) > 0; spans = t.take() {
		body, err := t.encode(spans)
		if err == nil && t.settings.gzip {
			body, err = compress(body)
		}
		refused := len(spans)
		if err == nil {
			refused, err = t.deliver(ctx, going, body)
		}
		switch {
		case err == nil:
			t.options.Count(Delivered, max(len(spans)-refused, 0))
			t.lose(Refused, min(refused, len(spans)))
		case isRefusal(err):
			t.lose(Refused, len(spans))
		default:
			t.lose(GivenUp, len(spans))
		}
		t.complain(err)
	}
}

// take returns the next batch of spans and removes the batch from the queue.
func (t *Tracer) take() []Span {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(len(t.queue), t.settings.batch)
	spans := t.queue[:n:n]
	if t.queue = t.queue[n:]; len(t.queue) == 0 {
		t.queue = nil // frees the memory of the grown queue
	}
	return spans
}

// deliver posts a batch of spans until the collector has answered, or until the time limit is over. The result refused is the number of
// spans that the collector has rejected.
func (t *Tracer) deliver(ctx, going context.Context, body []byte) (refused int, err error) {
	began := time.Now()
	for wait := firstWait; ; wait *= 2 {
		var after time.Duration
		refused, after, err = t.post(ctx, body)
		if err == nil || isRefusal(err) {
			return refused, err
		}
		pause := max(after, wait/2+rand.N(wait))
		if going.Err() != nil || ctx.Err() != nil || time.Since(began)+pause > patience {
			return 0, err
		}
		t.complain(err)
		select {
		case <-going.Done(): // makes one more attempt
		case <-time.After(pause):
		}
	}
}

// refusal is an answer of the collector that would not change if the request was made again.
type refusal struct{ status string }

func isRefusal(err error) bool {
	_, is := errors.AsType[*refusal](err)
	return is
}

func (r *refusal) Error() string { return "the collector answered " + r.status }

// post makes one request. The result after is how long the collector asks the sender to wait before the next request.
func (t *Tracer) post(ctx context.Context, body []byte) (refused int, after time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.settings.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.settings.endpoint, bytes.NewReader(body))
	if err != nil {
		return 0, 0, hideURL(err)
	}
	r.Header.Set("User-Agent", "baton/"+t.options.Version)
	for name, value := range t.settings.headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/json")
	if t.settings.gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := t.client.Do(r)
	if err != nil {
		return 0, 0, hideURL(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, answerMost))
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // a date is ignored
		return 0, time.Duration(min(max(seconds, 0), 3600)) * time.Second, fmt.Errorf("the collector answered %s", resp.Status)
	}
	if resp.StatusCode/100 != 2 {
		return 0, 0, &refusal{resp.Status}
	}
	if err != nil {
		return 0, 0, hideURL(err)
	}
	return refusedIn(answer), 0, nil
}

// hideURL removes the URL from an error, because the query of the URL may contain a token.
func hideURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// refusedIn returns the number of rejected spans that an answer reports.
func refusedIn(answer []byte) int {
	var a struct {
		PartialSuccess struct {
			RejectedSpans json.RawMessage `json:"rejectedSpans"` // a number, or a text that contains a number
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &a) != nil {
		return 0 // such as an answer in another encoding
	}
	n, _ := strconv.Atoi(string(bytes.Trim(a.PartialSuccess.RejectedSpans, `"`)))
	return max(n, 0)
}

// lose counts spans that the collector has not accepted.
func (t *Tracer) lose(why Outcome, n int) {
	if n == 0 {
		return
	}
	t.options.Count(why, n)
	t.mu.Lock()
	t.lost += n
	t.mu.Unlock()
}

// complain logs that the collector does not accept all spans. It logs at most once per logEvery.
func (t *Tracer) complain(err error) {
	if time.Since(t.logged) < logEvery {
		return
	}
	t.mu.Lock()
	lost := t.lost
	t.lost = 0
	t.mu.Unlock()
	if err == nil && lost == 0 {
		return
	}
	fields := []zap.Field{zap.String("collector", t.settings.host()), zap.Int("lost", lost)}
	if err != nil {
		fields = append(fields, zap.Error(err))
	}
	t.logged = time.Now()
	t.options.Log.Warn("cannot deliver all spans to the trace collector", fields...)
}

func compress(body []byte) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(body)
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}
