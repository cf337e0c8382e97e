package daemon

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"baton/internal/doctor"
	"baton/internal/flush/source/spec"
	"baton/internal/operate"
)

// A marked key looks like a key that the application has changed. So a repair and a backfill avoided the question whether the rows
// belong to the job.
func TestMarksWaitUntilRowsAreAccepted(t *testing.T) {
	t.Parallel()
	l, shop, _ := captureLab(t)
	l.config.Jobs[0].Flush.From.MaxPct = 50
	l.db.Exec(t, "INSERT INTO articles VALUES (1, 1), (2, 2), (3, 3)")
	shop.Do("MSET", "articles:1", 1, "articles:2", 22, "articles:4", 4)
	l.start()
	l.awaitRows("[[1 1] [2 2] [3 3] [4 4]]")
	await(t, "what waits", func() bool { return l.state("articles").Unaccepted == 2 })
	doubts := func() (remedies []string) {
		for _, f := range doctor.Examine(t.Context(), l.config, doctor.Options{}) {
			if strings.Contains(f.What, "rows that the job never wrote") {
				remedies = append(remedies, f.What+": "+f.Remedy)
			}
		}
		return remedies
	}
	if said := fmt.Sprint(doubts()); !strings.Contains(said, "1 differ from Redis, and 1 have no key") ||
		!strings.Contains(said, "baton job accept articles accepts") || strings.Contains(said, "others") {
		t.Errorf("the doctor says %s", said)
	}
	for _, o := range []operate.Order{{Kind: operate.KindBackfill}, {Kind: operate.KindVerify, Repair: true}} {
		if op := l.ordered("articles", o); op.State != "failed" || !strings.Contains(op.Error, "are not accepted as the job's") ||
			!strings.Contains(op.Error, "baton job accept articles") || op.Progress.Result.Marked != 0 {
			t.Errorf("%s: %+v", o.Kind, op)
		}
	}
	shop.Do("SET", "articles:4", 44) // a mark would have come before this change
	l.awaitRows("[[1 1] [2 2] [3 3] [4 44]]")
	if _, err := l.remote.accept(t.Context(), "articles", "by ann"); err != nil {
		t.Fatal(err)
	}
	shop.Do("SET", "articles:1", 11)
	l.awaitRows("[[1 11] [2 22] [4 44]]")
	if said := doubts(); len(said) > 0 {
		t.Errorf("the doctor still says %s", said)
	}
	l.db.Exec(t, "UPDATE articles SET views = 0")
	if op := l.ordered("articles", operate.Order{Kind: operate.KindBackfill}); op.State != "succeeded" {
		t.Errorf("of the job's own rows: %+v", op)
	}
	l.awaitRows("[[1 11] [2 22] [4 44]]")
}

// A scan asks like a capture: in status, metric, log and doctor, and with the same answer.
func TestAScanAsksWhoseTheRowsAre(t *testing.T) {
	t.Parallel()
	l, shop, _ := captureLab(t)
	l.config.Jobs = l.config.Jobs[:1]
	j := &l.config.Jobs[0]
	j.Schedule, j.Flush.To.Generation = "@every 1s", "pass"
	j.Flush.From.Type, j.Flush.From.Vanished, j.Flush.From.MaxPct = spec.Scan, "delete", 100
	l.db.Exec(t, "ALTER TABLE articles ADD COLUMN pass INTEGER")
	l.db.Exec(t, "INSERT INTO articles (id, views, pass) VALUES (1, 1, NULL), (2, 2, NULL), (3, 3, 9)")
	shop.Do("MSET", "articles:1", 1, "articles:2", 22, "articles:4", 4)
	r := l.start()
	rows := func(want string) {
		t.Helper()
		await(t, want, func() bool { return fmt.Sprint(l.db.Rows(t, "SELECT id, views FROM articles ORDER BY id")) == want })
	}
	await(t, "the metric", func() bool { return r.metric(`baton_flush_unaccepted_rows{job="articles"}`) == "2" })
	await(t, "what waits in the status", func() bool { return l.state("articles").Unaccepted == 2 })
	shop.Do("MSET", "articles:1", 11, "articles:4", 44)
	rows("[[1 11] [2 2] [3 3] [4 44]]")
	if n := r.logs.FilterMessageSnippet("would change 1 and delete 1 of them").Len(); n != 1 {
		t.Errorf("the log has it %d times", n)
	}
	found := doctor.Examine(t.Context(), l.config, doctor.Options{})
	if !slices.ContainsFunc(found, func(f doctor.Finding) bool { return strings.Contains(f.Remedy, "baton job accept articles accepts") }) {
		t.Errorf("the doctor says %v", found)
	}
	if _, err := l.remote.accept(t.Context(), "articles", "by ann"); err != nil {
		t.Fatal(err)
	}
	rows("[[1 11] [2 22] [4 44]]")
	await(t, "nothing waits", func() bool {
		return l.state("articles").Unaccepted == 0 && r.metric(`baton_flush_unaccepted_rows{job="articles"}`) == "0"
	})
}
