package capture

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/internal/redisconn"
	"baton/internal/redisconn/follow"
)

// codes returns the events of a feed as "kind code". A second call returns none of them.
func codes(s Progress) (all []string) {
	for _, n := range s.Events {
		all = append(all, fmt.Sprint([]string{"joined", "interrupted", "began", "ended"}[n.Kind], " ", n.Code))
	}
	return all
}

func wantEvents(t *testing.T, f heard, want ...string) {
	t.Helper()
	if got := codes(f.progressAt(nil, time.Now())); !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

func TestAFeedReportsHowItJoinedAndWhyItPasses(t *testing.T) {
	f := fed(t, 1<<20)
	wantEvents(t, f, "joined continued")
	wantEvents(t, f)
	f.hears(2, "NOSUCHCOMMAND s:1")
	b, _, err := f.take(flushStop)
	if err != nil || b.passesOwed == 0 {
		t.Fatalf("%+v, %v: want a pass", b, err)
	}
	if s := f.progressAt(nil, time.Now()); !s.PassOwed || !slices.Equal(codes(s), []string{"began command"}) {
		t.Errorf("%+v", s)
	}
	b.missed = errors.New("a key may have moved")
	f.pay(b)
	f.passAfter = time.Time{}
	if b, _, err = f.take(flushStop); err != nil || b.passesOwed == 0 {
		t.Fatalf("%+v, %v: want another pass", b, err)
	}
	f.pay(b)
	wantEvents(t, f, "ended incomplete", "began missed", "ended complete")

	f.noteLeft(f.mark, f.streamReader, false)
	f.noteFailure(follow.ErrSilent)
	f.noteFailure(fmt.Errorf("PSYNC: %w", follow.ErrRefused))
	f.noteFailure(errors.New("connection reset"))
	f.joinsAt(follow.Joined{Kind: follow.Promoted, At: follow.Position{ReplID: "other", Offset: 100}, Shared: 100, Backlog: 1 << 20})
	wantEvents(t, f, "interrupted silent", "interrupted refused", "interrupted connection", "joined promoted")
}

// If a position is out of reach, its reason has a code.
func TestAFeedReportsWhatWasLost(t *testing.T) {
	for code, want := range map[follow.LossCode]Reason{
		follow.LostBacklog: lostBacklog, follow.LostHistory: lostHistory, follow.LostFailover: lostFailover, "": otherMasters,
	} {
		f := fed(t, 1<<20)
		f.noteLeft(f.mark, f.streamReader, false)
		free, _, gen := f.freeMarks()
		f.streamReader.follower.store = plainStore(t)
		at := follow.Position{ReplID: "id", Offset: 900}
		lost := make([]follow.Loss, len(free))
		if code == "" {
			free, lost = nil, nil
		} else {
			lost[0] = follow.Loss{Code: code, Words: "words"}
		}
		f.noteJoin(f.streamReader, gen, follow.Joined{Kind: follow.Began, At: at}, free, lost, slots{name: noSlots})
		if f.reason != want {
			t.Errorf("lost %q: %q, want %q", code, f.reason, want)
		}
		if got := codes(f.progressAt(nil, time.Now())); got[len(got)-1] != "joined began" {
			t.Errorf("lost %q: %q", code, got)
		}
	}
}

func plainStore(t *testing.T) *redisconn.Store {
	t.Helper()
	s, err := redisconn.Open(redisconn.Options{URL: "redis://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A mark has been behind since the moment when the master was first seen ahead of it.
func TestAMarkIsBehindSinceTheMasterWasFirstAhead(t *testing.T) {
	m, now := &cursor{at: follow.Position{Offset: 10}}, time.Now()
	for i, c := range []struct {
		heard, head int64
		want        time.Duration
	}{{10, 10, 0}, {10, 20, 0}, {10, 30, time.Second}, {20, 40, time.Second}, {40, 40, 0}, {40, 50, 0}} {
		m.at.Offset = c.heard
		if got := m.behind(c.head, now); got != c.want {
			t.Errorf("%d: behind for %v, want %v", i, got, c.want)
		}
		now = now.Add(time.Second)
	}
	for i := range 10 * mostHeads {
		m.behind(100+int64(i), now.Add(time.Duration(i)*time.Second))
	}
	if got := m.behind(5000, now.Add(time.Hour)); got != time.Hour+time.Second || len(m.heads) > mostHeads {
		t.Errorf("behind for %v, with %d heads", got, len(m.heads))
	}
}

func TestReasonsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for metric, values := range map[string][]string{
		"joins_total": Hows(), "interruptions_total": Breaks(), "passes_total": Reasons(), "passes_ended_total": Results(),
	} {
		_, row, _ := strings.Cut(string(doc), "`baton_capture_"+metric+"`")
		row, _, _ = strings.Cut(row, "\n")
		for _, v := range values {
			if !strings.Contains(row, "`"+v+"`") {
				t.Errorf("docs/reference/metrics.md has no %s of baton_capture_%s", v, metric)
			}
		}
	}
}
