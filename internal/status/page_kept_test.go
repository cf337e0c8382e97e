package status

import (
	"strings"
	"testing"
	"time"

	"baton/internal/operate"
	"baton/internal/status/statustest"
)

// The page of a job shows how many deleted rows of the job are kept, and the commands that list them and put one back.
func TestPageOfAJobShowsItsKeptRows(t *testing.T) {
	first := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	d := &statustest.FakeNode{KeptRows: map[string]operate.KeptCount{
		"users": {Rows: 12, First: first}, "page-views": {Rows: operate.MostKept, First: first},
	}}
	s := New(Config{Source: statustest.Fixed(statustest.Sample(time.Now())), Health: standby, Node: d})
	for job, wants := range map[string][]string{
		"users":      {"12 rows<small>", "2031-02-03T04:05:06", "baton rows list --job users", "baton rows undelete ID"},
		"page-views": {"1,000 rows or more<small>"},
	} {
		page := browse(s, "GET", "/jobs/"+job, nil, nil).Body.String()
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("the page of %s lacks %q", job, want)
			}
		}
	}
	if page := browse(s, "GET", "/jobs/report", nil, nil).Body.String(); strings.Contains(page, "baton rows") {
		t.Error("the page of a job that keeps no rows has the commands")
	}
}
