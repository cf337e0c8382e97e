package page

import (
	"slices"
	"strings"
	"testing"
	"time"

	"baton/internal/diagnose"
	"baton/internal/status/statustest"
	"baton/internal/text"
)

// calm returns a state without problems.
func calm(now time.Time) diagnose.Snapshot {
	s := statustest.Sample(now)
	s.Nodes, s.Jobs = s.Nodes[:2], s.Jobs[:1]
	return s
}

// todo returns the problems that the first page lists.
func todo(s diagnose.Snapshot, letters letterCount) (all []string) {
	v := newOverview(s, true, jobFilter{}, extras{letters: letters})
	for _, p := range slices.Concat(v.First, v.Then) {
		all = append(all, string(p.Tone)+" "+p.What+": "+p.Note+": "+strings.TrimSpace(p.Next+" "+p.Command))
	}
	return all
}

func TestWhereAllIsWellThereIsNothingToDo(t *testing.T) {
	s := calm(time.Now())
	if got := todo(s, letterCount{}); got != nil {
		t.Errorf("to do: %q", got)
	}
	if page := render(t, s); strings.Contains(page, `class="problems"`) || !strings.Contains(page, "<title>db1 leads · baton</title>") {
		t.Error("the page has a list of what is wrong, or a title that alarms")
	}
}

func TestEveryProblemIsNamedWithWhatToDoTheWorstFirst(t *testing.T) {
	s := calm(time.Now())
	s.Nodes[1].ConfigHash, s.Nodes[1].ClockAhead = "other", 4000*text.Millisecond
	s.Jobs[0].ConsecutiveFailures = 2
	s.Locks = []diagnose.Lock{{Key: "billing", Leader: &diagnose.Leader{Foreign: true, Owner: "java:1"}}, {Key: "mail",
		Vacancy: "there is no node that may lead"}, {Key: "well", Leader: &diagnose.Leader{NodeID: "db1"}}}
	got := todo(s, letterCount{text: "2 dead letters"})
	want := []string{
		"bad Another program holds the lock billing", "bad No node leads under the lock mail: There is no node that " +
			"may lead.", "bad Data: Not written: page-views failing; 1,240 changes waiting: Read the last error of " +
			"page-views", "bad Jobs: 1 of 1 failing: page-views: Read the last error of page-views",
		"warn Nodes: other configuration on db2", "warn Nodes: the clock is wrong on db2", "warn 2 dead letters",
	}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("to do:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, p := range got {
		if strings.HasSuffix(p, ": ") {
			t.Errorf("%q says nothing to do", p)
		}
	}
}

// TestTheWorstStandsOnTop checks the order of the first page. Urgent problems are above a leader without problems and below a leader that
// is itself the problem. Other problems are below the leader in both cases.
func TestTheWorstStandsOnTop(t *testing.T) {
	s := calm(time.Now())
	s.Jobs[0].ConsecutiveFailures = 2
	order := func(page string) bool {
		return strings.Index(page, `class="problems"`) < strings.Index(page, `class="leader `)
	}
	if page := render(t, s); !order(page) || !strings.Contains(page,
		"<title>Data is not written · db1 leads · baton</title>") || !strings.Contains(page,
		`<a href="./jobs/page-views">Open page-views</a>`) {
		t.Error("what is wrong does not stand above the leader, or in the title")
	}
	s.Nodes[1].ConfigHash = "other"
	if _, after, _ := strings.Cut(render(t, s), `class="leader `); !strings.Contains(after, "Nodes: other configuration on db2</b>") {
		t.Error("what can wait does not stand below the leader")
	}
	s.Leader = nil
	if page := render(t, s); order(page) || !strings.Contains(page, "<title>No node leads · baton</title>") {
		t.Error("that no node leads does not stand above all else, or in the title")
	}
}

// TestALockOfSomeJobsIsNoProblemOfItsOwnWhileNoNodeLeads checks that problems of a lock are not listed while the state cannot be read or no
// node leads at all, because they would not help.
func TestALockOfSomeJobsIsNoProblemOfItsOwnWhileNoNodeLeads(t *testing.T) {
	s := calm(time.Now())
	s.Leader, s.Locks = nil, []diagnose.Lock{{Key: "billing"}}
	if got := todo(s, letterCount{}); slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, "billing") }) {
		t.Errorf("no node leads: %q", got)
	}
	s = calm(time.Now())
	s.Locks, s.Error = []diagnose.Lock{{Key: "billing"}}, "redis does not answer"
	if got := todo(s, letterCount{}); slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, "billing") }) {
		t.Errorf("nothing can be read: %q", got)
	}
}

func TestALeaderThatIsMissingIsShownAsSilent(t *testing.T) {
	s := calm(time.Now())
	s.Leader.NodeID, s.Nodes[0].State, s.Nodes[0].Led, s.Nodes[0].LastSeenAgo = "db2", diagnose.StateSilent, true, 9000*text.Millisecond
	if n := newNodeView(s.Nodes[0], s, s.Now); n.State != "silent" || n.Tone != bad || n.Aside == "" ||
		!strings.HasSuffix(n.Seen.Near, " s ago") {
		t.Errorf("%+v", n)
	}
	if page := render(t, s); !strings.Contains(page, "On db1: <code>systemctl status baton</code>") {
		t.Error("the page does not say where to look")
	}
}

