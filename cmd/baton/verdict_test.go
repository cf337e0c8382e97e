package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"baton/internal/diagnose"
)

// verdictCase is the state of a job in Redis, with the verdict that every output must show for it.
type verdictCase struct {
	what     string
	schedule string // by default each New Year
	flush    bool
	fields   []any
	waits    int // the number of waiting changes in Redis
	late     string
}

// verdictCases are jobs, some of which count as late one hour after a slot. None of them runs during the test, because their slots are at
// New Year.
func verdictCases(now time.Time) map[string]verdictCase {
	ago := func(d time.Duration) int64 { return now.Add(-d).UnixMilli() }
	const day = 24 * time.Hour
	newYear := time.Date(now.Year(), 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	old := now.AddDate(-1, 0, -10)
	lastYear := []any{"begun", old.UnixMilli(), "last_slot", newYear, "last_success", old.UnixMilli(), "fresh", old.UnixMilli()}
	with := func(more ...any) []any { return append(slices.Clone(lastYear), more...) }
	never := []any{"begun", ago(150 * time.Minute), "last_slot", ago(150 * time.Minute), "consecutive_failures", 3}
	return map[string]verdictCase{
		"new":     {what: "no leader has seen it before"},
		"well":    {what: "it succeeded an hour ago", fields: []any{"begun", newYear, "last_slot", newYear, "last_success", ago(time.Hour)}},
		"never":   {what: "it has never succeeded, and first ran long ago", fields: never, late: "no_success"},
		"unrun":   {what: "it has never run, and is known for a year", fields: []any{"known", old.UnixMilli(), "missed_until", newYear}, late: "no_success"},
		"owed":    {what: "no success since the slot of New Year", fields: lastYear, late: "no_success"},
		"held":    {what: "paused when it was late already", fields: with("paused_at", ago(10*time.Minute), "paused_reason", "by alice"), late: "no_success"},
		"spared":  {what: "paused before its slot", fields: with("paused_at", newYear-60_000, "paused_reason", "by alice")},
		"resumed": {what: "its slot was in a pause that has ended", fields: with("pause_began", newYear-60_000, "pause_ended", ago(time.Hour))},
		"ended": {what: "its slot was in a pause that has ended by itself",
			fields: with("paused_at", newYear-60_000, "paused_reason", "by alice", "paused_until", ago(time.Hour))},
		"stuck":   {what: "a flush that never succeeded, with changes", flush: true, fields: never, waits: 2, late: "no_success"},
		"dry":     {what: "a flush that never succeeded, without", flush: true, fields: never, late: "no_success"},
		"nightly": {what: "a flush whose next slot is to come", flush: true, waits: 2, fields: []any{"begun", newYear, "last_slot", newYear, "last_success", ago(20 * day), "fresh", ago(20 * day)}},
		"stream":  {what: "a flush that goes on, and is behind", schedule: "@always", flush: true, waits: 2, fields: []any{"begun", ago(3 * time.Hour), "last_slot", ago(3 * time.Hour), "fresh", ago(2 * time.Hour)}, late: "lag"},
		"service": {what: "a command that is kept running", schedule: "@always"},
	}
}

// TestEverythingCallsTheSameJobsLate checks that page, API, command line, metrics and notifications have the same verdict on each job.
func TestEverythingCallsTheSameJobsLate(t *testing.T) {
	cases := verdictCases(time.Now())
	names := slices.Sorted(maps.Keys(cases))
	c, server := newCLI(t), useRedis(t)
	told := make(chan lateNotice, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var n lateNotice
		if json.NewDecoder(r.Body).Decode(&n) == nil {
			told <- n
		}
	}))
	t.Cleanup(hook.Close)
	conn := server.Conn()
	do := func(command string, args ...any) {
		t.Helper()
		if _, err := conn.Do(command, args...); err != nil {
			t.Fatal(err)
		}
	}
	var file strings.Builder
	fmt.Fprintf(&file, "redis: {url: %q}\nhttp: {listen: %q}\n", server.URL(), "127.0.0.1:0")
	// There is no database at this address, so flushes fail.
	fmt.Fprintf(&file, "databases: {main: {driver: postgres, dsn: %q}}\n", "postgres://127.0.0.1:1/none?connect_timeout=1")
	fmt.Fprintf(&file, "notify: [{name: hook, webhook: %q, on: [late]}]\ndefaults: {late_after: 1h}\njobs:\n", hook.URL)
	for _, name := range names {
		k := cases[name]
		fmt.Fprintf(&file, "  - {name: %s, schedule: %q", name, cmp.Or(k.schedule, "@yearly"))
		if k.flush {
			fmt.Fprintf(&file, ", flush: {from: {type: counters, key: %q}, to: {database: main, table: t, key: [id]}, columns: {id: $field, n: $value}}}\n", "of:"+name)
		} else {
			file.WriteString(", command: [/bin/sleep, \"600\"]}\n")
		}
		if len(k.fields) > 0 {
			do("HSET", append([]any{"{baton}:job:" + name}, k.fields...)...)
		}
		for i := range k.waits {
			do("HSET", "of:"+name, i, 1)
		}
	}
	c.file("baton.yaml", file.String())
	c.env["BATON_CONFIG"] = "baton.yaml"
	c.daemon("--node-id", "db1")
	c.until("db1\n", "leader")
	var s diagnose.Snapshot
	if err := json.Unmarshal([]byte(c.run("status", "-o", "json").stdout), &s); err != nil || len(s.Nodes) != 1 {
		t.Fatalf("%v: %+v", err, s)
	}
	v := verdicts{t: t, cli: c, url: "http://" + s.Nodes[0].Address, cases: cases, names: names, heard: map[string]string{}}
	var last map[string]map[string]string
	agree := func() bool {
		last = map[string]map[string]string{
			"page": v.page(), "API": v.api(), "baton status": v.status(), "baton status through the node": v.status("--server", v.url), "metrics": v.metrics(), "notifications": v.notified(told),
		}
		for _, name := range names {
			for _, said := range last {
				if said[name] != cases[name].late {
					return false
				}
			}
		}
		return true
	}
	for deadline := time.Now().Add(time.Minute); !agree() && time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		continue
	}
	for _, name := range names {
		for surface, said := range last {
			if said[name] != cases[name].late {
				t.Errorf("%s (%s): %s says %q, want %q", name, cases[name].what, surface, said[name], cases[name].late)
			}
		}
	}
}

