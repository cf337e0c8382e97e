package chaos

import (
	"testing"
	"time"

	"baton/internal/testsupport/cluster"
)

// ms returns a time for these tests.
func ms(n int64) time.Time { return time.UnixMilli(n) }

func win(at int64, node string, epoch int64) event {
	return event{name: "won", at: ms(at), node: node, epoch: epoch}
}

func TestOverlapIsAnAnswerThatCannotHaveBeenTrue(t *testing.T) {
	events := []event{win(100, "a", 1), {name: "expired", at: ms(200), node: "a", epoch: 1}, win(200, "b", 2), win(300, "a", 3)}
	for _, c := range []struct {
		name      string
		node      string
		sent, got int64
		wrong     bool
	}{
		{"the leader", "a", 110, 120, false},
		{"asked before, answered after the successor won", "a", 190, 210, false},
		{"asked in the very tick of the win", "a", 200, 210, false},
		{"asked after the successor won", "a", 205, 210, true},
		{"answered only after it has won again", "a", 205, 305, false},
		{"the successor before it won", "b", 150, 190, true},
		{"the successor, answered after it won", "b", 150, 200, false},
		{"the successor", "b", 210, 220, false},
		{"long after the last win", "b", 900, 910, true},
		{"a node that never won", "c", 210, 220, true},
		{"before anybody won", "a", 50, 60, true},
	} {
		got := overlaps([]answer{{node: c.node, sent: ms(c.sent), got: ms(c.got)}}, events)
		if (len(got) > 0) != c.wrong {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

func TestEpochsHaveToRise(t *testing.T) {
	good := []event{win(1, "a", 5), win(2, "b", 6), win(3, "a", 9)}
	if wrong := rising(good); len(wrong) > 0 {
		t.Error(wrong)
	}
	for _, epoch := range []int64{9, 8} {
		if wrong := rising(append(good[:3:3], win(4, "b", epoch))); len(wrong) != 1 {
			t.Errorf("epoch %d after 9: %q", epoch, wrong)
		}
	}
	for _, c := range []struct {
		name      string
		takeovers [][]string
		wrong     int
	}{
		{"in order", [][]string{{"j", "5", "a"}, {"k", "5", "a"}, {"j", "6", "b"}, {"j", "9", "a"}}, 0},
		{"an older term", [][]string{{"j", "6", "b"}, {"j", "5", "a"}}, 1},
		{"the same epoch again", [][]string{{"j", "6", "b"}, {"j", "6", "b"}}, 1},
		{"another node's epoch", [][]string{{"j", "6", "a"}}, 1},
		{"nobody's epoch", [][]string{{"j", "7", "a"}}, 1},
	} {
		if wrong := fenced(c.takeovers, good); len(wrong) != c.wrong {
			t.Errorf("%s: %q", c.name, wrong)
		}
	}
}

func TestSlotIsStartedOnce(t *testing.T) {
	runs := []jobRun{{id: "1", job: "j", slot: 10}, {id: "2", job: "k", slot: 10}, {id: "3", job: "j", slot: 20}}
	if wrong := once(runs); len(wrong) > 0 {
		t.Error(wrong)
	}
	if wrong := once(append(runs, jobRun{id: "4", job: "j", slot: 10})); len(wrong) != 1 {
		t.Errorf("slot 10 of j twice: %q", wrong)
	}
}

func TestRecoveryIsMeasuredWhereNothingIsBroken(t *testing.T) {
	at := func(seconds float64) time.Time { return ms(int64(seconds * 1000)) }
	strikes := []strike{
		{fault: fault{kind: redisFreeze}, begun: at(1), ended: at(4)},
		{fault: fault{kind: dbCut}, begun: at(2), ended: at(2)}, // under the first: not measured
		{fault: fault{kind: killLeader}, begun: at(10), ended: at(10)},
		{fault: fault{kind: redisKill}, begun: at(20), ended: at(21)},
	}
	units := []*cluster.Unit{{Up: []time.Time{at(0), at(11)}, Down: []time.Time{at(10)}}}
	answers := []answer{{sent: at(3), got: at(5)}, {sent: at(4.5), got: at(4.6)}, {sent: at(14), got: at(14.1)}, {sent: at(24.5), got: at(24.6)}}
	runs := []jobRun{
		{job: "hits", state: "succeeded", started: at(3.9), finished: at(4.2)}, {job: "hits", state: "failed", started: at(4.4), finished: at(4.5)},
	}
	for i, job := range jobNames {
		runs = append(runs, jobRun{job: job, state: "succeeded", started: at(4.1), finished: at(4.5 + float64(i)/10)})
	}
	got := recoveries(strikes, units, answers, runs, at(30))
	want := []struct{ lead, flush float64 }{{0.6, 1.2}, {3.1, -1}, {3.6, -1}}
	if len(got) != len(want) {
		t.Fatalf("%d recoveries: %+v", len(got), got)
	}
	for i, w := range want {
		seconds := func(d time.Duration) float64 { return max(d.Seconds(), -1) }
		if lead, flush := seconds(got[i].lead), seconds(got[i].flush); lead != w.lead || (flush != w.flush && w.flush >= 0) || (flush >= 0) != (w.flush >= 0) {
			t.Errorf("after %s: lead %v, flush %v; want %v", got[i].after.kind, got[i].lead, got[i].flush, w)
		}
	}
	// One node was down from 10 to 11; its lease is 2 s, and twice that after a restart of Redis.
	if wrong := late(got, 100*time.Millisecond); len(wrong) != 1 {
		t.Errorf("late: %q", wrong)
	}
}