// TestWhatALapsedLeaseAllowedIsNotShownAsGoingOn checks that a leader is shown as ended when its lease has ended, because a leader that
// cannot be reached stops with all its runs before that time.
func TestWhatALapsedLeaseAllowedIsNotShownAsGoingOn(t *testing.T) {
	s := calm(time.Now())
	s.Jobs[0].Running = &diagnose.Run{ID: "r1", NodeID: "db1", Started: s.Now.Add(-17 * time.Minute)}
	s.Error, s.Redis.OK, s.Leader.LeaseLeft = "connection refused", false, 8000*text.Millisecond
	for _, c := range []struct {
		age  int64
		over bool
	}{{3000, false}, {15_000, true}} {
		s.Age = text.Seconds(c.age) * text.Millisecond
		page := render(t, s)
		if leads := strings.Contains(page, "<bdi>db1</bdi> led when last seen"); leads == c.over {
			t.Errorf("%d ms after it was seen db1 leads: %v", c.age, leads)
		}
		if runs := strings.Contains(page, "17 min"); runs == c.over {
			t.Errorf("%d ms after it was seen its run goes on: %v", c.age, runs)
		}
	}
}

// TestWhereRedisIsAwayItIsTheOneProblem checks that Redis is the only listed problem if it does not answer, because all other data is old.
func TestWhereRedisIsAwayItIsTheOneProblem(t *testing.T) {
	s := statustest.Sample(time.Now())
	s.Error, s.Age, s.Redis = "connection refused", 14_000*text.Millisecond, diagnose.Redis{Host: "r:1", Error: "connection refused"}
	if got := todo(s, letterCount{text: "2 dead letters"}); len(got) != 1 || !strings.HasPrefix(got[0],
		"bad Redis: Does not answer: connection refused: See whether Redis runs at r:1") {
		t.Errorf("to do: %q", got)
	}
	page := render(t, s)
	if strings.Count(page, "connection refused") != 1 || !strings.Contains(page,
		`<p class="alarm">What you see is 14 s old.</p>`) || !strings.Contains(page, " led when last seen") {
		t.Error("the page says it more than once, or not how old it is, or as if it were so now")
	}
	if strings.Index(page, `class="problems"`) > strings.Index(page, `class="leader `) {
		t.Error("what is to be seen to does not stand on top")
	}
}

func TestNobodyIsAskedToStepDownWhereNoNodeLeads(t *testing.T) {
	s := calm(time.Now())
	h := newServer(config{Source: statustest.Fixed(s)})
	for _, leads := range []bool{true, false} {
		if !leads {
			s.Leader = nil
		}
		if page := pageOf(t, h, topic{path: "/", see: true, order: true}, s, true); strings.Contains(page, "Step down…") != leads {
			t.Errorf("somebody leads: %v, and the other way round with the button", leads)
		}
	}
}

func TestAnOverdueJobIsCalledLate(t *testing.T) {
	s := calm(time.Now())
	s.Jobs[0].DueAt = s.Now.Add(-time.Hour)
	for _, path := range []string{"/", "/jobs/page-views"} {
		if page := pageAt(t, s, path); !strings.Contains(strings.ToLower(page), "late: due at ") {
			t.Errorf("%s does not say since when the job is late", path)
		}
	}
}

// TestTheTableMarksTheJobsThatTheBannerCounts checks that the table marks exactly those jobs that are counted as failing.
func TestTheTableMarksTheJobsThatTheBannerCounts(t *testing.T) {
	s := calm(time.Now())
	tail := diagnose.Job{Name: "tail", Schedule: "@always", Command: true, LastRun: &diagnose.Run{State: "failed",
		Error: "exit status 1"}, Running: &diagnose.Run{ID: "r", Started: s.Now.Add(-30 * time.Minute)}}
	lost := diagnose.Job{Name: "lost", Schedule: "@hourly", Command: true, ConsecutiveFailures: 1, LastRun: &diagnose.Run{State: "lost"}}
	s.Jobs = []diagnose.Job{tail, lost}
	if v := jobsVerdict(s, true); v.Answer != "1 of 2 failing" || v.Note != "lost" {
		t.Errorf("%+v", v)
	}
	if marked, well := newJobView(lost, s.Now).Failures, newJobView(tail, s.Now).Failures; marked == "" || well != "" {
		t.Errorf("marked %q and %q", marked, well)
	}
}

func TestAListOfNodesThatIsCutIsToldOnThePage(t *testing.T) {
	s := calm(time.Now())
	s.NodesRead, s.Nodes[1].Observer = 10_000, true
	if got := todo(s, letterCount{}); len(got) != 1 || !strings.HasPrefix(got[0],
		"warn Nodes: the list is too long: 10,000 entries were read") {
		t.Errorf("to do: %q", got)
	}
	if v := nodesVerdict(s, true); !strings.HasPrefix(v.Answer, "at least 2 live") || strings.Contains(v.Note, "could take over") {
		t.Errorf("%+v", v)
	}
	s.Leader = nil
	if v := nodesVerdict(s, true); strings.Contains(v.Note+v.Next, "lead") {
		t.Errorf("%+v", v)
	}
}

func TestWhatIsGraveIsSoOnThePageToo(t *testing.T) {
	s := calm(time.Now())
	s.Nodes[1].Twin = "another"
	if got := todo(s, letterCount{}); len(got) != 1 || !strings.HasPrefix(got[0], "bad Nodes: two processes use the id db2") {
		t.Errorf("to do: %q", got)
	}
}
