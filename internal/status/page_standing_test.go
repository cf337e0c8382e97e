package status

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/status/statustest"
	"baton/internal/status/web"
)

// operator is a user who has signed in, with the state and the outcomes of the node.
type operator struct {
	t       *testing.T
	server  *Server
	now     diagnose.Snapshot
	cookies []*http.Cookie
	orders  atomic.Int64
	do      func(operate.Order) (operate.Outcome, error)
}

func newOperator(t *testing.T) *operator {
	o := &operator{t: t, now: statustest.Sample(time.Now()), do: func(operate.Order) (operate.Outcome,
		error) {
		return operate.Outcome{Text: "it is done"}, nil
	}}
	o.server = New(Config{
		Health: standby, TokenFile: tokenFile(t, secretToken), Source: func(context.Context) (diagnose.Snapshot,
			error) {
			return o.now, nil
		},
		Do: func(_ context.Context, order operate.Order) (operate.Outcome, error) {
			o.orders.Add(1)
			return o.do(order)
		},
	})
	o.signIn()
	return o
}

func (o *operator) signIn() {
	rec := browse(o.server, "POST", "/sign-in", url.Values{"token": {secretToken}}, nil)
	o.cookies = rec.Result().Cookies()
	if rec.Code != http.StatusSeeOther || len(o.cookies) != 1 {
		o.t.Fatalf("%d %s", rec.Code, rec.Body)
	}
}

// confirms opens the page that asks the user to confirm an order, and returns its form.
func (o *operator) confirms(path string) url.Values {
	o.t.Helper()
	rec := browse(o.server, "GET", path, nil, o.cookies)
	form := url.Values{}
	input := regexp.MustCompile(`<input type="hidden" name="([a-z]+)" value="([^"]*)">`)
	for _, m := range input.FindAllStringSubmatch(rec.Body.String(), -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	if rec.Code != http.StatusOK || form.Get("csrf") == "" {
		o.t.Fatalf("%s: %d %s", path, rec.Code, rec.Body)
	}
	return form
}

// resolve returns the address of a relative link on a page, as a browser resolves it.
func resolve(page, link string) string {
	base, _ := url.Parse(page)
	to, err := base.Parse(link)
	if err != nil {
		panic(err)
	}
	return to.String()
}

// sends sends a form, and returns the text of the resulting page.
func (o *operator) sends(form url.Values) (rec *httptest.ResponseRecorder, says string) {
	rec = browse(o.server, "POST", "/do", form, o.cookies)
	says = rec.Body.String()
	if at := rec.Header().Get("Location"); at != "" {
		says = browse(o.server, "GET", resolve("/do", at), nil, o.cookies).Body.String()
	}
	_, says, _ = strings.Cut(says, `<h1 id="title"`)
	says, _, _ = strings.Cut(says, "</section>")
	return rec, says
}

func TestAFormThatIsSentTwiceOrdersOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOperator(t)
		defer o.server.watch.End()
		o.do = func(operate.Order) (operate.Outcome, error) {
			time.Sleep(20 * time.Second)
			return operate.Outcome{RunID: "r1", Text: "begun"}, nil
		}
		form := o.confirms("/confirm?action=run&job=report")
		locations := make(chan string, 3)
		for range 3 { // several clicks in a short time
			go func() {
				rec, _ := o.sends(form)
				locations <- fmt.Sprint(rec.Code, rec.Header().Get("Location"))
			}()
			time.Sleep(time.Second)
		}
		for range 3 {
			if at := <-locations; at != "303./jobs/report/runs/r1" {
				t.Errorf("sent to %s", at)
			}
		}
		o.sends(form) // the user has gone back and sent the form again
		if n := o.orders.Load(); n != 1 {
			t.Errorf("the job was run %d times", n)
		}
		o.sends(o.confirms("/confirm?action=run&job=report"))
		if n := o.orders.Load(); n != 2 {
			t.Errorf("a new confirmation: run %d times, want 2", n)
		}
	})
}

func TestWhatWasNotDoneCanBeSentAgainAndWhatIsNotKnownCannot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOperator(t)
		defer o.server.watch.End()
		for _, c := range []struct {
			err   error
			says  string
			again int64
		}{
			{operate.ErrRefused, "Not done", 2}, {operate.ErrNoLeader, "Not done", 2}, {operate.ErrNotFound,
				"Not done", 2}, {web.ErrBusy, "Not done", 2},
			{context.DeadlineExceeded, "It may have been done", 1}, {errors.New("dial tcp: connection refused"),
				"It may have been done", 1},
		} {
			o.orders.Store(0)
			o.do = func(operate.Order) (operate.Outcome, error) { return operate.Outcome{}, fmt.Errorf("ask: %w", c.err) }
			form := o.confirms("/confirm?action=run&job=report")
			_, says := o.sends(form)
			if _, also := o.sends(form); !strings.Contains(says, c.says) || !strings.Contains(also, c.says) || o.orders.Load() != c.again {
				t.Errorf("%v: tried %d times: %s", c.err, o.orders.Load(), says)
			}
			rec := send(o.server, "/api/v1/jobs/report/run", "", bearer(secretToken)...)
			if unknown := strings.Contains(rec.Body.String(), `"unknown"`); unknown != (c.again == 1) || unknown &&
				rec.Header().Get("Retry-After") != "" {
				t.Errorf("%v: the API says: %d %v %s", c.err, rec.Code, rec.Header(), rec.Body)
			}
		}
	})
}

func TestAnOrderIsAboutWhatWasConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOperator(t)
		defer o.server.watch.End()
		for _, c := range []struct {
			path    string
			changed func(*diagnose.Snapshot)
			says    string // "" means that the order is carried out
		}{
			{"/confirm?action=stepdown", func(s *diagnose.Snapshot) { s.Leader.NodeID, s.Leader.Owner = "db3", "another" }, "db3 leads"},
			{"/confirm?action=stepdown", func(s *diagnose.Snapshot) { s.Leader = nil }, "no node leads"},
			{"/confirm?action=stepdown", func(s *diagnose.Snapshot) { s.Leader.LeaseLeft--; s.Leader.Epoch++; s.Jobs = nil }, ""},
			{"/confirm?action=pause", func(s *diagnose.Snapshot) {
				s.Paused = &diagnose.Pause{Since: time.Now(),
					Reason: "by bob: upgrade"}
			}, "paused by bob: upgrade"},
			{"/confirm?action=cancel&job=users",
				func(s *diagnose.Snapshot) { s.Jobs[1].Running = &diagnose.Run{ID: "another"} }, "not the same runs"},
			{"/confirm?action=cancel&job=users", func(s *diagnose.Snapshot) { s.Jobs[1].Running = nil }, "not the same runs"},
			{"/confirm?action=cancel&job=users", func(s *diagnose.Snapshot) { s.Jobs[0].Running = &diagnose.Run{ID: "another"} }, ""},
			{"/confirm?action=pause_job&job=users",
				func(s *diagnose.Snapshot) { s.Jobs[1].Paused = &diagnose.Pause{Since: time.Now()} }, "paused or resumed"},
			{"/confirm?action=resume_job&job=cleanup", func(s *diagnose.Snapshot) { s.Jobs[3].Paused = nil }, "paused or resumed"},
			{"/confirm?action=run&job=users", func(s *diagnose.Snapshot) { s.Leader = nil }, ""},
		} {
			o.orders.Store(0)
			o.now = statustest.Sample(time.Now())
			time.Sleep(time.Minute)
			form := o.confirms(c.path)
			later := statustest.Sample(o.now.Now)
			c.changed(&later)
			o.now = later
			if _, says := o.sends(form); (o.orders.Load() == 0) != (c.says != "") || !strings.Contains(says, c.says) {
				t.Errorf("%s: carried out %d times, want %q: %s", c.path, o.orders.Load(), c.says, says)
			}
			// If the user confirms the order again, it is carried out.
			if _, says := o.sends(o.confirms(c.path)); !strings.Contains(says, "it is done") {
				t.Errorf("%s: confirmed anew: %s", c.path, says)
			}
		}
	})
}

func TestWhoIsSignedOutMeanwhileConfirmsAgain(t *testing.T) {
	o := newOperator(t)
	form := o.confirms("/confirm?action=cancel&job=users")
	o.cookies = nil
	rec, says := o.sends(form)
	if rec.Code != http.StatusUnauthorized || o.orders.Load() != 0 || !strings.Contains(says, "nothing was done") ||
		!strings.Contains(says, `href="./confirm?action=cancel&amp;job=users"`) {
		t.Errorf("%d, carried out %d times: %s", rec.Code, o.orders.Load(), says)
	}
	if rec := browse(o.server, "GET", "/confirm?action=cancel&job=users", nil,
		o.cookies); rec.Header().Get("Location") != "./sign-in?next=%2Fconfirm%3Faction%3Dcancel%26job%3Dusers" {
		t.Error(rec.Header())
	}
	// A user has signed in again in another tab, so the secret of the old form belongs to another session.
	o.signIn()
	if rec, says := o.sends(form); rec.Code != http.StatusForbidden || o.orders.Load() != 0 || !strings.Contains(says,
		"do it there again") {
		t.Errorf("%d, carried out %d times: %s", rec.Code, o.orders.Load(), says)
	}
	o.sends(o.confirms("/confirm?action=cancel&job=users"))
	if o.orders.Load() != 1 {
		t.Error("a form that is confirmed again is not carried out")
	}
}

func TestATestOfNotificationsSaysWhetherAllWereDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOperator(t)
		defer o.server.watch.End()
		for _, ok := range []bool{true, false} {
			o.do = func(order operate.Order) (operate.Outcome, error) {
				if order.Kind != operate.KindTestNotify || order.Target != "" {
					t.Errorf("ordered %+v", order)
				}
				return operate.Outcome{Text: "ops said so", Tests: []operate.Tested{{Target: "ops", OK: ok}}}, nil
			}
			_, says := o.sends(o.confirms("/confirm?action=test_notify"))
			if strings.Contains(says, "Not delivered everywhere") == ok || !strings.Contains(strings.ToLower(says), "ops said so") {
				t.Errorf("delivered %v: %s", ok, says)
			}
		}
		if page := browse(o.server, "GET", "/", nil, o.cookies).Body.String(); !strings.Contains(page, "/confirm?action=test_notify") {
			t.Error("the page has no button to test notifications")
		}
	})
}
