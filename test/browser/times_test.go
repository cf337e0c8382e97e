package browser

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/status"
	"baton/internal/status/statustest"
)

// wrongTimes are texts of the page, also those on hovering and for screen readers, that have a time of another zone than the
// one that is asked for, and elements whose time is not that of their moment in India.
const wrongTimes = `((zone, other) => {
	const texts = [...document.querySelectorAll("body *")].filter((e) => !e.closest("script, style")).flatMap((e) =>
		[...[...e.childNodes].filter((n) => n.nodeType === Node.TEXT_NODE).map((n) => n.data), e.getAttribute("aria-label"), e.getAttribute("title")]);
	const wrong = texts.filter((text) => text && new RegExp("\\d\\d:\\d\\d(:\\d\\d)? " + other).test(text));
	const india = new Intl.DateTimeFormat("en-GB", { timeZone: zone === "UTC" ? "UTC" : "Asia/Kolkata", hour: "2-digit", minute: "2-digit", second: "2-digit" });
	for (const e of document.querySelectorAll("time[data-clock]")) {
		if (!e.textContent.includes(india.format(new Date(e.dateTime)) + " " + zone)) wrong.push(e.outerHTML);
	}
	return wrong.slice(0, 3).join(" | ");
})`

// installation serves the pages of twelve jobs, whose state changes whenever it is looked at.
// calm: nothing is wrong.
func installation(t *testing.T, wrap func(http.Handler) http.Handler) (
	server *httptest.Server, snap diagnose.Snapshot, calm *atomic.Bool,
) {
	t.Helper()
	calm = &atomic.Bool{}
	snap, shelf := statustest.Large(time.Now(), 12, 3, 100)
	shanghai := time.FixedZone("CST", 8*3600)
	snap.Jobs[1].NextRun, snap.Jobs[1].TimeZone = time.Now().Add(time.Hour).In(shanghai), "Asia/Shanghai"
	snap.Jobs[2].LastRun.State, snap.Jobs[2].DueAt = "failed", time.Now().Add(-time.Hour)
	var rows atomic.Int64
	source := func(context.Context) (diagnose.Snapshot, error) {
		s := snap
		s.Now, s.Jobs = time.Now(), append([]diagnose.Job{}, s.Jobs...)
		run := *s.Jobs[3].LastRun
		run.Rows, s.Jobs[3].LastRun = rows.Add(1), &run
		if calm.Load() {
			s.Locks = nil
			s.Jobs[2] = s.Jobs[4]
			s.Jobs[2].Name = snap.Jobs[2].Name
		}
		return s, nil
	}
	answer := func(context.Context, operate.Order) (operate.Outcome, error) {
		return operate.Outcome{Text: "Done."}, nil
	}
	server = httptest.NewServer(wrap(status.New(status.Config{
		Source: source, Node: shelf, Do: answer, Hosts: []string{"db1.example"},
		Health: func() status.Health { return status.Health{Live: true, Ready: true} },
	})))
	t.Cleanup(server.Close)
	return server, snap, calm
}

func asItIs(h http.Handler) http.Handler { return h }

// strict forbids scripts, as a proxy may.
func strict(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(&second{ResponseWriter: w}, r)
	})
}

// second keeps a policy beside that of the page.
type second struct {
	http.ResponseWriter
	begun bool
}

func (w *second) WriteHeader(code int) {
	if !w.begun {
		w.begun = true
		w.Header().Add("Content-Security-Policy", "script-src 'none'")
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *second) Write(p []byte) (int, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

const zoneButton = `document.getElementById("times").checkVisibility()`

func TestTimesAreLocalOrUTC(t *testing.T) {
	server, snap, _ := installation(t, asItIs)
	l := &lab{t: t, browser: startBrowser(t)}
	b := l.openAt(t, server.URL, "/", emulation.SetTimezoneOverride("Asia/Kolkata"))
	all := func(when, zone, other string) {
		t.Helper()
		for _, path := range []string{"/", "/timeline", "/dead-letters", "/jobs/" + snap.Jobs[0].Name, "/jobs/" + snap.Jobs[7].Name,
			"/jobs/" + snap.Jobs[2].Name, "/sign-in"} {
			b.visit(path)
			b.await("the times in "+zone, `document.querySelector("header .about time").textContent.endsWith("`+zone+`")`)
			var wrong string
			b.eval(wrongTimes+`("`+zone+`", "`+strings.ReplaceAll(other, "+", `\\+`)+`")`, &wrong)
			if wrong != "" {
				t.Errorf("%s, %s: %s", when, path, wrong)
			}
		}
	}
	all("at first", "+05:30", "UTC")
	b.visit("/timeline")
	if !b.is(`document.querySelector(".chart .zone").textContent === "+05:30" && /^\d\d:[03]0$/.test(document.querySelector(".axis [data-axis]").textContent)`) {
		t.Error("the axis has other times")
	}
	b.visit("/")
	var before string
	rows := `[...document.querySelectorAll(".jobs small")].map((e) => e.textContent).find((s) => / rows? in /.test(s) && !s.startsWith("5,210"))`
	b.eval(rows, &before)
	b.await("a change", rows+` !== "`+before+`"`)
	var wrong string
	b.eval(wrongTimes+`("+05:30", "UTC")`, &wrong)
	if wrong != "" {
		t.Errorf("after a change: %s", wrong)
	}
	if !b.is(`[...document.querySelectorAll("small[title]")].some((e) => / \+05:30$/.test(e.textContent) && / \+08:00 Asia\/Shanghai$/.test(e.title))`) {
		t.Error("the next run of a job with a time zone does not have it on hovering")
	}
	b.click("Show UTC")
	b.await("the other choice", `document.getElementById("times").textContent === "Show local time"`)
	all("after the choice", "UTC", "+05:30") // and after loading it again
	b.click("Show local time")
	all("after going back", "+05:30", "UTC")
	if b = l.openAt(t, server.URL, "/", emulation.SetTimezoneOverride("UTC")); b.is(zoneButton) {
		t.Error("there is a choice where both are the same")
	}
}

func TestTimesAreUTCWithoutScripts(t *testing.T) {
	l := &lab{t: t, browser: startBrowser(t)}
	for name, c := range map[string]struct {
		wrap  func(http.Handler) http.Handler
		first []chromedp.Action
	}{"scripts are off": {asItIs, []chromedp.Action{withoutScripts()}}, "a policy forbids them": {strict, nil}} {
		server, _, _ := installation(t, c.wrap)
		b := l.openAt(t, server.URL, "/", append(c.first, emulation.SetTimezoneOverride("Asia/Kolkata"))...)
		b.awaitText("all times are in UTC")
		var wrong string
		b.eval(wrongTimes+`("UTC", "\\+05:30")`, &wrong)
		if wrong != "" || b.is(zoneButton) || b.is(`[...document.querySelectorAll(".copy")].some((e) => e.checkVisibility())`) {
			t.Errorf("%s: %q, or there are buttons that do nothing", name, wrong)
		}
	}
}
