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
		"users": {Known: true, Rows: 12, First: first}, "page-views": {Known: true, Rows: operate.MostKept, First: first},
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
}

// A number that nobody knows is neither a number nor missing. A job that keeps no rows has no such line, and a command cannot keep rows.
func TestPageOfAJobTellsNoKeptRowsFromAnUnknownNumber(t *testing.T) {
	const label = "<dt>Old rows kept</dt>"
	const unknown = label + "<dd>not known<small>the database has not told their number</small>"
	d := &statustest.FakeNode{KeptRows: map[string]operate.KeptCount{"users": {}, "report": {}}}
	snap := statustest.Sample(time.Now())
	for i := range snap.Jobs {
		snap.Jobs[i].Command = snap.Jobs[i].Name == "report"
	}
	s := New(Config{Source: statustest.Fixed(snap), Health: standby, Node: d})
	for job, want := range map[string]string{"users": unknown, "page-views": "", "report": ""} {
		page := browse(s, "GET", "/jobs/"+job, nil, nil).Body.String()
		if !strings.Contains(page, want) || want == "" && strings.Contains(page, label) {
			t.Errorf("the page of %s has %d lines about kept rows, want %q", job, strings.Count(page, label), want)
		}
		if strings.Contains(page, "baton rows") {
			t.Errorf("the page of %s has the commands for rows", job)
		}
	}
}
