package work

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"baton/internal/flush/source/capture"
	"baton/internal/redisledger"
	"baton/internal/status/metrics"
	"baton/internal/text"
)

const (
	// captureEventsEvery is the pause between two collections of the captures' events. captureHeadsEvery is the pause between two requests
	// that ask the masters how far their replication streams reach.
	captureEventsEvery = time.Second
	captureHeadsEvery  = GaugeEvery
	// sameEvent is the minimum time between two events of one kind in the event history. Without this limit, repeated events of captures
	// would push the election's own events out of the history.
	sameEvent = time.Minute
	// longestEvent limits the words of an event, in bytes.
	longestEvent = 300
	addWithin    = time.Second
)

// CaptureCodes returns the label values that the metrics of captures use.
func CaptureCodes() metrics.CaptureCodes {
	return metrics.CaptureCodes{Joins: capture.Hows(), Breaks: capture.Breaks(), Passes: capture.Reasons(), Ends: capture.Results()}
}

// captureReporter reports, in metrics and in the event history of a lock, how the captures of a term follow their masters.
type captureReporter struct {
	log     *zap.Logger
	metrics *metrics.Metrics
	add     func(ctx context.Context, event, code, reason string) error

	mu    sync.Mutex
	added map[string]time.Time // when an event was added, by event, code and store
}

func (t *Term) newCaptureReporter() *captureReporter {
	r := &captureReporter{log: t.Log, metrics: t.Metrics, added: map[string]time.Time{}}
	r.add = func(ctx context.Context, event, code, reason string) error {
		reason = text.Clip(text.OneLine(reason), longestEvent)
		return t.Ledger.AddEvent(ctx, redisledger.Event{
			Event: event, NodeID: t.term.NodeID(), Epoch: t.term.Epoch(), Code: code, Reason: reason,
		})
	}
	return r
}

// keep calls report repeatedly until ctx ends.
func (r *captureReporter) keep(ctx context.Context, tasks []boundTask) {
	captures := slices.DeleteFunc(slices.Clone(tasks), func(b boundTask) bool { return !b.task.IsCapture() })
	var asked time.Time
	for len(captures) > 0 && ctx.Err() == nil {
		masters := time.Since(asked) > captureHeadsEvery-captureEventsEvery/2
		if masters {
			asked = time.Now()
		}
		r.report(ctx, captures, masters)
		_ = Rest(ctx, captureEventsEvery)
	}
}

// captureEvent is an event for the event history. It concerns one or several jobs.
type captureEvent struct {
	event, code, words, store string
	jobs                      []string
}

// report reports the captures' events since the last call. If masters is true, it also asks the masters how far their replication streams
// reach.
func (r *captureReporter) report(ctx context.Context, captures []boundTask, masters bool) {
	var all []*captureEvent
	for _, b := range captures {
		asking, cancel := context.WithTimeout(ctx, addWithin)
		standing, ok := b.task.CaptureProgress(asking, masters)
		cancel()
		for _, n := range standing.Events {
			if event := r.count(b.job.Name, n); event != "" {
				all = addEvent(all, captureEvent{event, n.Code, n.Words, b.flush.store(), []string{b.job.Name}})
			}
		}
		if masters || !ok {
			r.showProgress(b.job.Name, standing)
		}
	}
	for _, one := range all {
		r.addToHistory(ctx, one)
	}
}

// count counts an event of a capture in the metrics. It returns the name that this event has in the event history, or "" if the history
// does not contain such events.
func (r *captureReporter) count(job string, n capture.Event) string {
	switch n.Kind {
	case capture.Joined:
		r.metrics.CaptureJoined(job, n.Code)
		return "stream_joined"
	case capture.PassBegun:
		r.metrics.CapturePass(job, n.Code)
		return "pass_began"
	case capture.PassEnded:
		r.metrics.CapturePassed(job, n.Code)
		return "pass_ended"
	}
	r.metrics.CaptureInterrupted(job, n.Code)
	if n.Code == capture.Refused {
		return "stream_refused"
	}
	return "" // the capture joins again, and that is an event
}

// addEvent adds the event e to the list in the argument all. If the list already contains the same event of the same store, addEvent only
// adds the jobs of e to that event.
func addEvent(all []*captureEvent, e captureEvent) []*captureEvent {
	for _, one := range all {
		if one.event == e.event && one.code == e.code && one.store == e.store {
			if !slices.Contains(one.jobs, e.jobs[0]) {
				one.jobs = append(one.jobs, e.jobs...)
			}
			return all
		}
	}
	return append(all, &e)
}

// addToHistory adds an event to the event history, unless an event of the same kind was added a moment ago.
func (r *captureReporter) addToHistory(ctx context.Context, one *captureEvent) {
	r.mu.Lock()
	of := strings.Join([]string{one.event, one.code, one.store}, "\n")
	recent := time.Since(r.added[of]) < sameEvent
	if !recent {
		r.added[of] = time.Now()
	}
	r.mu.Unlock()
	if recent {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), addWithin)
	defer cancel()
	if err := r.add(ctx, one.event, one.code, text.Names(one.jobs, 5)+": "+one.words); err != nil {
		r.log.Debug("cannot add an event of a capture to the history", zap.String("event", one.event), zap.Error(err))
	}
}

func (r *captureReporter) showProgress(job string, s capture.Progress) {
	masters := make([]metrics.CaptureMaster, len(s.Masters))
	for i, m := range s.Masters {
		masters[i] = metrics.CaptureMaster{
			Address: m.Address, Bytes: float64(m.Bytes), Seconds: m.Behind.Seconds(), BacklogUsedPart: m.BacklogUsed,
		}
	}
	r.metrics.CaptureProgress(job, s.PassOwed, s.Pending, s.Budget, masters)
}

// end reports the last events of captures whose work is about to end. It also reports that no rows of any flush wait on this node.
func (r *captureReporter) end(tasks []boundTask) {
	for _, b := range tasks {
		r.metrics.FlushUnaccepted(b.job.Name, 0)
	}
	captures := slices.DeleteFunc(slices.Clone(tasks), func(b boundTask) bool { return !b.task.IsCapture() })
	r.report(context.Background(), captures, false)
	for _, b := range captures {
		r.showProgress(b.job.Name, capture.Progress{})
	}
}
