package alert

import (
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/redisledger"
	"baton/internal/redislock"
)

func TestDeadLettersAreToldWhenTheyBeginAndOnceAnHour(t *testing.T) {
	during(t, noteConfig(users()), func(r *notesRig) {
		put := func(n int64) { r.LettersPut("users", n) }
		count := func(want int) {
			t.Helper()
			if all := r.take(); len(all) != 1 || all[0].Kind != "dead_letters" || all[0].Count != want || all[0].Job != "users" || all[0].LockKey != "baton" || all[0].Epoch != 7 {
				t.Errorf("told %+v, want %d dead letters", all, want)
			}
		}
		put(2)
		count(2)
		for range 6 {
			time.Sleep(9 * time.Minute)
			put(1)
		}
		r.want("more within the hour", "")
		time.Sleep(7 * time.Minute)
		r.want("nothing has been counted since", "")
		r.LettersWait("users", 8, time.Now())
		count(6)
		put(1)
		r.LettersWait("users", 0, time.Now().Add(-time.Second))
		put(1)
		r.want("nobody has seen to the last one: it was put aside after the counting", "")
		time.Sleep(time.Second)
		r.LettersWait("users", 0, time.Now())
		r.want("they have been seen to", "")
		put(5)
		count(5)
		put(1)
		r.Reload(noteConfig(users()))
		r.listen()
		put(1)
		r.want("after a reload", "")
	})
}

func TestTheNextLeaderKnowsThatDeadLettersWereTold(t *testing.T) {
	five, none := int64(5), int64(0)
	for _, c := range []struct {
		what   string
		before *int64
		ended  redislock.Event
		want   string
	}{
		{"some waited", &five, redislock.Event{Event: "stepped_down", NodeID: "n2"}, ""},
		{"none waited", &none, redislock.Event{Event: "stepped_down", NodeID: "n2"}, "dead_letters users"},
		{"nobody has counted them", nil, redislock.Event{Event: "stepped_down", NodeID: "n2"}, "dead_letters users"},
		{"some waited, and the leader crashed", &five, redislock.Event{Event: "won", NodeID: "n2"}, "dead_letters users"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newNotesRig(t, noteConfig(users()))
			r.past.states["users"] = redisledger.JobState{DeadLetters: c.before}
			r.past.events = []redislock.Event{{Event: "won", NodeID: "n1"}, c.ended}
			end := r.leads()
			r.take() // the event that the leader has changed
			r.LettersPut("users", 1)
			r.LettersWait("users", 6, time.Now())
			r.want(c.what, c.want)
			end()
			r.Close(t.Context())
		})
	}
}
