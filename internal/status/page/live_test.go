package page

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/diagnose"
	"baton/internal/status/statustest"
	"baton/internal/text"
)

func TestADifferenceMakesOneTextTheOther(t *testing.T) {
	texts := []string{"", "a", "a\nb\nc", "a\nx\nc", "a\nx\ny\nc", "x\na\nb\nc", "b", "a\nb\nc\nd\ne", "1\n2\n3\n4\n5"}
	for _, from := range texts {
		for _, to := range texts {
			a, b := bytes.Split([]byte(from), []byte("\n")), bytes.Split([]byte(to), []byte("\n"))
			lines := strings.Split(from, "\n")
			for _, s := range difference(a, b) { // in the same way as the script
				lines = append(lines[:s.At:s.At], append(s.Text, lines[s.At+s.Cut:]...)...)
			}
			if got := strings.Join(lines, "\n"); got != to {
				t.Errorf("%q to %q: %q", from, to, got)
			}
		}
	}
}

func TestWhatOnlyTimeChangesIsNotSent(t *testing.T) {
	body := `<p><time data-tick="near" data-at="1">5 s ago</time> x <time datetime="2" data-tick="held">1 h</time>y`
	const want = `<p><time data-tick="near" data-at="1"></time> x <time datetime="2" data-tick="held"></time>y`
	if got := string(still([]byte(body))); got != want {
		t.Errorf("still: %s", got)
	}
	s := statustest.Sample(time.Now())
	h := newServer(config{Source: statustest.Fixed(s)})
	render := func(later time.Duration) string {
		s := s
		s.Now = s.Now.Add(later)
		s.Nodes = append([]diagnose.Node{}, s.Nodes...)
		for i := range s.Nodes {
			s.Nodes[i].LastSeenAgo += text.Seconds(later)
		}
		leader := *s.Leader
		leader.LeaseLeft -= text.Seconds(later)
		s.Leader = &leader
		body, err := h.page.render("live", h.page.compose(t.Context(), topic{path: "/", see: true}, s, true))
		if err != nil {
			t.Fatal(err)
		}
		return string(still(body))
	}
	before, after := strings.Split(render(0), "\n"), strings.Split(render(2*time.Second), "\n")
	changed := 0
	for i := range before {
		if before[i] != after[i] {
			changed++
		}
	}
	if len(before) != len(after) || changed > 6 { // the lease, the clock in the header, and the bars that end now
		t.Errorf("two seconds change %d of %d lines", changed, len(before))
	}
}

func TestManyReadersOfAPageCostOneRenderingAndASlowOneHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		d := &statustest.FakeNode{Asked: func(what string) {
			if what == "history" {
				asked.Add(1)
			}
		}}
		start := time.Now()
		h := newServer(config{Node: d, Source: func(context.Context) (diagnose.Snapshot, error) {
			s := statustest.Sample(time.Now())
			s.Jobs[0].Backlog = new(time.Since(start).Milliseconds())
			return s, nil
		}})
		block := make(chan struct{})
		ended := make(chan struct{})
		const readers = 20
		var quick []*statustest.SlowReader
		request := httptest.NewRequest(http.MethodGet, "/live?page=/jobs/page-views", nil)
		ctx, hangUp := context.WithCancel(request.Context())
		for i := range readers {
			w := statustest.NewSlowReader(nil)
			if i%2 == 0 {
				w = statustest.NewSlowReader(block)
			} else {
				quick = append(quick, w)
			}
			go func() { h.ServeHTTP(w, request.WithContext(ctx)); ended <- struct{}{} }()
		}
		synctest.Wait()
		asked.Store(0)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := asked.Load(); n > 12 {
			t.Errorf("%d readers had the page made %d times in 10 s", readers, n)
		}
		hangUp()
		close(block)
		for range readers {
			<-ended
		}
		for _, w := range quick {
			if n := strings.Count(w.Body.String(), "event: patch"); n < 8 {
				t.Errorf("a reader that takes what it gets was sent %d changes in 10 s", n)
			}
		}
		if left := fmt.Sprint(h.page.hub.Count()); left != "0 0" {
			t.Errorf("shows and readers that are left: %s", left)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		before := asked.Load()
		time.Sleep(5 * time.Second)
		if asked.Load() != before {
			t.Error("pages are made that nobody looks at")
		}
		h.page.Watch.End()
	})
}
