package source

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"baton/internal/flush"
)

// A job with keep_deleted asks to keep what it deletes, and what its first accepted pass overwrites, and no ordinary update.
func TestWhichRowsACaptureKeeps(t *testing.T) {
	for _, mode := range []flush.AdoptMode{flush.AdoptAsk, flush.AdoptOverwrite, flush.AdoptDelete} {
		t.Run(string(mode), func(t *testing.T) {
			g := newRig(t)
			j := newCaptureJob(t, g.redis)
			j.options.MaxPct, j.keep = 100, time.Hour
			asking(j)
			j.adopt.Mode = mode
			for _, id := range []string{"equal", "differs", "extra"} {
				j.table.put(id, "theirs")
			}
			g.Do("SET", "s:equal", "theirs")
			g.Do("SET", "s:differs", "ours")
			j.must(g.Client)
			want := []string{"adopted differs 1h0m0s", "vanished extra 1h0m0s"}
			switch mode {
			case flush.AdoptAsk:
				j.wantKept()
				j.accept()
				j.must(g.Client)
			case flush.AdoptOverwrite:
				want = want[:1]
			}
			j.wantKept(want...)
			g.Do("SET", "s:equal", "changed")
			g.Do("DEL", "s:differs")
			j.must(g.Client)
			want = append(want, "missing differs 1h0m0s")
			j.wantKept(want...)
			j.die()
			j.table.put("equal", "another program")
			j.table.SetPlace("capture", "s:<id>", "") // another pass
			j.must(g.Client)
			if got := j.table.texts()["equal"]; got != "changed" {
				t.Errorf("the second pass has left %q", got)
			}
			j.wantKept(want...)
		})
	}
}

func (j *captureJob) wantKept(want ...string) {
	j.t.Helper()
	got := slices.Clone(j.table.kept)
	slices.Sort(got)
	slices.Sort(want)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		j.t.Errorf("kept %q, want %q", got, want)
	}
}