type lateNotice struct{ Kind, Job, Reason string }

// verdicts asks a node which jobs are late. If the output does not show the reason, any reason is accepted.
type verdicts struct {
	t     *testing.T
	cli   *cli
	url   string
	cases map[string]verdictCase
	names []string
	heard map[string]string // the verdicts of the notifications so far
}

// those returns the verdicts of an output that shows which jobs are late, but not why.
func (v *verdicts) those(late func(name string) bool) map[string]string {
	said := map[string]string{}
	for _, name := range v.names {
		if late(name) {
			said[name] = cmp.Or(v.cases[name].late, "late")
		}
	}
	return said
}

func (v *verdicts) page() map[string]string {
	front := v.get("/")
	return v.those(func(name string) bool {
		page := v.get("/jobs/" + name)
		row := regexp.MustCompile(`(?s)<th scope="row"><a href="./jobs/` + name + `">.*?</tr>`).FindString(front)
		if row == "" {
			v.t.Fatalf("the page lacks %s", name)
		}
		alone, among := strings.Contains(page, "Late: "), strings.Contains(row, "late: ")
		if alone != among {
			v.t.Errorf("%s: the table says that it is late: %v, its own page: %v", name, among, alone)
		}
		return alone
	})
}

func (v *verdicts) api() map[string]string {
	var s struct{ Jobs []struct{ Name, Late string } }
	if err := json.Unmarshal([]byte(v.get("/api/v1/status")), &s); err != nil {
		v.t.Fatal(err)
	}
	said := map[string]string{}
	for _, j := range s.Jobs {
		said[j.Name] = j.Late
	}
	return said
}

func (v *verdicts) status(flags ...string) map[string]string {
	got := v.cli.run(append([]string{"status", "-o", "json"}, flags...)...)
	var s diagnose.Snapshot
	if err := json.Unmarshal([]byte(got.stdout), &s); err != nil {
		v.t.Fatalf("%v: %+v", err, got)
	}
	all := hints(s)
	return v.those(func(name string) bool {
		return slices.ContainsFunc(all, func(h hint) bool {
			return strings.HasPrefix(h.what, name+" ") && strings.Contains(h.what, " is late: ")
		})
	})
}

func (v *verdicts) metrics() map[string]string {
	value := map[string]float64{}
	for line := range strings.Lines(v.get("/metrics")) {
		if series, n, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			value[series], _ = strconv.ParseFloat(n, 64)
		}
	}
	return v.those(func(name string) bool {
		limit, late := value[fmt.Sprintf("baton_job_late_after_seconds{job=%q}", name)], value[fmt.Sprintf("baton_job_late{job=%q}", name)] == 1
		if overdue := value[fmt.Sprintf("baton_job_overdue_seconds{job=%q}", name)]; late != (limit > 0 && overdue > limit) {
			v.t.Errorf("%s: overdue for %v s, and late: %v", name, overdue, late)
		}
		return late
	})
}

func (v *verdicts) notified(told <-chan lateNotice) map[string]string {
	for {
		select {
		case n := <-told:
			v.heard[n.Job] = n.Reason
		default:
			return v.heard
		}
	}
}

func (v *verdicts) get(path string) string {
	v.t.Helper()
	answer, err := http.Get(v.url + path) //nolint:noctx // the test ends with its daemon
	if err != nil {
		v.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		v.t.Fatalf("%s: %s, %v", path, answer.Status, err)
	}
	return string(body)
}
