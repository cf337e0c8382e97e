package hosts

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// evidence is all that the judges look at. One clock tells all of its times: that of the
// machine, which nothing steps.
type evidence struct {
	from, until time.Time
	strikes     []strike
	acts        []act
	entries     []entry
	took        []taking           // in the order in which they were committed
	wrote       map[string][]write // by job, likewise
	want, got   map[string]map[string]int64
	dead        []string
}

// act is what a command has written down.
type act struct {
	host, run, lock, job string
	epoch                int64
	attempt              string
	slot                 time.Time
	began, alive         time.Time // alive: when some process of it last was
	beats                []time.Time
}

func (a act) String() string {
	return fmt.Sprintf("%s of %s in epoch %d (begun %s, run %s)", a.job, a.host, a.epoch, clock(a.began), a.run)
}

// entry is what the history of a job says: of a run, or of slots that were not run.
type entry struct {
	job, state, reason string
	first, slot        time.Time
	count              int
}

// taking is a fence that was taken, write a transaction that has written rows.
type taking struct {
	job, host string
	epoch     int64
	at        time.Time // of the commit
}

type write struct {
	host string
	at   time.Time
}

func clock(at time.Time) string { return at.UTC().Format("15:04:05.000000") }

// gather collects it, when the hosts are at peace.
func (w *wire) gather(from, until time.Time) evidence {
	w.t.Helper()
	e := evidence{
		from: from.Add(time.Second), until: until.Add(-time.Second), strikes: w.strikes,
		wrote: map[string][]write{}, want: w.want, got: map[string]map[string]int64{},
	}
	names := map[string]string{}
	for _, h := range w.hosts {
		names[h.Addr] = h.Name
		text, _ := h.Read(actsPath)
		all, err := readActs(h.Name, text)
		if err != nil {
			w.wrong("what the commands of %s wrote cannot be read: %v", h.Name, err)
		}
		e.acts = append(e.acts, all...)
	}
	slices.SortFunc(e.acts, func(a, b act) int { return a.began.Compare(b.began) })
	w.gatherWrites(&e, names)
	for _, table := range tables {
		value := "count(*)"
		if table == "articles" {
			value = "sum(views)"
		}
		e.got[table] = map[string]int64{}
		for _, line := range w.db.Rows("SELECT concat_ws(' ', id, " + value + ") FROM " + table + " GROUP BY id") {
			id, n, _ := strings.Cut(line, " ")
			e.got[table][id] = w.number(n)
		}
	}
	e.dead = w.db.Rows("SELECT job || ': ' || error FROM baton_dead_letter")
	for _, job := range []string{"tick", "other"} {
		e.entries = append(e.entries, w.history(job)...)
	}
	for _, h := range w.hosts {
		if n := h.Property(unit, "NRestarts"); n != "0" {
			w.wrong("baton of %s was restarted %s times", h.Name, n)
		}
		if log := h.Journal(unit); strings.Contains(log, "panic") {
			w.wrong("baton of %s has panicked:\n%s", h.Name, log)
		}
	}
	if off := w.steady().Abs(); off > time.Millisecond {
		w.wrong("the wall clock was stepped by %v: this test's own ground is gone", off)
	}
	return e
}

func (w *wire) gatherWrites(e *evidence, names map[string]string) {
	w.t.Helper()
	const committed = "(extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000000)::bigint"
	for _, line := range w.db.Rows("SELECT concat_ws(' ', job, node, epoch, " + committed + ") FROM took ORDER BY pg_xact_commit_timestamp(xmin), n") {
		f := strings.Fields(line)
		e.took = append(e.took, taking{job: f[0], host: f[1], epoch: w.number(f[2]), at: time.UnixMicro(w.number(f[3]))})
	}
	for _, line := range w.db.Rows("SELECT concat_ws(' ', job, addr, " + committed + ") FROM wrote ORDER BY pg_xact_commit_timestamp(xmin)") {
		f := strings.Fields(line)
		e.wrote[f[0]] = append(e.wrote[f[0]], write{host: names[f[1]], at: time.UnixMicro(w.number(f[2]))})
	}
}

func (w *wire) number(text string) int64 {
	w.t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// readActs reads what the commands of a host have written.
func readActs(host, text string) ([]act, error) {
	var all []act
	place := map[string]int{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 3 {
			return all, fmt.Errorf("line %q is too short", line)
		}
		micros, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			return all, fmt.Errorf("line %q: %w", line, err)
		}
		at := time.UnixMicro(micros)
		if f[0] == "begin" {
			a := act{host: host, run: f[2], began: at, alive: at, beats: []time.Time{at}}
			if len(f) < 7 {
				return all, fmt.Errorf("a command was told too little: %q", line)
			}
			a.lock, a.job, a.attempt = f[3], f[5], f[6]
			if a.epoch, err = strconv.ParseInt(f[4], 10, 64); err != nil {
				return all, fmt.Errorf("line %q: %w", line, err)
			}
			if len(f) > 7 {
				if a.slot, err = time.Parse(time.RFC3339Nano, f[7]); err != nil {
					return all, fmt.Errorf("line %q: %w", line, err)
				}
			}
			place[a.run] = len(all)
			all = append(all, a)
			continue
		}
		i, known := place[f[2]]
		if !known {
			return all, fmt.Errorf("line %q is of no run", line)
		}
		a := &all[i]
		if at.After(a.alive) {
			a.alive = at
		}
		if a.job == "pulse" {
			a.beats = append(a.beats, at)
		}
	}
	return all, nil
}

// history is what the operator of a host is told of a job.
func (w *wire) history(job string) []entry {
	w.t.Helper()
	var all []struct {
		Run *struct {
			State string    `json:"state"`
			Slot  time.Time `json:"slot"`
		} `json:"run"`
		Missed *struct {
			Reason string    `json:"reason"`
			Count  int       `json:"count"`
			First  time.Time `json:"first"`
			Last   time.Time `json:"last"`
		} `json:"missed"`
	}
	text := w.hosts[0].Must("baton", "job", "history", job, "-n", "10000", "-o", "json", "--config", conffile)
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		w.t.Fatalf("the history of %s cannot be read: %v\n%.300s", job, err, text)
	}
	var entries []entry
	for _, told := range all {
		switch {
		case told.Run != nil:
			entries = append(entries, entry{job: job, state: told.Run.State, slot: told.Run.Slot})
		case told.Missed != nil && told.Missed.Count > 0:
			entries = append(entries, entry{job: job, reason: told.Missed.Reason, first: told.Missed.First, slot: told.Missed.Last, count: told.Missed.Count})
		}
	}
	return entries
}

// terms counts the epochs under which anything was done for a lock.
func (e evidence) terms(lock string) int {
	epochs := map[int64]bool{}
	for _, a := range e.acts {
		if a.lock == lock {
			epochs[a.epoch] = true
		}
	}
	return len(epochs)
}

// pulse is every beat of a leader, in order.
func (e evidence) pulse() []time.Time {
	var all []time.Time
	for _, a := range e.acts {
		if a.job == "pulse" {
			all = append(all, a.beats...)
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}
