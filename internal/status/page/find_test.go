package page

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"baton/internal/diagnose"
	"baton/internal/status/statustest"
)

func TestARunIsFoundHoweverOldItIs(t *testing.T) {
	s, d := statustest.Large(time.Now(), 1, 1, 5000)
	h := newServer(config{Source: statustest.Fixed(s), Node: d})
	name := s.Jobs[0].Name
	for at := 0; at < len(d.Entries); at += 100 * entriesShown {
		d.Entries[at].Run.NodeID = fmt.Sprintf("ran-here-%d", at)
	}
	page := statustest.Get(h, "/jobs/"+name+"?before="+d.Entries[3999].ID).Body.String()
	_, link, _ := strings.Cut(page, `<td data-label="When"><a href="`)
	link, _, _ = strings.Cut(link, `"`)
	link = strings.Replace(link, "..", "", 1) // relative to a page below /jobs/
	want := d.Entries[4000]
	want.Run.NodeID = "the-very-one"
	if rec := statustest.Get(h, link); rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(),
		"the-very-one") || !strings.HasSuffix(link, "?entry="+want.ID) {
		t.Errorf("%s: %d", link, rec.Code)
	}
	for _, path := range []string{"/jobs/" + name + "/runs/" + d.Entries[10].Run.ID, "/jobs/" + name + "/runs/" +
		d.Entries[10].Run.ID + "?entry=x"} {
		if rec := statustest.Get(h, path); rec.Code != http.StatusOK {
			t.Errorf("%s: %d", path, rec.Code)
		}
	}
	// If the entry belongs to another run or to a missed slot, it must not be shown as this run.
	if rec := statustest.Get(h, "/jobs/"+name+"/runs/none?entry="+want.ID); rec.Code != http.StatusNotFound {
		t.Errorf("%d", rec.Code)
	}
}

func TestTheTimelineGoesFurtherBackThanTheStatus(t *testing.T) {
	now := time.Now()
	var all []diagnose.Event
	for i := range 400 {
		at := now.Add(-time.Duration(i) * time.Hour)
		all = append(all, diagnose.Event{At: at, Event: "stepped_down", NodeID: "db1", Epoch: int64(1000 - i),
			Reason: "asked"}, diagnose.Event{At: at.Add(-time.Minute), Event: "won", NodeID: "db1", Epoch: int64(1000 - i)})
	}
	for _, c := range []struct {
		known []diagnose.Event // the events in the status; the history may be older
		old   []diagnose.Event
		want  int
	}{{all[:50], all, eventsOnTimeline}, {all[:50], all[:120], 120}, {all[:50], all[3:100], 100}, {all[:50],
		all[60:100], 50}, {all[:50], nil, 50}, {nil, all, 0}} {
		s := statustest.Sample(now)
		s.Events = c.known
		h := newServer(config{Source: statustest.Fixed(s), Node: &statustest.FakeNode{PastEvents: c.old}})
		body := statustest.Get(h, "/timeline").Body.String()
		n := strings.Count(body, `<span class="num quiet">epoch `)
		if more := strings.Contains(body, "There may be more before"); n != c.want || more != (n == eventsOnTimeline) ||
			len(body) > atMost {
			t.Errorf("%d events are shown, want %d; that there may be more: %t; %d bytes", n, c.want, more, len(body))
		}
	}
}
