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
	// followsEvery is how often the news of captures is taken, followedEvery how often the term asks their masters for the ends of their
	// histories.
	followsEvery  = time.Second
	followedEvery = GaugeEvery
	// sameEvent is how often an event of one kind enters the history at most: repeated events must not push the election's own events
	// out.
	sameEvent = time.Minute
	// longestEvent bounds the words of an event.
	longestEvent = 300
	addWithin    = time.Second
)

// CaptureCodes are the label values of a capture's metrics.
func CaptureCodes() metrics.CaptureCodes {
	return metrics.CaptureCodes{Joins: capture.Hows(), Breaks: capture.Breaks(), Passes: capture.Reasons(), Ends: capture.Results()}
}

// follows reports how the captures of a term follow their masters, in metrics and in the event history of their lock.
type follows struct {
	log     *zap.Logger
	metrics *metrics.Metrics
	add     func(ctx context.Context, event, code, reason string) error

	mu    sync.Mutex
	added map[string]time.Time // by event, code and store
}

func (t *Term) newFollows() *follows {
	f := &follows{log: t.Log, metrics: t.Metrics, added: map[string]time.Time{}}
	f.add = func(ctx context.Context, event, code, reason string) error {
		reason = text.Clip(text.OneLine(reason), longestEvent)
		return t.Ledger.AddEvent(ctx, redisledger.Event{
			Event: event, NodeID: t.term.NodeID(), Epoch: t.term.Epoch(), Code: code, Reason: reason,
		})
	}
	return f
}

// keep reports until ctx ends.
func (f *follows) keep(ctx context.Context, tasks []boundTask) {
	captures := slices.DeleteFunc(slices.Clone(tasks), func(b boundTask) bool { return !b.task.IsCapture() })
	var asked time.Time
	for len(captures) > 0 && ctx.Err() == nil {
		masters := time.Since(asked) > followedEvery-followsEvery/2
		if masters {
			asked = time.Now()
		}
		f.report(ctx, captures, masters)
		_ = Rest(ctx, followsEvery)
	}
}

// told is news of several jobs that makes one event.
type told struct {
	event, code, words, store string
	jobs                      []string
}

// report reports the news since the last call. With masters it also asks the masters for the ends of their histories.
func (f *follows) report(ctx context.Context, captures []boundTask, masters bool) {
	var all []*told
	for _, b := range captures {
		asking, cancel := context.WithTimeout(ctx, addWithin)
		standing, ok := b.task.Follows(asking, masters)
		cancel()
		for _, n := range standing.Events {
			if event := f.count(b.job.Name, n); event != "" {
				all = tell(all, told{event, n.Code, n.Words, b.flush.store(), []string{b.job.Name}})
			}
		}
		if masters || !ok {
			f.stands(b.job.Name, standing)
		}
	}
	for _, one := range all {
		f.enter(ctx, one)
	}
}

// count counts an event of a capture, and returns its name in the history; "" if the history has none for it.
func (f *follows) count(job string, n capture.Event) string {
	switch n.Kind {
	case capture.Joined:
		f.metrics.CaptureJoined(job, n.Code)
		return "stream_joined"
	case capture.PassBegun:
		f.metrics.CapturePass(job, n.Code)
		return "pass_began"
	case capture.PassEnded:
		f.metrics.CapturePassed(job, n.Code)
		return "pass_ended"
	}
	f.metrics.CaptureInterrupted(job, n.Code)
	if n.Code == capture.Refused {
		return "stream_refused"
	}
	return "" // the capture joins again, which is an event
}

// tell adds news, to an event of other jobs of the store if that is the same.
func tell(all []*told, news told) []*told {
	for _, one := range all {
		if one.event == news.event && one.code == news.code && one.store == news.store {
			if !slices.Contains(one.jobs, news.jobs[0]) {
				one.jobs = append(one.jobs, news.jobs...)
			}
			return all
		}
	}
	return append(all, &news)
}

// enter adds an event to the history, unless one like it was added a moment ago.
func (f *follows) enter(ctx context.Context, one *told) {
	f.mu.Lock()
	of := strings.Join([]string{one.event, one.code, one.store}, "\n")
	recent := time.Since(f.added[of]) < sameEvent
	if !recent {
		f.added[of] = time.Now()
	}
	f.mu.Unlock()
	if recent {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), addWithin)
	defer cancel()
	if err := f.add(ctx, one.event, one.code, text.Names(one.jobs, 5)+": "+one.words); err != nil {
		f.log.Debug("an event of a capture was not added to the history", zap.String("event", one.event), zap.Error(err))
	}
}

func (f *follows) stands(job string, s capture.Progress) {
	masters := make([]metrics.CaptureMaster, len(s.Masters))
	for i, m := range s.Masters {
		masters[i] = metrics.CaptureMaster{
			Address: m.Address, Bytes: float64(m.Bytes), Seconds: m.Behind.Seconds(), BacklogUsedPart: m.BacklogUsed,
		}
	}
	f.metrics.CaptureStands(job, s.PassOwed, s.Pending, s.Budget, masters)
}

// end reports the last news of captures that are about to be released.
func (f *follows) end(captures []boundTask) {
	captures = slices.DeleteFunc(slices.Clone(captures), func(b boundTask) bool { return !b.task.IsCapture() })
	f.report(context.Background(), captures, false)
	for _, b := range captures {
		f.stands(b.job.Name, capture.Progress{})
		f.metrics.CaptureUnaccepted(b.job.Name, 0)
	}
}
