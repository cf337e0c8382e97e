package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/internal/config"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
	"baton/internal/flush/source/spec"
	"baton/internal/flush/sql"
	"baton/internal/job"
	"baton/internal/job/schedule"
)

func flushOf(name string, from config.From, to config.To) config.Job {
	return config.Job{Name: name, Schedule: "@hourly", Flush: config.Flush{From: from, To: to}}
}

// Doctor asks Redis for exactly the permissions of the commands that each kind of job sends.
func TestWhatAJobDoesToRedisIsKnown(t *testing.T) {
	always := flushOf("stream", config.From{Type: spec.Stream, Key: "events", Retain: time.Hour}, config.To{})
	always.Schedule = "@always"
	for _, c := range []struct {
		job  config.Job
		want string // the keys; the key of a row; the commands that are sent, and those that are not
	}{
		{flushOf("sharded", config.From{Type: spec.Counters, Key: "views:[0-2]"}, config.To{}), "views:0 views:1 views:2; ; HSCAN S 0, RENAME K S; "},
		{flushOf("totals", config.From{Type: spec.Counters, Key: "total", Mode: config.ModeWatermark}, config.To{}),
			"total; ; HSCAN K 0; RENAME K S"},
		{flushOf("keyed", config.From{Type: spec.Counters, Key: "count:<id>", Changed: "changed:count"}, config.To{}),
			"changed:count; count:1; MGET R, SSCAN I 0; "},
		{flushOf("keyed totals", config.From{Type: spec.Counters, Key: "count:<id>", Mode: config.ModeWatermark}, config.To{}),
			"count:1; count:1; SCAN 0, GETRANGE R 0 1; RENAME K S"},
		{flushOf("rows", config.From{Type: spec.Hashes, Key: "user:<id>", Changed: "changed:user"}, config.To{}),
			"changed:user; user:1; HMGET R f, RENAME K S; XREAD STREAMS K 0"},
		{flushOf("list", config.From{Type: spec.List, Key: "queue"}, config.To{}), "queue; ; LRANGE S 0 0; XTRIM K MINID 1"},
		{flushOf("stream", config.From{Type: spec.Stream, Key: "events"}, config.To{}),
			"events; ; XRANGE K - +; XREAD STREAMS K 0, XTRIM K MINID 1, CLUSTER NODES"},
		{always, "events; ; XTRIM K MINID 1, XREAD STREAMS K 0; "},
		{flushOf("scan", config.From{Type: spec.Scan, Key: "doc:<id>", Value: "json"}, config.To{}), "doc:1; doc:1; GET R, CLUSTER NODES; HMGET R f"},
	} {
		a, err := accessOf(c.job, c.job.Name == "scan")
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(c.want, "; ")
		var keys []string
		for _, p := range a.Keys {
			keys = append(keys, p.Key)
			if p.Names["R"] != parts[1] {
				t.Errorf("%s: a row is %q, want %q", c.job.Name, p.Names["R"], parts[1])
			}
		}
		if got := strings.Join(keys, " "); got != parts[0] || a.Subject != fmt.Sprintf("job %q", c.job.Name) {
			t.Errorf("%s: keys %q, want %q, of %s", c.job.Name, got, parts[0], a.Subject)
		}
		sent := a.Keys[0].Sent("set")
		for i, list := range parts[2:] {
			for command := range strings.SplitSeq(list, ", ") {
				if command != "" && slices.Contains(sent, command) != (i == 0) {
					t.Errorf("%s: sends %q, and %s among them is wrong", c.job.Name, sent, command)
				}
			}
		}
	}
}

