package status

import (
	"errors"
	"strings"
	"testing"
	"time"

	"baton/internal/operate"
	"baton/internal/status/statustest"
)

// TestThePageAcceptsTheRowsThatItHasShown checks that the page shows the number of rows that an acceptance concerns, and sends the same
// counts.
func TestThePageAcceptsTheRowsThatItHasShown(t *testing.T) {
	snap := statustest.Sample(time.Now())
	for i := range snap.Jobs {
		if snap.Jobs[i].Name == "users" {
			snap.Jobs[i].Unaccepted = 15
		}
	}
	d := &statustest.FakeNode{Accepts: operate.Acceptance{
		Job: "users", Table: "people", Keys: "person:<id>", State: operate.RowsWait, Changes: 12, Deletes: 3,
	}}
	g := &given{}
	s := New(Config{Source: statustest.Fixed(snap), Health: standby, Node: d, Do: g.do, TokenFile: tokenFile(t, secretToken)})
	cookies, _ := enterDoor(t, door(s))
	const link = "/confirm?action=accept&job=users"
	page := browse(s, "GET", "/jobs/users", nil, cookies).Body.String()
	for _, want := range []string{strings.ReplaceAll(link, "&", "&amp;"), "Left alone: 15 rows of the table.",
		"baton job preview users --all"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of the job lacks %q", want)
		}
	}
	if page := browse(s, "GET", "/jobs/page-views", nil, cookies).Body.String(); strings.Contains(page, "action=accept") {
		t.Error("the page of another job has the button, too")
	}
	ask := browse(s, "GET", link, nil, cookies)
	for _, want := range []string{"would change 12 rows and delete 3 rows", "every row of person:&lt;id&gt; in table people",
		`class="danger"`} {
		if !strings.Contains(ask.Body.String(), want) {
			t.Errorf("the confirmation lacks %q: %s", want, ask.Body)
		}
	}
	if rec := browse(s, "POST", "/do", formOf(ask.Body.String()), cookies); rec.Code != 303 {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if o := g.last(); o.Kind != operate.KindAccept || o.Job != "users" || o.Changes != 12 || o.Deletes != 3 {
		t.Errorf("the order is %+v", o)
	}
	for want, now := range map[string]operate.Acceptance{
		"No row waits":                  {State: operate.RowsAdopted},
		"ann via the API has accepted ": {State: operate.RowsAccepted, By: "ann via the API"},
	} {
		d.Accepts = now
		said := browse(s, "GET", link, nil, cookies).Body.String()
		if !strings.Contains(said, want) || strings.Contains(said, `action="/do"`) {
			t.Errorf("%s: %s", now.State, said)
		}
	}
	d.AcceptsErr = errors.New("database main is away")
	if ask := browse(s, "GET", link, nil, cookies); !strings.Contains(ask.Body.String(), "Database main is away") {
		t.Errorf("without the database: %s", ask.Body)
	}
	if g.count() != 1 {
		t.Errorf("%d orders were carried out", g.count())
	}
}
