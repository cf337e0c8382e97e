package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/diagnose"
	"baton/internal/flush/source/spec"
	"baton/internal/operate"
)

// ordered orders a verification or backfill, and waits for the end of the operation.
func (l *jobLab) ordered(job string, o operate.Order) (op *diagnose.Operation) {
	l.t.Helper()
	o.Job = job
	out, err := l.remote.to.Do(l.t.Context(), o)
	if err != nil {
		l.t.Fatal(err)
	}
	await(l.t, fmt.Sprintf("the end of %s", o.Kind), func() bool {
		op = l.state(job).Operation
		return op != nil && op.ID == out.RunID && !op.Finished.IsZero()
	})
	return op
}

// The API reports how many rows wait, and accepts the order to accept these rows under the same rules as the command.
func TestTheAPIAcceptsNoMoreRowsThanTheCallerHasSeen(t *testing.T) {
	t.Parallel()
	lab, shop, _ := captureLab(t)
	l := &apiLab{jobLab: lab, socket: filepath.Join(t.TempDir(), "admin.sock")}
	l.job("views", "@yearly")
	l.config.Jobs[0].Flush.From.MaxPct = 50
	l.config.HTTP.TokenFile, l.config.HTTP.AdminSocket = writeFile(t, "token", testToken+"\n"), l.socket
	l.db.Exec(t, "INSERT INTO articles VALUES (1, 1), (2, 2), (3, 3)")
	shop.Do("MSET", "articles:1", 1, "articles:2", 22, "articles:4", 4)
	l.node = l.start()
	code, described := l.ask(http.MethodGet, "/api/v1/openapi.json", "", "")
	if err := json.Unmarshal(described, &l.doc); err != nil || code != http.StatusOK {
		t.Fatalf("%d %v", code, err)
	}
	await(t, "what waits in the status", func() bool { return l.state("articles").Unaccepted == 2 })

	const route = "/jobs/{job}/accept"
	var a operate.Acceptance
	if err := json.Unmarshal(l.described("GET", "/jobs/{job}/acceptance", "/jobs/articles/acceptance", 200, ""), &a); err != nil ||
		a != (operate.Acceptance{Job: "articles", Database: "main", Table: "articles", Keys: "articles:<id>", State: operate.RowsWait,
			Changes: 1, Deletes: 1}) {
		t.Fatalf("%+v, %v", a, err)
	}
	l.described("GET", "/jobs/{job}/acceptance", "/jobs/none/acceptance", 404, "")
	l.described("GET", "/jobs/{job}/acceptance", "/jobs/views/acceptance", 422, "")
	for path, method := range map[string]string{"acceptance": http.MethodGet, "accept": http.MethodPost} {
		if code, text := l.ask(method, "/api/v1/jobs/articles/"+path, "", ""); code != 401 {
			t.Errorf("%s without a token: %d %s", path, code, text)
		}
	}
	for body, code := range map[string]int{"": 409, `{"changes": 1}`: 409, `{"changes": 9, "deletes": 0}`: 409, `{"deletes": -1}`: 400} {
		text := string(l.described("POST", route, "/jobs/articles/accept", code, body))
		if code == 409 && !strings.Contains(text, "accept again") {
			t.Errorf("%s: %s", body, text)
		}
	}
	var out operate.Outcome
	if err := json.Unmarshal(l.described("POST", route, "/jobs/articles/accept", 200,
		`{"by": "ann", "reason": "a copy", "changes": 1, "deletes": 1}`), &out); err != nil || out.Code != operate.CodeDone ||
		out.Acceptance == nil || out.Acceptance.By != "ann via the API" {
		t.Errorf("%+v, %v", out, err)
	}
	if e := l.event("rows_accepted"); !strings.HasSuffix(e.Reason, "accepted by ann via the API: a copy") {
		t.Errorf("the event history has %+v", e)
	}
	if n := l.node.logs.FilterMessage("an order was carried out").FilterField(zap.String("action", "accept")).Len(); n != 1 {
		t.Errorf("the log has the order %d times", n)
	}
	shop.Do("SET", "articles:1", 11) // the next run finds the acceptance
	l.awaitRows("[[1 11] [2 22] [4 4]]")
	c := l.client("unix://"+l.socket, "")
	await(t, "the end of the pass", func() bool {
		now, err := c.to.Acceptance(t.Context(), "articles")
		if now.By != "ann via the API" {
			t.Fatalf("the database does not keep who accepted: %+v", now)
		}
		return err == nil && now.State == operate.RowsAdopted
	})
	if again, err := c.accept(t.Context(), "articles", "by bob"); err != nil || again.Code != operate.CodeNothing {
		t.Errorf("once more: %+v, %v", again, err)
	}
	if _, err := c.to.Acceptance(t.Context(), "none"); !errors.Is(err, operate.ErrNoJob) {
		t.Errorf("of no job: %v", err)
	}
}

// A source that marks its changes makes no pass, so its first backfill compares the rows, and asks before it overwrites a row.
func TestABackfillAsksWhoseTheRowsAre(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.config.Jobs = append(l.config.Jobs, config.Job{Name: "articles", Schedule: "@every 1s", Flush: config.Flush{
		From: config.From{Type: spec.Hashes, Key: "articles:<id>", Changed: "changed"},
		To:   config.To{Database: "main", Table: "articles", Key: []string{"id"}},
	}})
	l.db.Exec(t, "INSERT INTO articles VALUES (1, 1), (2, 2), (3, 3)")
	for id, views := range map[int]int{1: 1, 2: 22, 4: 4} {
		l.do("HSET", fmt.Sprint("articles:", id), "views", views)
	}
	r := l.start()
	for range 2 { // an operator tries twice
		if op := l.ordered("articles", operate.Order{Kind: operate.KindBackfill}); op.State != "failed" ||
			!strings.Contains(op.Error, "would change 1 and delete 0 rows that job \"articles\" never wrote") || op.Progress.Result.Marked != 0 {
			t.Errorf("before the acceptance: %+v", op)
		}
	}
	await(t, "what waits in the status", func() bool {
		return l.state("articles").Unaccepted == 1 && r.metric(`baton_flush_unaccepted_rows{job="articles"}`) == "1"
	})
	l.do("HSET", "articles:4", "views", "44") // and the application marks the key
	l.do("SADD", "changed", "4")
	l.awaitRows("[[1 1] [2 2] [3 3] [4 44]]")
	out, err := l.remote.accept(t.Context(), "articles", "by ann")
	if err != nil || out.Code != operate.CodeDone || !out.Acceptance.Ordered ||
		!strings.Contains(out.Text, "the next backfill or repair may change 1 row") {
		t.Fatalf("%+v, %v", out, err)
	}
	if op := l.ordered("articles", operate.Order{Kind: operate.KindBackfill}); op.State != "succeeded" || op.Progress.Result.Marked != 3 {
		t.Errorf("after the acceptance: %+v", op)
	}
	l.awaitRows("[[1 1] [2 22] [3 3] [4 44]]")
	await(t, "nothing waits", func() bool { return l.state("articles").Unaccepted == 0 })
	// The backfill has not asked about rows without a key. A repair asks about them.
	repair := operate.Order{Kind: operate.KindVerify, Repair: true}
	if op := l.ordered("articles", repair); op.State != "failed" || !strings.Contains(op.Error, "would change 0 and delete 1 rows") {
		t.Errorf("a repair: %+v", op)
	}
	l.awaitRows("[[1 1] [2 22] [3 3] [4 44]]")
}