// Doctor asks the database for exactly the rights that each job needs on its table.
func TestWhatAJobDoesToItsTableIsKnown(t *testing.T) {
	keyed, kept, bare := &row.Plan{Key: []int{0}}, &row.Plan{Key: []int{0}, Keep: true}, &row.Plan{}
	for _, c := range []struct {
		name string
		from config.From
		to   config.To
		plan *row.Plan
		want string // insert, update, delete
	}{
		{"upsert", config.From{Type: spec.Counters, Key: "views"}, config.To{}, keyed, "iu-"},
		{"insert", config.From{Type: spec.List, Key: "queue"}, config.To{Mode: string(mapping.ModeInsert)}, bare, "i--"},
		{"insert what is not there", config.From{Type: spec.List, Key: "queue"}, config.To{Mode: string(mapping.ModeInsert)}, kept, "i--"},
		{"replace", config.From{Type: spec.List, Key: "queue"}, config.To{Mode: string(mapping.ModeReplace)}, keyed, "iud"},
		{"delete", config.From{Type: spec.List, Key: "queue"}, config.To{Mode: string(mapping.ModeDelete)}, keyed, "--d"},
		{"rows that go with their hash", config.From{Type: spec.Hashes, Key: "user:<id>"}, config.To{}, keyed, "iud"},
		{"rows that stay without it", config.From{Type: spec.Hashes, Key: "user:<id>", OnMissing: string(mapping.MissingIgnore)}, config.To{}, keyed, "iu-"},
		{"rows that are emptied", config.From{Type: spec.Hashes, Key: "user:<id>", OnMissing: string(mapping.MissingNull)}, config.To{}, keyed, "iu-"},
		{"captured rows that are emptied", config.From{Type: spec.Capture, Key: "user:<id>", OnMissing: string(mapping.MissingNull)}, config.To{}, keyed, "iu-"},
		{"records that say so", config.From{Type: spec.Stream, Key: "events"}, config.To{DeleteWhen: map[string]string{"op": "delete"}}, keyed, "iud"},
		{"rows that have vanished", config.From{Type: spec.Scan, Key: "doc:<id>", Value: "json", Vanished: "delete"}, config.To{}, keyed, "iud"},
		{"rows that may vanish", config.From{Type: spec.Scan, Key: "doc:<id>", Value: "json"}, config.To{}, keyed, "iu-"},
	} {
		got := preflightTable(flushOf("j", c.from, c.to), c.plan)
		text := ""
		for i, may := range []bool{got.Insert, got.Update, got.Delete} {
			if text += "iud"[i : i+1]; !may {
				text = text[:i] + "-"
			}
		}
		if want := (sql.PreflightTable{Job: "j", Plan: c.plan, Insert: got.Insert, Update: got.Update, Delete: got.Delete}); text != c.want || got != want {
			t.Errorf("%s: %s, want %s; %+v", c.name, text, c.want, got)
		}
	}
	if keeping := flushOf("j", config.From{Type: spec.Hashes, Key: "user:<id>"}, config.To{KeepDeleted: time.Hour}); !preflightTable(keeping, keyed).Keep {
		t.Error("a job with keep_deleted needs no right to read whole rows")
	}
}

func TestWhatIsUsualIsNotTold(t *testing.T) {
	command := func(name string, grace time.Duration) config.Job {
		return config.Job{Name: name, Command: config.Command{"true"}, Policy: config.Policy{Grace: grace}}
	}
	for ttl, want := range map[time.Duration]int{3*time.Second - 1: 1, 3 * time.Second: 0, 10 * time.Second: 0, time.Minute: 0, time.Minute + 1: 1} {
		c := configOf("redis://127.0.0.1:1")
		c.Election.TTL = ttl
		flushes := flushOf("flush", config.From{}, config.To{Database: "main", Table: "a"})
		flushes.Grace = time.Hour // a flush has no grace
		other, elsewhere := flushOf("other table", config.From{}, config.To{Database: "main", Table: "b"}), flushOf("other database", config.From{}, config.To{Database: "two", Table: "a"})
		c.Jobs = []config.Job{flushes, other, elsewhere, command("one", ttl-1), command("two", ttl-1)}
		if all := examineConfig(c, false); len(all) != want {
			t.Errorf("ttl %v: %+v", ttl, all)
		}
	}
	c := configOf("redis://127.0.0.1:1")
	c.Election.TTL = 10 * time.Second
	c.HTTP.Listen = "db1.example:9747"
	if all := examineConfig(c, false); len(all) != 1 || all[0].Severity != SeverityWarning {
		t.Errorf("a name beyond this host: %+v", all)
	}
	c.HTTP.Listen, c.Jobs = config.Off, nil
	for i := range 5 {
		c.Jobs = append(c.Jobs, command(fmt.Sprint("long", i), 10*time.Second))
	}
	if all := examineConfig(c, false); len(all) != 1 || !strings.HasSuffix(all[0].What, "long0, long1, long2, long3, long4") {
		t.Errorf("%+v", all)
	}
	c.Jobs = []config.Job{flushOf("first", config.From{}, config.To{Database: "main", Table: "Users"}), flushOf("second", config.From{}, config.To{Database: "main", Table: "users"})}
	if all := examineConfig(c, false); len(all) != 1 || all[0].Subject != `job "first"` {
		t.Errorf("two writers of one table are told once, however it is written: %+v", all)
	}
}

