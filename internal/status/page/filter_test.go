package page

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/status/statustest"
	"baton/internal/text"
)

// jobsOf returns the names of the jobs on a page, in the order of the page.
func jobsOf(body string) string {
	var names []string
	for _, m := range regexp.MustCompile(`<th scope="row"><a href="\./jobs/([^"]*)"`).FindAllStringSubmatch(body, -1) {
		names = append(names, m[1])
	}
	return strings.Join(names, " ")
}

func TestJobsAreFoundFilteredAndSorted(t *testing.T) {
	now := time.Now()
	s := statustest.Sample(now) // page-views, users (late, running), report (failing), cleanup (paused)
	s.Jobs[2].Command, s.Jobs[3].Command, s.Jobs[2].NextRun = true, true, time.Time{}
	rate := func(n float64) operate.Level { return operate.Level{RowsPerSecond: &n} }
	levels := map[string]operate.Level{"page-views": rate(1042), "users": rate(7.25)}
	d := &statustest.FakeNode{Measured: []operate.Sample{{At: now, Jobs: levels}}}
	h := newServer(config{Source: statustest.Fixed(s), Node: d})
	for query, want := range map[string]string{
		"":                          "users report cleanup page-views", // failing and late jobs come first
		"sort=name":                 "cleanup page-views report users",
		"sort=next":                 "page-views cleanup users report",
		"sort=last":                 "page-views users report cleanup",
		"sort=took":                 "users report page-views cleanup",
		"sort=rows":                 "page-views users report cleanup",
		"sort=lag":                  "users page-views report cleanup",
		"sort=backlog":              "users page-views report cleanup",
		"show=trouble":              "users report",
		"show=running":              "users",
		"show=paused":               "cleanup",
		"show=flushes":              "users page-views",
		"show=commands&sort=name":   "cleanup report",
		"find=PAGE":                 "page-views",
		"find=shop":                 "users", // the job's store
		"find=main":                 "users page-views",
		"find=users&show=commands":  "",
		"find=+report+&sort=x&show": "report",
	} {
		body := pageOf(t, h, topic{path: "/", query: meant("/", query), see: true}, s, true)
		if got := jobsOf(body); got != want {
			t.Errorf("?%s: %s, want %s", query, got, want)
		}
		if none := strings.Contains(body, "None of 4 jobs is like that."); none != (want == "") {
			t.Errorf("?%s: that no job is like that: %t", query, none)
		}
	}
	body := pageOf(t, h, topic{path: "/", query: "find=main&sort=lag", see: true}, s, true)
	for _, want := range []string{
		`<a href="./?find=main&amp;sort=name">Job</a>`, `aria-sort="descending"><a href="./?find=main">Lag</a>`,
		`<a href="./?find=main&amp;show=trouble&amp;sort=lag">Failing or late <span class="num">2</span></a>`,
		`<input type="hidden" name="sort" value="lag"/>`, `value="main"`, `<a href="./?sort=lag">Clear</a>`, ">1,042</td>", ">7.2</td>",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

func TestAFilterThatMeansNothingIsNone(t *testing.T) {
	for query, want := range map[string]string{
		"find=a&show=running&sort=lag&jobs=all": "find=a&jobs=all&show=running&sort=lag",
		"find=++&show=x&sort=y&jobs=some&z=1":   "", "find=" + strings.Repeat("x", mostFind+1): "",
	} {
		if got := meant("/", query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	if f := filterOf(url.Values{"find": {`"><b>`}}); f.url() != "/?find=%22%3E%3Cb%3E" {
		t.Error(f.url())
	}
}

func TestAStripShowsHowRunsEnded(t *testing.T) {
	var runs []operate.Brief
	for i, state := range []string{"succeeded", "succeeded", "failed", "missed", "timed_out", "cancelled"} {
		r := operate.Brief{RunID: state, State: state, Duration: text.Seconds(i) * 1000 * text.Millisecond}
		if state == "missed" {
			r.RunID, r.Duration = "", 0
		}
		runs = append(runs, r)
	}
	s := newStrip(runs)
	if s.Text != "Last 6 runs: 2 succeeded, 1 failed, 1 timed out, 1 cancelled, 1 missed; took 0 s to 5 s" {
		t.Error(s.Text)
	}
	var got []string
	for _, m := range s.Marks {
		got = append(got, string(m.Tone)+" "+m.Path)
	}
	want := "good M98 0V3M102 0V8, bad M106 0V10M114 0V13, warn M110 0V3, idle M118 0V14"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("%s, want %s", text, want)
	}
	if newStrip(nil) != nil {
		t.Error("no runs have a strip")
	}
	many := newStrip(make([]operate.Brief, 50))
	if n := strings.Count(many.Marks[0].Path, "M"); n != operate.MostRecent || !strings.HasPrefix(many.Marks[0].Path, "M2 0V") {
		t.Errorf("%d marks: %s", n, many.Marks[0].Path)
	}
}

func TestWhatACommandPrintedLastStandsBesideItsExitCode(t *testing.T) {
	const line = "report: no such host"
	s := statustest.Sample(time.Now())
	j := &s.Jobs[2]
	j.Command, j.LastRun.ID, j.LastRun.Error, j.LastRun.Output = true, "r7", "exit code 75", line
	d := &statustest.FakeNode{Latest: map[string][]operate.Brief{"report": {{RunID: "r6"}}}} // older than the state, which is read often
	h := newServer(config{Source: statustest.Fixed(s), Node: d})
	shows := func(see bool) bool {
		return strings.Contains(pageOf(t, h, topic{path: "/", see: see}, s, true), "exit code 75 · printed last: <b>"+line+"</b>")
	}
	if !shows(true) {
		t.Error("the page does not show what was printed last")
	}
	if shows(false) {
		t.Error("the page shows to everybody what was printed")
	}
}

func TestAnInstallationWithoutJobsIsToldHowToBegin(t *testing.T) {
	s := statustest.Sample(time.Now())
	s.Jobs = []diagnose.Job{}
	body := render(t, s)
	for _, want := range []string{"No job is configured", "baton config check", "baton reload", "baton config init"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(body, `role="search"`) {
		t.Error("there is nothing to search")
	}
}
