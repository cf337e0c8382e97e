package page

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/internal/diagnose"
	"baton/internal/status/statustest"
	"baton/internal/text"
)

// render returns the first page for the state s.
func render(t *testing.T, s diagnose.Snapshot) string {
	t.Helper()
	return pageAt(t, s, "/")
}

// pageAt returns the page at a path for the state s.
func pageAt(t *testing.T, s diagnose.Snapshot, path string) string {
	t.Helper()
	h := newServer(config{Source: statustest.Fixed(s)})
	path, query, _ := strings.Cut(path, "?")
	return pageOf(t, h, topic{path: path, query: query, see: true}, s, true)
}

// pageOf returns the page of a topic.
func pageOf(t *testing.T, h *server, topic topic, s diagnose.Snapshot, known bool) string {
	t.Helper()
	body, err := h.page.render("document", h.page.compose(t.Context(), topic, diagnose.Aged(s), known))
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestPageEscapesEveryText(t *testing.T) {
	s := statustest.Sample(time.Now())
	s.NodeID, s.Version, s.LockKey, s.Role, s.Error = statustest.Hostile, statustest.Hostile, statustest.Hostile,
		statustest.Hostile, statustest.Hostile
	s.Leader.NodeID, s.Leader.Owner = statustest.Hostile, statustest.Hostile
	s.Redis = diagnose.Redis{Host: statustest.Hostile, Error: statustest.Hostile}
	for i := range s.Nodes {
		s.Nodes[i] = diagnose.Node{ID: statustest.Hostile, State: statustest.Hostile, Version: statustest.Hostile,
			ConfigHash: statustest.Hostile, Address: statustest.Hostile}
	}
	run := &diagnose.Run{ID: statustest.Hostile, State: statustest.Hostile, Trigger: statustest.Hostile,
		Error: statustest.Hostile, NodeID: statustest.Hostile, Dead: 1}
	for i := range s.Jobs {
		s.Jobs[i] = diagnose.Job{Name: statustest.Hostile, Schedule: statustest.Hostile,
			ScheduleWords: statustest.Hostile + ".", TimeZone: statustest.Hostile, Target: statustest.Hostile, LastRun: run}
	}
	s.Jobs[0].Running = run
	for i := range s.Events {
		s.Events[i] = diagnose.Event{Event: statustest.Hostile, NodeID: statustest.Hostile, Reason: statustest.Hostile}
	}
	page := render(t, s)
	if n := strings.Count(page, "<script"); n != 1 {
		t.Errorf("%d scripts on the page, want its own alone", n)
	}
	for _, bad := range []string{"<script>alert", "<img", "onerror='", "</style><"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	foreign := &diagnose.Leader{Foreign: true, Owner: statustest.Hostile, LeaseLeft: 5 * text.Millisecond, TTL: 10 * text.Millisecond}
	for _, s.Leader = range []*diagnose.Leader{nil, foreign} {
		s.Vacancy = statustest.Hostile
		if page := render(t, s); strings.Count(page, "<script") != 1 || strings.Contains(page, "<img") {
			t.Errorf("leader %+v: hostile text came through", s.Leader)
		}
	}
}

func TestPolicyAllowsExactlyThePartsOfThePage(t *testing.T) {
	p, page := newServer(config{}).page, render(t, statustest.Sample(time.Now()))
	for tag, directive := range map[string]string{"style": "style-src", "script": "script-src"} {
		part := regexp.MustCompile(`(?s)<` + tag + `>(.*?)</` + tag + `>`).FindStringSubmatch(page)
		if part == nil {
			t.Fatalf("no <%s>", tag)
		}
		if want := directive + " 'sha256-" + digest(part[1]) + "'"; !strings.Contains(p.Policy, want) {
			t.Errorf("policy %q lacks %q", p.Policy, want)
		}
	}
	// The Content-Security-Policy would block these without a message.
	if found := regexp.MustCompile(`(?i)<[^>]*\s(?:style|src|on[a-z]+)=|<[^>]*="https?:[^>]*`).FindString(page); found != "" {
		t.Errorf("the page has an inline style, an inline handler or an outside address: %q", found)
	}
}

func TestPageIsWellFormedWhateverTheState(t *testing.T) {
	now := time.Now()
	empty := diagnose.Snapshot{}
	foreign := statustest.Sample(now)
	foreign.Leader = &diagnose.Leader{Foreign: true, Owner: "java:1", LeaseLeft: -1 * text.Millisecond}
	failing := statustest.Sample(now)
	failing.Error, failing.Age = "boom", 90_000*text.Millisecond
	vacant := failing
	vacant.Leader = nil
	for name, s := range map[string]diagnose.Snapshot{"sample": statustest.Sample(now), "empty": empty,
		"foreign": foreign, "failing": failing, "vacant": vacant} {
		for _, known := range []bool{true, false} {
			h := newServer(config{Source: statustest.Fixed(s)})
			var err error
			body := pageOf(t, h, topic{path: "/", see: true}, s, known)
			text := regexp.MustCompile(`(?s)<(style|script)>.*?</(style|script)>`).ReplaceAllString(body, "")
			text = regexp.MustCompile(`<(meta|link)([^>]*)>`).ReplaceAllString(text, "<$1$2/>")
			dec := xml.NewDecoder(strings.NewReader(text))
			dec.Entity = xml.HTMLEntity
			for err == nil {
				_, err = dec.Token()
			}
			if !errors.Is(err, io.EOF) {
				t.Errorf("%s, known %v: %v", name, known, err)
			}
		}
	}
}

func TestPageCanBeReadWithoutScriptAndWithoutEyes(t *testing.T) {
	page := render(t, statustest.Sample(time.Now()))
	for _, want := range []string{
		`<html lang="en"`, `<noscript><meta http-equiv="refresh" content="5"></noscript>`, `name="viewport"`,
		`<header`, `<main`, `<footer>`,
		`role="status" aria-live="polite">db1 leads, epoch 1753192331043. Data is late. Jobs are failing. A node is silent<`,
		`<progress aria-label="Lease left" max="10000" value="8120">`, `<th scope="col">Schedule`,
		`<th scope="row"><a href="./jobs/users"><bdi>users</bdi></a>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("page lacks %s", want)
		}
	}
}

func TestPageAnswersWhoLeadsAndWhatIsWrong(t *testing.T) {
	page := render(t, statustest.Sample(time.Now()))
	for _, want := range []string{
		"<title>Data is late · db1 leads · baton</title>", "1753192331043", "2 h 3 min", "8.1 s", "of 10 s left", // the leader
		"3 min 20 s late", "users; at least 185,440 changes waiting", "1 of 4 failing", // the verdicts
		"2 live, 1 silent", "db3 not seen lately",
		"every day at 02:30", "30 2 * * *", "Asia/Shanghai", "3 failures in a row", "3 dead letters", "varchar(80)",
		">12 s</time> on db1", // the jobs
		"1,200 rows of 185,400 changes", "by alice: ", ">20 min</time>",
		"not the leader’s", "asked by alice: upgrade", "stepped down", "no renewal was answered in time", // nodes, events
	} {
		if !strings.Contains(page, want) {
			t.Errorf("page lacks %q", want)
		}
	}
}

func TestVerdicts(t *testing.T) {
	now := time.Now()
	job := func(name string, lag float64, change func(*diagnose.Job)) diagnose.Job {
		j := diagnose.Job{Name: name, DueAt: now.Add(-time.Duration(lag) * time.Second), LagSeconds: new(lag),
			Backlog: new(int64(10)), LastRun: &diagnose.Run{State: "succeeded"}}
		if change != nil {
			change(&j)
		}
		return j
	}
	failed := func(j *diagnose.Job) { j.LastRun.State = "timed_out" }
	failing16 := func(j *diagnose.Job) { j.ConsecutiveFailures = 16 }
	patient := func(j *diagnose.Job) { j.LateAfterSeconds = 3600 }
	for name, c := range map[string]struct {
		got  verdict
		want verdict
	}{
		"data current": {dataVerdict(diagnose.Snapshot{Jobs: []diagnose.Job{job("a", 1, nil), job("b", 50, nil)}}),
			verdict{Tone: good, Question: "Data", Answer: "Up to date", Note: "at most 50 s behind; 20 changes waiting"}},
		"data late": {dataVerdict(diagnose.Snapshot{Jobs: []diagnose.Job{job("a", 1, nil), job("b", 61, nil)}}),
			verdict{Tone: bad, Question: "Data", Answer: "1 min 1 s late", Note: "b; 20 changes waiting"}},
		"data later": {dataVerdict(diagnose.Snapshot{Jobs: []diagnose.Job{job("a", 90, nil), job("b", 70, nil)}}),
			verdict{Tone: bad, Question: "Data", Answer: "1 min 30 s late", Note: "a and 1 more; 20 changes waiting"}},
		"data at rest": {dataVerdict(diagnose.Snapshot{Jobs: []diagnose.Job{{Name: "a", LagSeconds: new(0.0),
			Backlog: new(int64(0))}}}), verdict{Tone: good, Question: "Data", Answer: "Up to date", Note: "nothing waits to be written"}},
		"data patient": {dataVerdict(diagnose.Snapshot{Jobs: []diagnose.Job{job("a", 90, patient)}}),
			verdict{Tone: good, Question: "Data", Answer: "Up to date", Note: "at most 1 min 30 s behind; 10 changes waiting"}},
		"data unknown": {dataVerdict(diagnose.Snapshot{Error: "x", Jobs: []diagnose.Job{job("a", 1, nil)}}),
			verdict{Tone: warn, Question: "Data", Answer: "Not known", Note: "the state could not be read"}},
		"data none": {dataVerdict(diagnose.Snapshot{Jobs: []diagnose.Job{{Name: "a"}}}), verdict{Tone: idle,
			Question: "Data", Answer: "Not measured", Note: "no flush has reported its lag"}},
		"data unwritten": {dataVerdict(diagnose.Snapshot{Jobs: []diagnose.Job{job("a", 1, nil), job("b", 8,
			failing16)}}), verdict{Tone: bad, Question: "Data", Answer: "Not written", Note: "b failing; 20 changes waiting"}},
		"data begins": {dataVerdict(diagnose.Snapshot{Jobs: []diagnose.Job{job("a", 1, nil), {Name: "b",
			Backlog: new(int64(5))}}}), verdict{Tone: idle, Question: "Data", Answer: "Partly unknown",
			Note: "b never succeeded; 15 changes waiting"}},
		"data commands": {dataVerdict(diagnose.Snapshot{Jobs: []diagnose.Job{{Name: "a", Command: true}}}),
			verdict{Tone: idle, Question: "Data", Answer: "No flush", Note: "all jobs run commands"}},
		"jobs well": {jobsVerdict(diagnose.Snapshot{Jobs: []diagnose.Job{job("a", 1, nil), job("b", 1, nil)}},
			true), verdict{Tone: good, Question: "Jobs", Answer: "All 2 healthy", Note: "0 running now"}},
		"jobs failing": {jobsVerdict(diagnose.Snapshot{Jobs: []diagnose.Job{job("a", 1, failed), job("b", 1, nil)}},
			true), verdict{Tone: bad, Question: "Jobs", Answer: "1 of 2 failing", Note: "a"}},
		"jobs overdue": {jobsVerdict(diagnose.Snapshot{Jobs: []diagnose.Job{job("a", 1, nil), job("b", 1,
			func(j *diagnose.Job) { j.DueAt = now.Add(-2 * time.Minute) })}}, true), verdict{Tone: bad,
			Question: "Jobs", Answer: "1 of 2 late", Note: "b"}},
		"jobs paused": {jobsVerdict(diagnose.Snapshot{Jobs: []diagnose.Job{{Name: "a", Paused: &diagnose.Pause{}},
			job("b", 1, nil)}}, true), verdict{Tone: warn, Question: "Jobs", Answer: "1 of 2 paused", Note: "a"}},
		"jobs fresh": {jobsVerdict(diagnose.Snapshot{Jobs: []diagnose.Job{{Name: "a"}}}, true), verdict{Tone: idle,
			Question: "Jobs", Answer: "None has run yet", Note: "0 running now"}},
		"jobs none": {jobsVerdict(diagnose.Snapshot{}, true), verdict{Tone: idle, Question: "Jobs", Answer: "None",
			Note: "no job is configured on this node"}},
		"jobs unknown": {jobsVerdict(diagnose.Snapshot{Error: "x"}, false), verdict{Tone: warn, Question: "Jobs",
			Answer: "Not known", Note: "the state could not be read"}},
		"jobs stale": {jobsVerdict(diagnose.Snapshot{Error: "x", Jobs: []diagnose.Job{job("a", 1, nil)}}, true),
			verdict{Tone: warn, Question: "Jobs", Answer: "Healthy", Note: "when last seen"}},
		"redis": {redisVerdict(diagnose.Snapshot{Redis: diagnose.Redis{Host: "r:1", OK: true,
			Since: now.Add(-time.Hour)}}, now), verdict{Tone: good, Question: "Redis", Answer: "Answers", Note: "r:1, for 1 h"}},
		"redis down": {redisVerdict(diagnose.Snapshot{Redis: diagnose.Redis{Host: "r:1", Error: "refused"}}, now),
			verdict{Tone: bad, Question: "Redis", Answer: "Does not answer", Note: "r:1", Detail: "refused"}},
		"nodes": {nodesVerdict(diagnose.Snapshot{Leader: &diagnose.Leader{NodeID: "a"},
			Nodes: []diagnose.Node{{ID: "a"}, {ID: "b"}}}, true), verdict{Tone: good, Question: "Nodes",
			Answer: "2 live", Note: "1 could take over"}},
		"node alone": {nodesVerdict(diagnose.Snapshot{Leader: &diagnose.Leader{NodeID: "a"},
			Nodes: []diagnose.Node{{ID: "a"}}}, true), verdict{Tone: warn, Question: "Nodes", Answer: "1 live",
			Note: "no standby could take over"}},
		"no candidate": {nodesVerdict(diagnose.Snapshot{Leader: &diagnose.Leader{NodeID: "a"},
			Nodes: []diagnose.Node{{ID: "a"}, {ID: "b", Observer: true}, {ID: "c", Aside: "for 20s: x"}}}, true),
			verdict{Tone: warn, Question: "Nodes", Answer: "3 live", Note: "no standby could take over"}},
		"nodes vacant": {nodesVerdict(diagnose.Snapshot{Nodes: []diagnose.Node{{ID: "a"}, {ID: "b"}}}, true),
			verdict{Tone: good, Question: "Nodes", Answer: "2 live", Note: "2 could lead"}},
		"none can": {nodesVerdict(diagnose.Snapshot{Nodes: []diagnose.Node{{ID: "a", Observer: true}}}, true),
			verdict{Tone: warn, Question: "Nodes", Answer: "1 live", Note: "none could lead"}},
		"node missing": {nodesVerdict(diagnose.Snapshot{Leader: &diagnose.Leader{NodeID: "a"},
			Nodes: []diagnose.Node{{ID: "a"}, {ID: "b", State: diagnose.StateSilent, Led: true}, {ID: "c", ConfigHash: "x"}}},
			true), verdict{Tone: warn, Question: "Nodes", Answer: "2 live, 1 silent", Note: "b not seen lately"}},
		"nodes differ": {nodesVerdict(diagnose.Snapshot{Leader: &diagnose.Leader{NodeID: "a"},
			Nodes: []diagnose.Node{{ID: "a"}, {ID: "b", ConfigHash: "x", ClockAhead: -4000 * text.Millisecond}}}, true),
			verdict{Tone: warn, Question: "Nodes", Answer: "2 live", Note: "other configuration on b"}},
		"nodes silent": {nodesVerdict(diagnose.Snapshot{Nodes: []diagnose.Node{{ID: "a"}, {ID: "b", Stale: true}}},
			true), verdict{Tone: warn, Question: "Nodes", Answer: "1 live, 1 silent", Note: "b not seen lately"}},
	} {
		if (c.got.Next == "") != (c.got.Tone == good || c.got.Tone == idle) && c.got.Answer != "Not known" && name != "jobs stale" {
			t.Errorf("%s: what is wrong has nothing to do about it, or the other way round: %+v", name, c.got)
		}
		c.got.Next, c.got.Command, c.got.Link, c.got.Of, c.got.Say = "", "", "", "", ""
		if c.got != c.want {
			t.Errorf("%s: %+v, want %+v", name, c.got, c.want)
		}
	}
}

// TestPausedElectionPromisesNoNextRun checks that the page shows no next run during a pause, because the end of the pause is unknown.
func TestPausedElectionPromisesNoNextRun(t *testing.T) {
	now := time.Now()
	s := statustest.Sample(now)
	s.Leader, s.Paused = nil, &diagnose.Pause{Since: now, Reason: "by alice: upgrade"}
	for _, j := range newOverview(s, true, jobFilter{}, extras{}).Jobs {
		if want := (instant{Near: "after resume"}); j.Next != want {
			t.Errorf("next run of %s: %+v, want %+v", j.Name, j.Next, want)
		}
	}
	if page := render(t, s); !strings.Contains(page, ">after resume<") {
		t.Error("the page does not say when jobs run again")
	}
}

func TestAQuarantineIsNotTheNodes(t *testing.T) {
	v := newOverview(statustest.Sample(time.Now()), true, jobFilter{}, extras{})
	if v.Events[len(v.Events)-1].Event != "began a quarantine" {
		t.Errorf("the oldest event: %+v", v.Events[len(v.Events)-1])
	}
}

func TestLeaseGoesOnEndingWhileTheStateIsOld(t *testing.T) {
	for _, c := range []struct {
		left, ttl, age text.Seconds // in milliseconds in this test
		want           string
		tone           tone
	}{
		{8000, 10000, 0, "8 s", good}, {8000, 10000, 4500, "3.5 s", warn}, {8000, 10000, 7000, "1 s", bad},
		{8000, 10000, 60000, "0 s", bad}, {12000, 10000, 0, "10 s", good},
	} {
		l := &diagnose.Leader{LeaseLeft: c.left * text.Millisecond, TTL: c.ttl * text.Millisecond}
		v := newLeaseView(l, c.age*text.Millisecond, time.Now())
		if v.Left != c.want || v.Tone != c.tone {
			t.Errorf("%+v: %+v", c, v)
		}
	}
	if v := newLeaseView(&diagnose.Leader{LeaseLeft: -1 * text.Millisecond, TTL: 10 * text.Millisecond}, 0, time.Now()); v != nil {
		t.Errorf("a lock without time to live has the lease %+v", v)
	}
}

func TestPageOfManyJobsShowsTheWorstFirst(t *testing.T) {
	s := diagnose.Snapshot{Now: time.Now()}
	for i := range 2000 {
		s.Jobs = append(s.Jobs, diagnose.Job{Name: fmt.Sprintf("job-%04d", i), Schedule: "@hourly",
			LastRun: &diagnose.Run{State: "succeeded"}})
	}
	s.Jobs[1998].ConsecutiveFailures = 1
	s.Jobs[1500].Paused = &diagnose.Pause{Reason: "by alice"}
	s.Jobs[1700].Running = &diagnose.Run{NodeID: "db1"}
	s.Jobs[1999].LagSeconds, s.Jobs[1999].DueAt = new(1e6), s.Now.Add(-time.Hour)
	page := render(t, s)
	names := regexp.MustCompile(`job-\d{4}</bdi></a></th`).FindAllString(page, -1)
	if len(names) != manyJobs || len(page) > 200_000 {
		t.Errorf("%d jobs in %d bytes, want %d jobs", len(names), len(page), manyJobs)
	}
	if got, want := strings.Join(names[:5], " "), "job-1998</bdi></a></th job-1999</bdi></a></th "+
		"job-1500</bdi></a></th job-1700</bdi></a></th job-0000</bdi></a></th"; got != want {
		t.Errorf("they begin with %s, want %s", got, want)
	}
	if !strings.Contains(page, `200 of 2,000 jobs. Jobs that fail, are late, are paused or run come first. <a href="./?jobs=all">`) {
		t.Error("the page does not say that there are more jobs, or how to see them")
	}
	if all := pageAt(t, s, "/?jobs=all"); strings.Count(all, `<th scope="row"><a href="./jobs/`) < 2000 ||
		strings.Contains(all, "Show all</a>") {
		t.Error("asked for all jobs the page does not show them")
	}
	if s.Jobs[0].Name != "job-0000" || s.Jobs[1999].Name != "job-1999" {
		t.Error("the snapshot, which others share, was put into another order")
	}
}

func TestANodeThatTellsAsOftenAsItShouldLooksAlive(t *testing.T) {
	s := statustest.Sample(time.Now())
	s.Nodes[0].LastSeenAgo, s.Nodes[1].LastSeenAgo = 29_000*text.Millisecond, 31_000*text.Millisecond
	s.Nodes = append(s.Nodes, diagnose.Node{ID: "db4", State: "standby", LastSeenAgo: 42_000 * text.Millisecond})
	var got []string
	for _, n := range newOverview(s, true, jobFilter{}, extras{}).Nodes {
		got = append(got, n.Seen.Near)
	}
	if !slices.Equal(got[:2], []string{"within 35 s", "now"}) || !strings.HasPrefix(got[2], "12 min ") ||
		!strings.HasSuffix(got[3], " s ago") {
		t.Errorf("the nodes are seen %q", got)
	}
	s.Nodes[1].Twin, s.NodeID = "other", "db2"
	if got := newOverview(s, true, jobFilter{}, extras{}).Nodes[1].Seen.Near; got != "within 35 s" {
		t.Errorf("of two with the same id one is seen %q", got)
	}
}

func TestNoNextRunIsPromisedWhileNoNodeLeadsUnderTheLock(t *testing.T) {
	const nobody = "once a node leads"
	s := statustest.Sample(time.Now())
	s.Leader.Foreign = true
	next := func() string { return newOverview(s, true, jobFilter{Find: "page-views"}, extras{}).Jobs[0].Next.Near }
	if got := next(); got != nobody {
		t.Errorf("a foreign client has the lock: %q", got)
	}
	if body := pageAt(t, s, jobURL(s.Jobs[0].Name)); !strings.Contains(body, nobody) || strings.Contains(body, `data-tick="next"`) {
		t.Error("the page of the job counts down")
	}
	s.Jobs[0].Lock, s.Locks = "own", []diagnose.Lock{{Key: "own", Leader: &diagnose.Leader{NodeID: "db1"}}}
	if got := next(); !strings.HasPrefix(got, "in ") {
		t.Errorf("somebody leads under the job's own lock: %q", got)
	}
	s.Leader.Foreign, s.Locks[0].Leader = false, nil
	if got := next(); got != nobody {
		t.Errorf("no node leads under the job's own lock: %q", got)
	}
}

func TestAJobThatBatonPausedHasOneValueAndOneAdvice(t *testing.T) {
	now := time.Now()
	s := diagnose.Snapshot{Now: now, NodeID: "a", LockKey: "baton", Leader: &diagnose.Leader{NodeID: "a"},
		Nodes: []diagnose.Node{{ID: "a", State: "leading"}},
		Jobs: []diagnose.Job{{Name: "users", ConsecutiveFailures: 1, BacklogUnknown: "the job is paused",
			Paused:  &diagnose.Pause{Since: now, Reason: "by baton: 480 of 500 rows would be deleted"},
			LastRun: &diagnose.Run{State: "failed", Error: "480 of 500 rows would be deleted"}}}}
	page := render(t, s)
	for text, want := range map[string]bool{
		"0 changes waiting": false, "changes waiting: unknown": true, "run the job": false, "baton job history users": false,
		"baton job resume users": true,
	} {
		if strings.Contains(page, text) != want {
			t.Errorf("the page has %q: %t, want %t", text, !want, want)
		}
	}
}

func TestAJobThatIsKeptRunningAgainIsNotShownAsLost(t *testing.T) {
	now := time.Now()
	s := calm(now)
	s.Jobs = []diagnose.Job{{Name: "feed", Always: true, Command: true, Running: &diagnose.Run{State: "running", Started: now},
		LastRun: &diagnose.Run{State: "lost", Error: "db1 no longer leads", Started: now.Add(-time.Hour)}}}
	for _, text := range []string{">lost<", "no longer leads", ">never<"} {
		if strings.Contains(render(t, s), text) {
			t.Errorf("the page has %q", text)
		}
	}
}

func TestThePageOfAJobHasItsDefinition(t *testing.T) {
	s := calm(time.Now())
	s.Jobs[0].Definition = "- name: x\n  overlap: forbid\n"
	h := newServer(config{Source: statustest.Fixed(s)})
	for _, see := range []bool{true, false} {
		page := pageOf(t, h, topic{path: "/jobs/" + s.Jobs[0].Name, see: see}, s, true)
		if strings.Contains(page, "overlap: forbid") != see {
			t.Errorf("may see outputs %t: the definition is shown %t", see, !see)
		}
	}
}