func TestRunsThatAreTooLongForTheirScheduleMeanSomethingElseUnderEachOverlap(t *testing.T) {
	every, err := schedule.Parse("@every 10s", time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	for overlap, want := range map[string]string{config.OverlapForbid: "warning slots are skipped", config.OverlapReplace: "error each run is ended by the next one",
		config.OverlapQueueOne: "warning runs pile up, because overlap is " + config.OverlapQueueOne} {
		for took, told := range map[time.Duration]bool{10*time.Second - 1: false, 10 * time.Second: true} {
			r := &report{subject: "j"}
			r.tooLong(config.Job{Policy: config.Policy{Overlap: overlap}}, every, took)
			if len(r.findings) > 0 != told || told && !strings.HasPrefix(string(r.findings[0].Severity)+" "+r.findings[0].Consequence, want) {
				t.Errorf("%s, after %v: %+v", overlap, took, r.findings)
			}
		}
	}
	for took, told := range map[time.Duration]bool{30*time.Second - 1: false, 30 * time.Second: true} {
		r := &report{subject: "j"}
		r.tooLong(config.Job{Policy: config.Policy{Overlap: config.OverlapAllow, MaxOverlap: 3}}, every, took)
		if len(r.findings) > 0 != told || told && !strings.Contains(r.findings[0].Consequence, "because 3 runs go on") {
			t.Errorf("three at a time, after %v: %+v", took, r.findings)
		}
	}
	never, err := schedule.Parse("0 0 30 2 *", time.UTC)
	if err == nil {
		r := &report{}
		if r.tooLong(config.Job{}, never, time.Hour); len(r.findings) != 0 {
			t.Errorf("a job that is never due: %+v", r.findings)
		}
	}
	at := time.Unix(1_700_000_000, 0)
	took := func(seconds ...int) (runs []job.Record) {
		for _, s := range seconds {
			runs = append(runs, job.Record{Started: at, Finished: at.Add(time.Duration(s) * time.Second)})
		}
		return runs
	}
	if got := medianOf(took(9, 1, 2, 100, 3)); got != 3*time.Second {
		t.Errorf("the median is %v", got)
	}
}

func TestDirectoriesAndProgramsOfBatonAreLookedAt(t *testing.T) {
	dir := t.TempDir()
	mkdir := func(name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	state, run := mkdir("state", os.ModeSticky|0o777), mkdir("run", 0o777)
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"STATE_DIRECTORY": state + ":/elsewhere", "RUNTIME_DIRECTORY": run + ":/elsewhere"}[name]
		return v, ok
	}
	if err := os.WriteFile(filepath.Join(run, "admin.sock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(run, "admin.sock"), 0o666); err != nil { // a regular file is not a socket
		t.Fatal(err)
	}
	c := configOf("redis://127.0.0.1:1")
	c.HTTP.AdminSocket = ""
	all := examineFiles(c, Options{Getenv: env})
	wantFound(t, all, SeverityError, "file "+run, "can write to it")
	if len(all) != 1 { // in a directory such as /tmp, users cannot remove the files of other users
		t.Errorf("%+v", all)
	}
	if o := (Options{Unit: "baton@reports.service"}); o.usualState() != "/var/lib/baton-reports" || o.usualRuntime() != "/run/baton-reports" {
		t.Errorf("%s, %s", o.usualState(), o.usualRuntime())
	}

	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(program, info.Mode()|othersWrite); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(program, info.Mode()) }()
	wantFound(t, examineFiles(c, Options{}), SeverityError, "file "+program, "can write to it")
}

func TestADirectoryThatCannotBeWrittenIsTold(t *testing.T) {
	const readOnly = "/proc/self" // on a file system to which no user can write
	r := &report{}
	r.ownDirectories(Options{Getenv: func(name string) (string, bool) { return map[string]string{"STATE_DIRECTORY": readOnly}[name], true }})
	wantFound(t, r.findings, SeverityError, "file "+readOnly, "this user cannot write there")
	wantRemedies(t, r.findings)
}
